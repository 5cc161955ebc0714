"""From a checkpoint to the folder of a CTranslate2 model, weight by weight."""

from typing import Any, Dict, List, Optional

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_posenc.errors import UsageError, import_optional
from fairseq_posenc.tools.convert.checkpoint import (
    ExportSource,
    read_checkpoint,
    read_dictionaries,
)
from fairseq_posenc.tools.convert.ctranslate2.positions import Ct2Tables, to_ct2_tables
from fairseq_posenc.tools.writing import check_folder, replacing_folder

# where CTranslate2 cuts sources, if not told otherwise
DEFAULT_POSITIONS = 1024
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_accurate": "GELUTanh",
    "gelu_fast": "GELUTanh",
    "swish": "SWISH",
    "tanh": "Tanh",
}
_NO_WEIGHTS = ("encoder.version", "decoder.version")


def import_ctranslate2() -> Any:
    """Return the package ``ctranslate2``, which is needed for nothing else, if it is installed."""
    return import_optional("ctranslate2", "this needs CTranslate2 ({error})")


def ct2_types(dictionary: Dictionary) -> List[str]:
    """Return the types of a dictionary as CTranslate2 spells them: it has a name for padding."""
    padding = dictionary.pad_word
    return ["<blank>" if type_ == padding else type_ for type_ in dictionary.symbols]


def to_ctranslate2(
    path: str,
    output: str,
    data: str,
    quantization: Optional[str] = None,
    positions: Optional[int] = None,
    force: bool = False,
) -> List[str]:
    """Write the model of a checkpoint as a CTranslate2 model to the folder ``output``.

    Args:
        data: folder of the dictionaries, such as the binarised data of the training.
        quantization: ``int8``, ``float16`` and so on, see CTranslate2; None: ``float32``.
        positions: most tokens of a sentence, BOS and EOS included, for which positions are
            written; None: 1,024, or what the model was trained for, if that is more.
    """
    accepted = import_ctranslate2().specs.model_spec.ACCEPTED_MODEL_TYPES
    if quantization not in (None, *accepted):
        raise UsageError(
            f"--quantization {quantization} is not known; choose {', '.join(accepted)}"
        )
    check_folder(output, "model.bin", "a CTranslate2 model", force)
    source = read_checkpoint(path)
    dictionaries = read_dictionaries(source, data)
    vocabularies = {side: ct2_types(dictionary) for side, dictionary in dictionaries.items()}
    # tables of distances hold one at least
    length = max(2, positions or max(DEFAULT_POSITIONS, source.max_positions))
    spec = _specification(source, vocabularies, length)
    spec.validate()
    spec.optimize(quantization=quantization)
    with replacing_folder(output) as folder:
        spec.save(folder)
    notes = [f"positions for sentences of up to {length} tokens, BOS and EOS included"]
    if source.source_bos:
        notes.append("BOS is put before every source, as in training")
    return notes


class _Weights:
    """The weights of a model, each to be taken once by name."""

    def __init__(self, source: ExportSource):
        self.source = source
        self.left = {
            name: weight
            for name, weight in source.model.state_dict().items()
            if ".embed_positions." not in name and name not in _NO_WEIGHTS
        }

    def take(self, name: str) -> Tensor:
        """Return a weight, or raise :class:`UsageError` if the model has none of that name."""
        if name not in self.left:
            raise self.source.refusal(f"CTranslate2 needs {name}")
        return self.left.pop(name)

    def fill_linear(self, spec: Any, *names: str) -> None:
        """Fill one projection of a specification with one or several of the model, stacked."""
        spec.weight = _array(torch.cat([self.take(f"{name}.weight") for name in names]))
        spec.bias = _array(torch.cat([self.take(f"{name}.bias") for name in names]))

    def fill_norm(self, spec: Any, name: str) -> None:
        """Fill a LayerNorm of a specification."""
        spec.gamma = _array(self.take(f"{name}.weight"))
        spec.beta = _array(self.take(f"{name}.bias"))


def _specification(source: ExportSource, vocabularies: Dict[str, List[str]], length: int) -> Any:
    """Return CTranslate2's specification of a model, filled, with positions for ``length`` tokens.

    ``vocabularies`` are the types of ``encoder`` and ``decoder``, in the order of the embeddings.
    """
    specs = import_ctranslate2().specs
    if source.options.cross_self_attention:
        raise source.refusal("--cross-self-attention")
    name = source.options.activation_fn
    if name not in _ACTIVATIONS:
        raise source.refusal(f"CTranslate2 does not know --activation-fn {name}")
    weights = _Weights(source)
    encoder = _stack(source, "encoder", specs.TransformerEncoderSpec, length, weights)
    decoder = _stack(source, "decoder", specs.TransformerDecoderSpec, length, weights)
    decoder.projection.weight = _array(weights.take("decoder.output_projection.weight"))
    # what nobody has taken would be lost without a word
    for name in weights.left:
        raise source.refusal(f"CTranslate2 has no place for {name}")
    spec = specs.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(vocabularies["encoder"])
    spec.register_target_vocabulary(vocabularies["decoder"])
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_bos = source.source_bos
    spec.config.add_source_eos = not getattr(source.options, "no_source_eos", False)
    return spec


