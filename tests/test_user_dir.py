"""``--user-dir`` in a Python that has imported the package before; programs have not."""

from tests.programs import python

ASKING = """
import fairseq_posenc.encodings
from argparse import Namespace
from fairseq.utils import import_user_module
import_user_module(Namespace(user_dir="fairseq_posenc"))
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
print(sorted(name for name in {*TASK_REGISTRY, *ARCH_MODEL_REGISTRY} if "posenc" in name))
"""


def test_tasks_and_models_are_registered():
    found = python(ASKING)
    for name in ("posenc_translation", "posenc_masked_lm", "posenc_transformer", "posenc_bert"):
        assert f"'{name}'" in found
