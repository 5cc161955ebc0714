"""fairseq models with a choice of position encodings.

Importing them makes loading checkpoints safe, mends what newer libraries broke, and registers the
tasks and optimizers that go with them, as ``from_pretrained`` and ``--user-dir`` need.
"""

from fairseq_posenc.compat import (
    lend_old_numpy,
    let_fairseq_find_nan,
    let_generate_log,
    let_stock_encoders_compute,
)
from fairseq_posenc.criterions.label_smoothing import patch_label_smoothing
from fairseq_posenc.errors import print_errors_in_one_line
from fairseq_posenc.guards.configuration import patch_configurations
from fairseq_posenc.guards.loading import install_loading_patches
from fairseq_posenc.guards.precision import patch_precision
from fairseq_posenc.guards.task_models import patch_build_model
from fairseq_posenc.optim import lamb, radam
from fairseq_posenc.optim.adam import patch_adam
from fairseq_posenc.tasks import masked_lm, question_answering, sentence_prediction, translation
from fairseq_posenc.tasks.batch_rng import patch_train_step

__all__ = ["lamb", "masked_lm", "question_answering", "radam", "sentence_prediction", "translation"]

lend_old_numpy()
let_fairseq_find_nan()
let_generate_log()
let_stock_encoders_compute()
print_errors_in_one_line()
install_loading_patches()
patch_configurations()
patch_build_model()
patch_precision()
patch_adam()
patch_label_smoothing()
patch_train_step()
