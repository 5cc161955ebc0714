"""The scores of content alone, Q Kᵀ, of a model that reads running text."""

import os
from typing import Any, Callable, Dict

import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.tasks.translation import TranslationTask
from torch import Tensor

from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tools.analyses.loading import Trained
from fairseq_posenc.tools.analyses.position_scores import Maps, input_vectors, products


@torch.no_grad()
def content_scores(
    encoder: PosencTransformerEncoder, tokens: Tensor, maps: Maps
) -> Dict[str, Maps]:
    """Return the scores of content alone, and the sum with those of positions.

    Args:
        encoder: in evaluation.
        tokens: ``(batch, n)``, without padding.
        maps: of :func:`position_maps` for the same n.

    Returns:
        ``content`` and ``both``: for each layer of ``maps``, ``(batch, heads, n, n)``.
    """
    vectors = input_vectors(encoder, tokens.size(1))
    if vectors is not None:
        first = encoder.layers[0].self_attn
        words = encoder.embed_scale * encoder.embed_tokens(tokens)
        inputs = {"content": words, "both": words + vectors}
        return {kind: {0: products(first, x)} for kind, x in inputs.items()}
    seen: Dict[int, Tensor] = {}

    def remember(layer: int) -> Callable[[Any, Any], None]:
        def hook(module: Any, inputs: Any) -> None:
            x, terms = inputs[:2]
            queries, keys = module.split(module.q_proj(x)), module.split(module.k_proj(x))
            seen[layer] = module.core_terms(terms).scale * queries @ keys.transpose(2, 3)

        return hook

    handles = [
        layer.self_attn.register_forward_pre_hook(remember(number))
        for number, layer in enumerate(encoder.layers)
    ]
    try:
        encoder(tokens)
    finally:
        for handle in handles:
            handle.remove()
    content = {layer: seen[layer] for layer in maps}
    return {"content": content, "both": {layer: seen[layer] + maps[layer] for layer in maps}}


def pieces(trained: Trained, subset: str, length: int, count: int) -> Tensor:
    """Return ``count`` pieces ``(count, length)`` of the running text of a subset, or fewer.

    Each is like a sentence: with EOS, and with BOS where the model wants it.

    Raises:
        UsageError: there is no such text, or too little.
    """
    task = trained.task
    dictionary = task.source_dictionary
    text = _running_text(trained, subset)
    text = text[text.ne(dictionary.eos()) & text.ne(dictionary.bos())]
    has_bos = getattr(task.cfg, "prepend_source_bos", not isinstance(task, TranslationTask))
    inner = length - 1 - has_bos
    rows = min(count, len(text) // inner) if inner > 0 else 0
    if not rows:
        raise UsageError(f"'{subset}' has {len(text)} tokens, which make no input of {length}")
    ends = [text.new_full((rows, 1), index) for index in (dictionary.bos(), dictionary.eos())]
    parts = [*ends[: int(has_bos)], text[: rows * inner].view(rows, inner), ends[1]]
    return torch.cat(parts, dim=1).to(next(trained.model.parameters()).device)


def _running_text(trained: Trained, subset: str) -> Tensor:
    """Return the tokens of all source sentences of a subset, one after another."""
    task = trained.task
    folder, names = utils.split_paths(task.cfg.data)[0], [subset]
    if isinstance(task, TranslationTask):
        source, target = task.cfg.source_lang, task.cfg.target_lang
        orders = (f"{source}-{target}", f"{target}-{source}")
        names = [f"{subset}.{order}.{source}" for order in orders]
    for name in names:
        path = os.path.join(folder, name)
        sentences = data_utils.load_indexed_dataset(path, task.source_dictionary)
        if sentences is not None:
            return torch.cat([sentences[index] for index in range(len(sentences))])
    raise UsageError(f"there is no binarised {names[0]} in {folder}")
