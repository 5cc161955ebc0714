"""What stands between a user and a mistake, put into fairseq's own programs.

Of a checkpoint: ``option_checks`` refuses options that would run, fetch or build something else
than a known model; ``signatures`` says what positions it was trained with, ``source_bos`` whether
its sources start with BOS. Of a training that begins with one: ``continuation``, ``freezing``,
``same_run``, ``resuming``, ``starting``, ``precision``, ``save_folder``; by Hydra:
``configuration``. Of what is validated or translated: ``scoring``.

When the models are imported, these places of fairseq are replaced, once (a test compares):

- ``checkpoint_utils.load_checkpoint_to_cpu`` and ``checkpoint_utils.torch`` (its ``torch.load``):
  files are read by our reader, and their options are checked
- ``checkpoint_utils.load_model_ensemble_and_task``: errors in one line
- ``checkpoint_utils.load_checkpoint``, where a training begins or goes on (``save_folder``,
  ``same_run``, ``resuming``); from then on the trainer's ``state_dict`` has a record of the run
- ``checkpoint_utils.verify_checkpoint_directory`` and ``FairseqTask.filter_indices_by_size``, which
  find that nothing can be written or read (``starting``)
- ``Trainer.get_valid_iterator`` and ``options.parse_args_and_arch``: all of a set is validated, and
  fairseq-validate takes the task of the model (``scoring``)
- ``EpochBatchIterator.state_dict``, ``EpochBatchIterator.load_state_dict``: the place in an epoch,
  whatever batches are made of it (``resuming``)
- ``Trainer.__init__``: precision on a CPU (``precision``)
- ``FairseqOptimizer.load_state_dict``: what a resumed optimizer takes over
- ``file_utils.load_archive_file``, which fetches and unpacks
- ``distributed.utils.torch`` (its ``torch.load``), by which workers send each other options
- ``dataclass.utils.merge_with_parent``, where a training by Hydra looks at all its options first
  (``configuration``)
- ``data_utils.np``, ``language_pair_dataset.np`` and ``token_block_dataset.np``: names that NumPy
  has no longer (``compat``)
- ``NanDetector.add_hooks``, with which fairseq looks for NaN (``compat``)

The package's own path answers ``utils.import_user_module``, where it was imported before.
"""