def _stack(
    source: ExportSource, side: str, spec_class: type, length: int, weights: _Weights
) -> Any:
    """Return the specification of the encoder or the decoder."""
    specs = import_ctranslate2().specs
    module = getattr(source.model, side)
    stack = module.embed_positions.stack
    tables = to_ct2_tables(source.exported_positions(side, length), stack, length)
    spec = spec_class(
        stack.layers,
        stack.heads,
        pre_norm=getattr(source.options, f"{side}_normalize_before"),
        no_final_norm=module.layer_norm is None,
        activation=getattr(specs.Activation, _ACTIVATIONS[source.options.activation_fn]),
        layernorm_embedding=module.layernorm_embedding is not None,
        **tables.options,
    )
    embeddings = spec.embeddings[0] if side == "encoder" else spec.embeddings
    embeddings.weight = _array(weights.take(f"{side}.embed_tokens.weight"))
    spec.scale_embeddings = float(module.embed_scale)
    if tables.input is not None:
        spec.position_encodings.encodings = _array(tables.input)
    for name in ("layer_norm", "layernorm_embedding"):
        if getattr(module, name) is not None:
            weights.fill_norm(getattr(spec, name), f"{side}.{name}")
    for number, layer in enumerate(spec.layer):
        prefix = f"{side}.layers.{number}."
        _fill_self_attention(layer.self_attention, weights, prefix, tables, stack.heads)
        for name, value in (tables.layers[number] if tables.layers else {}).items():
            if value is None:
                array = specs.model_spec.OPTIONAL  # one that is left out
            else:
                array = _array(value) if isinstance(value, Tensor) else np.int32(value)
            setattr(layer.self_attention, name, array)
        if side == "decoder":
            attention = f"{prefix}encoder_attn"
            weights.fill_linear(layer.attention.linear[0], f"{attention}.q_proj")
            keys_and_values = [f"{attention}.k_proj", f"{attention}.v_proj"]
            weights.fill_linear(layer.attention.linear[1], *keys_and_values)
            weights.fill_linear(layer.attention.linear[2], f"{attention}.out_proj")
            weights.fill_norm(layer.attention.layer_norm, f"{attention}_layer_norm")
        weights.fill_linear(layer.ffn.linear_0, f"{prefix}fc1")
        weights.fill_linear(layer.ffn.linear_1, f"{prefix}fc2")
        weights.fill_norm(layer.ffn.layer_norm, f"{prefix}final_layer_norm")
    return spec


def _fill_self_attention(
    spec: Any, weights: _Weights, prefix: str, tables: Ct2Tables, heads: int
) -> None:
    """Fill self-attention; queries, keys and values are one projection."""
    added = tables.added_channels
    parts = [
        [
            _widened(weights.take(f"{prefix}self_attn.{name}_proj.{ending}"), heads, added)
            for ending in ("weight", "bias")
        ]
        for name in "qkv"
    ]
    if added:
        # in head h the bias makes the query's added channel h 1 and the others 0: of the relative
        # keys' added channels, which all heads share, it takes the bias of its own head
        by_head = parts[0][1].view(heads, -1)
        by_head[:, -added:] = torch.eye(heads, added)
    spec.linear[0].weight, spec.linear[0].bias = (_array(torch.cat(p)) for p in zip(*parts))
    output = weights.take(f"{prefix}self_attn.out_proj.weight")
    spec.linear[1].weight = _array(_widened(output.transpose(0, 1), heads, added).transpose(0, 1))
    spec.linear[1].bias = _array(weights.take(f"{prefix}self_attn.out_proj.bias"))
    weights.fill_norm(spec.layer_norm, f"{prefix}self_attn_layer_norm")


def _widened(weight: Tensor, heads: int, added: int) -> Tensor:
    """Add channels of zeros to each head in the first dimension ``(heads · width, …)``."""
    by_head = weight.reshape(heads, -1, *weight.shape[1:])
    zeros = weight.new_zeros(heads, added, *weight.shape[1:])
    return torch.cat([by_head, zeros], dim=1).flatten(0, 1)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()
