"""fairseq models with a choice of position encodings.

Importing them makes loading checkpoints safe, mends what newer libraries broke, and registers the
tasks and optimizers that go with them, as ``from_pretrained`` and ``--user-dir`` need.
"""

from fairseq_posenc.compat import let_generate_log
from fairseq_posenc.criterions import label_smoothing
from fairseq_posenc.errors import print_errors_in_one_line
from fairseq_posenc.guards import configuration, loading, precision, saving, task_models
from fairseq_posenc.optim import adam, lamb, radam
from fairseq_posenc.tasks import (
    batch_rng,
    masked_lm,
    question_answering,
    sentence_prediction,
    translation,
)

let_generate_log()
print_errors_in_one_line()
