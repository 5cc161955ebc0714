"""The table of all model types of transformers that are read or written.

A new one is an ``Adapter`` in the module of its kind, and its name here.
"""

from typing import Dict, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.huggingface.adapters import Adapter
from fairseq_posenc.tools.convert.huggingface.bert import (
    BERT,
    MPNET,
    ROBERTA,
    ROFORMER,
    XLM_ROBERTA,
)
from fairseq_posenc.tools.convert.huggingface.folder import HfConfig
from fairseq_posenc.tools.convert.huggingface.language_models import BLOOM, GPT_NEOX, OPT, XGLM
from fairseq_posenc.tools.convert.huggingface.multilingual import M2M100, MBART
from fairseq_posenc.tools.convert.huggingface.translation import BLENDERBOT, FSMT

FAMILIES: Dict[str, Adapter] = {
    adapter.model_type: adapter
    for adapter in (
        *(FSMT, ROBERTA, XLM_ROBERTA, BERT, ROFORMER, M2M100, MBART),
        *(BLENDERBOT, MPNET, XGLM, OPT, GPT_NEOX, BLOOM),
    )
}
# the model's name in fairseq, where LayerNorms are, kind of positions
EXPORTED: Dict[Tuple[str, str, str], Adapter] = {
    model: adapter for adapter in FAMILIES.values() for model in adapter.exported
}
_REASONS = {
    "marian": "its output has a bias, and its decoder starts with padding, which fairseq has not",
}


def imported_family(config: HfConfig) -> Adapter:
    """Return the adapter that reads a model of transformers.

    Raises:
        UsageError: there is none; the known ones are named.
    """
    model_type = config.fields["model_type"]
    adapter = FAMILIES.get(model_type)
    if adapter and adapter.read:
        return adapter
    names = ", ".join(name for name, entry in FAMILIES.items() if entry.read)
    reason = f"only {names} and what posenc export writes are imported"
    reason = _REASONS.get(model_type, reason)
    raise UsageError(
        f"{config.folder} is a model of type {model_type:.40}, which is not imported: {reason}"
    )
