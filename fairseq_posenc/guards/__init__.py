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

When the models are imported, functions of fairseq are replaced, by ``replaces`` and ``replace`` of
``patching.py``; where they are called it says what for.

The package's own path answers ``utils.import_user_module``, where it was imported before.
"""
