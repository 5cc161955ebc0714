"""Whether transformers computes what our model computes, measured on sentences of the data."""

from typing import Any, Dict, List, Sequence

import torch
from torch import Tensor

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import LANGUAGE_MODEL, ExportSource, read_sentences
from fairseq_posenc.tools.convert.huggingface.adapters import SPECIAL_IDS, Layout
from fairseq_posenc.tools.convert.huggingface.positions import most_positions

SENTENCES, _BATCH = 50, 10
LARGEST = 1e-3


def import_transformers() -> Any:
    """Return the package ``transformers``, which nothing but comparing needs."""
    try:
        import transformers
    except ImportError as error:
        raise UsageError(
            f"--check needs transformers ({error}): pip install transformers"
        ) from None
    return transformers


def compare(source: ExportSource, layout: Layout, data: str, folder: str) -> str:
    """Return what was measured, in words.

    Raises:
        UsageError: the scores differ, or there are no sentences to compare them on.
    """
    transformers = import_transformers()
    by_stack = read_sentences(source, data, SENTENCES)
    sentences = list(zip(*by_stack.values()))
    if not sentences:
        raise UsageError(f"--check needs a binarised test, valid or train set in {data}")
    model = getattr(transformers, layout.model).from_pretrained(folder, local_files_only=True)
    largest = largest_difference(source, model.eval().float(), sentences)
    if not largest <= LARGEST:
        raise source.refusal(f"the scores of {layout.model} differ by up to {largest:.2g}")
    return (
        f"largest difference of scores {largest:.1e} on {len(sentences)} sentences, "
        f"transformers {transformers.__version__}"
    )


def largest_difference(
    source: ExportSource, model: Any, sentences: Sequence[Sequence[List[int]]]
) -> float:
    """Return the largest :func:`difference` on sentences, which may have translations."""
    batches = range(0, len(sentences), _BATCH)
    differences = [
        difference(source, model, list(zip(*sentences[n : n + _BATCH]))) for n in batches
    ]
    return float(torch.tensor(differences).max())  # also of not a number


@torch.no_grad()
def difference(source: ExportSource, model: Any, batch: Sequence[Sequence[List[int]]]) -> float:
    """Return the largest difference of scores between our model and that of transformers.

    ``batch`` has the sentences as numbers with EOS, of the source and, in translation, the target.
    """
    longest, eos = most_positions(source) - 1, SPECIAL_IDS["eos_token_id"]
    bos = [SPECIAL_IDS["bos_token_id"]]
    if len(batch) == 2:
        begun = bos if source.source_bos else []
        sources = padded([begun + sentence for sentence in batch[0]], longest)
        # the decoder starts with EOS
        targets = padded([[eos, *sentence[:-1]] for sentence in batch[1]], longest)
        fairseq_scores = source.model(sources, None, targets)[0]
        hf_output = model(**inputs(sources), decoder_input_ids=targets, use_cache=False)
        real = targets.ne(SPECIAL_IDS["pad_token_id"])
    else:
        begun = [source.beginning] if source.kind == LANGUAGE_MODEL else bos
        sources = padded([begun + sentence for sentence in batch[0]], longest)
        fairseq_scores, hf_output = source.model(sources)[0], model(**inputs(sources))
        real = sources.ne(SPECIAL_IDS["pad_token_id"])
    # (real tokens, types)
    return float((fairseq_scores[real] - hf_output.logits[real]).abs().max())


def inputs(tokens: Tensor) -> Dict[str, Tensor]:
    """Return what transformers takes for ``(batch, length)`` tokens."""
    mask = tokens.ne(SPECIAL_IDS["pad_token_id"])
    return {"input_ids": tokens, "attention_mask": mask.long()}


def padded(sentences: Sequence[List[int]], longest: int) -> Tensor:
    """Return ``(batch, length)``, padded on the right, no longer than ``longest``."""
    cut = [torch.tensor(sentence[:longest]) for sentence in sentences]
    padding = float(SPECIAL_IDS["pad_token_id"])
    return torch.nn.utils.rnn.pad_sequence(cut, batch_first=True, padding_value=padding)
