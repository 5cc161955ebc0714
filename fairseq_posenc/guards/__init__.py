"""Checks and patches in fairseq's own programs.

They refuse a mistake of a user in one line, let nothing in an untrusted file run, and mend where
fairseq does something else than asked.

Which file checks what, and when:

- a checkpoint is read, by any program: ``loading`` (patches fairseq's reading), ``option_checks``
  (no option may run, fetch or build something else than a known model)
- a model is built: ``initial_checkpoint`` (options, positions, dictionaries and weights of the
  checkpoint that a training begins with), ``freezing`` (``--train-only``), ``segments`` (the task
  gives them), ``configuration`` (Hydra's groups)
- a training begins: ``training_start`` (folder, samples, workers, schedule), ``save_folder`` (its
  checkpoints), ``precision`` (on a CPU; logged, recorded), ``run_comparison`` (options that may not
  change; of averages and ensembles, too), ``resumed_state`` (optimizer, progress, place in the
  epoch)
- a checkpoint is written: ``saving``
- a set is validated or translated: ``scoring``

``signatures`` says which positions a checkpoint was trained with, and ``source_bos`` whether its
sources start with BOS.

When the models are imported, these places of fairseq are replaced, once (a test compares):

- ``checkpoint_utils.load_checkpoint_to_cpu`` and ``checkpoint_utils.torch`` (its ``torch.load``):
  files are read by our reader (``checkpoints/reader.py``), and their options are checked
  (``loading``)
- ``checkpoint_utils.load_model_ensemble_and_task``: dictionaries, languages and the models of an
  ensemble are compared, errors are in one line (``loading``)
- ``checkpoint_utils.load_checkpoint``, where a training begins or goes on (``loading``); from then
  on the trainer's ``state_dict`` has the metadata of the run (``run_comparison``)
- ``checkpoint_utils.verify_checkpoint_directory`` and ``FairseqTask.filter_indices_by_size``, which
  find that nothing can be written or read (``training_start``)
- ``checkpoint_utils.save_checkpoint``, ``checkpoint_utils._torch_persistent_save`` and
  ``checkpoint_utils.PathManager`` (its ``copy``): no half checkpoint has the name of a whole one,
  and a full disk is told in one line (``saving``)
- ``EpochBatchIterator.first_batch``, where a set has none, and ``data_utils.batch_by_size``, where
  a sample is longer than a batch may be (``training_start``)
- ``models.build_model``, which knows the task and the model (``task_models``)
- ``distributed.utils.infer_init_method``, by which fairseq starts workers: it needs GPUs
  (``training_start``)
- ``train.get_valid_stats``, once a training begins: a metric that is missing is named
  (``training_start``)
- ``Trainer.get_valid_iterator`` and ``options.parse_args_and_arch``: all of a set is validated,
  fairseq-validate takes the task of the model, and no option is without an effect (``scoring``)
- ``distributed.utils.all_gather_list``, by which workers of fairseq-validate share what they have
  found: also on CPUs (``scoring``)
- ``EpochBatchIterator.state_dict``, ``EpochBatchIterator.load_state_dict``: the place in an epoch,
  whatever batches are made of it (``resumed_state``)
- ``FairseqTask.train_step``: random positions are the same on any number of workers
  (``tasks/batch_rng.py``)
- ``FairseqTask.get_batch_iterator``: the batches of an unbroken run (``resumed_state``)
- ``Trainer.__init__``: precision on a CPU (``precision``)
- ``FairseqAdam.__init__``: torch's fused kernel on a CPU (``optim/adam.py``)
- ``LabelSmoothedCrossEntropyCriterion.compute_loss``: one tensor of the logits' size, on a CPU
  (``criterions/label_smoothing.py``)
- ``FairseqOptimizer.load_state_dict``: the state of a resumed optimizer (``loading``)
- ``file_utils.load_archive_file``, which fetches and unpacks (``loading``)
- ``distributed.utils.torch`` (its ``torch.load``), by which workers send each other options
  (``loading``)
- ``dataclass.utils.merge_with_parent``, where a training by Hydra looks at all its options first
  (``configuration``)
- ``data_utils.np``, ``language_pair_dataset.np`` and ``token_block_dataset.np``: names that NumPy
  has no longer (``compat.py``)
- ``NanDetector.add_hooks``, with which fairseq looks for NaN (``compat.py``)
- ``TransformerEncoderLayerBase.can_use_fastpath``, by which encoders call a fused kernel as torch
  no longer has it (``compat.py``)

The package's own path answers ``utils.import_user_module``, where it was imported before.
"""
