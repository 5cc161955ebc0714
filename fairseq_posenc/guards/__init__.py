"""What stands between a user and a mistake, put into fairseq's own programs.

``loading`` replaces these functions of fairseq, once, when the models are imported:

- ``checkpoint_utils.load_checkpoint_to_cpu`` and the ``torch.load`` in it: files are read by our
  reader, and their options are checked
- ``checkpoint_utils.load_model_ensemble_and_task``: errors in one line
- ``checkpoint_utils.load_checkpoint``, where a training begins or goes on (``save_folder``,
  ``same_run``, ``resuming``); from then on the trainer's ``state_dict`` has a record of the run
- ``checkpoint_utils.verify_checkpoint_directory`` and ``FairseqTask.filter_indices_by_size``, which
  find that nothing can be written or read (``starting``)
- ``FairseqOptimizer.load_state_dict``: what a resumed optimizer takes over
- ``file_utils.load_archive_file``, which fetches and unpacks
- the ``torch.load`` of ``distributed.utils``, by which workers send each other options

The package's own path answers ``utils.import_user_module``, where it was imported before.
``models.configuration`` replaces ``dataclass.utils.merge_with_parent`` for trainings by Hydra.
"""
