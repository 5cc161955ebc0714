"""From a trained model to CTranslate2's specification of it, weight by weight."""

from typing import Any, Dict, List

import numpy as np
import torch
from torch import Tensor

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.export.ct2 import library
from fairseq_posenc.tools.export.ct2.positions import Places, places
from fairseq_posenc.tools.export.trained import Trained

_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_accurate": "GELUTanh",
    "gelu_fast": "GELUTanh",
    "swish": "SWISH",
    "tanh": "Tanh",
}
_NO_WEIGHTS = ("encoder.version", "decoder.version")


class Weights:
    """The weights of a model, each to be taken once by name."""

    def __init__(self, trained: Trained):
        self.path = trained.path
        self.left = {
            name: weight
            for name, weight in trained.model.state_dict().items()
            if ".embed_positions." not in name and name not in _NO_WEIGHTS
        }

    def take(self, name: str) -> Tensor:
        """Return a weight.

        Raises:
            UsageError: the model has none of that name.
        """
        if name not in self.left:
            raise UsageError(f"{self.path} cannot be exported: CTranslate2 needs {name}")
        return self.left.pop(name)

    def check_all_taken(self) -> None:
        """Refuse a model with weights for which there was no place.

        Raises:
            UsageError: names the first one.
        """
        for name in self.left:
            raise UsageError(f"{self.path} cannot be exported: CTranslate2 has no place for {name}")


def specify(trained: Trained, vocabularies: Dict[str, List[str]], length: int) -> Any:
    """Return CTranslate2's specification of a model, filled.

    Args:
        trained: the model.
        vocabularies: types of ``encoder`` and ``decoder``, in the order of the embeddings.
        length: tokens of the longest sequence for which positions are written.

    Raises:
        UsageError: CTranslate2 cannot hold the model.
    """
    specs = library().specs
    if trained.options.cross_self_attention:
        raise UsageError(f"{trained.path} cannot be exported: --cross-self-attention")
    weights = Weights(trained)
    encoder = _stack(trained, "encoder", specs.TransformerEncoderSpec, length, weights)
    decoder = _stack(trained, "decoder", specs.TransformerDecoderSpec, length, weights)
    decoder.projection.weight = _array(weights.take("decoder.output_projection.weight"))
    weights.check_all_taken()
    spec = specs.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(vocabularies["encoder"])
    spec.register_target_vocabulary(vocabularies["decoder"])
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_bos = trained.source_bos
    spec.config.add_source_eos = True
    return spec


def _stack(trained: Trained, side: str, kind: type, length: int, weights: Weights) -> Any:
    """Return the specification of the encoder or the decoder."""
    module = getattr(trained.model, side)
    stack = module.embed_positions.stack
    placed = places(trained.portable(side, length), stack, length)
    spec = kind(
        stack.layers,
        stack.heads,
        pre_norm=getattr(trained.options, f"{side}_normalize_before"),
        no_final_norm=module.layer_norm is None,
        activation=_activation(trained.options.activation_fn),
        layernorm_embedding=module.layernorm_embedding is not None,
        **placed.options,
    )
    embeddings = spec.embeddings[0] if side == "encoder" else spec.embeddings
    embeddings.weight = _array(weights.take(f"{side}.embed_tokens.weight"))
    spec.scale_embeddings = float(module.embed_scale)
    if placed.table is not None:
        spec.position_encodings.encodings = _array(placed.table)
    for name in ("layer_norm", "layernorm_embedding"):
        if getattr(module, name) is not None:
            _norm(getattr(spec, name), weights, f"{side}.{name}")
    for number, layer in enumerate(spec.layer):
        prefix = f"{side}.layers.{number}."
        _self_attention(layer.self_attention, weights, prefix, placed, stack.heads)
        for name, value in (placed.layers[number] if placed.layers else {}).items():
            setattr(layer.self_attention, name, _value(value))
        if side == "decoder":
            _cross_attention(layer.attention, weights, prefix)
        _feed_forward(layer.ffn, weights, prefix)
    return spec


def _activation(name: str) -> Any:
    if name not in _ACTIVATIONS:
        raise UsageError(f"CTranslate2 does not know --activation-fn {name}")
    return getattr(library().specs.Activation, _ACTIVATIONS[name])


def _self_attention(spec: Any, weights: Weights, prefix: str, placed: Places, heads: int) -> None:
    """Fill self-attention; queries, keys and values are one projection."""
    further = placed.further_channels
    parts = [
        [
            _widened(weights.take(f"{prefix}self_attn.{name}_proj.{kind}"), heads, further)
            for kind in ("weight", "bias")
        ]
        for name in "qkv"
    ]
    if further:
        by_head = parts[0][1].view(heads, -1)
        by_head[:, -further:] = torch.eye(heads, further)
    spec.linear[0].weight, spec.linear[0].bias = (_array(torch.cat(p)) for p in zip(*parts))
    output = weights.take(f"{prefix}self_attn.out_proj.weight")
    spec.linear[1].weight = _array(_widened(output.transpose(0, 1), heads, further).transpose(0, 1))
    spec.linear[1].bias = _array(weights.take(f"{prefix}self_attn.out_proj.bias"))
    _norm(spec.layer_norm, weights, f"{prefix}self_attn_layer_norm")


def _widened(weight: Tensor, heads: int, further: int) -> Tensor:
    """Add channels of zeros to each head in the first dimension ``(heads · width, …)``."""
    by_head = weight.reshape(heads, -1, *weight.shape[1:])
    zeros = weight.new_zeros(heads, further, *weight.shape[1:])
    return torch.cat([by_head, zeros], dim=1).flatten(0, 1)


def _cross_attention(spec: Any, weights: Weights, prefix: str) -> None:
    """Fill the attention to the source; its keys and values are one projection."""
    name = f"{prefix}encoder_attn"
    _linear(spec.linear[0], weights, f"{name}.q_proj")
    _linear(spec.linear[1], weights, f"{name}.k_proj", f"{name}.v_proj")
    _linear(spec.linear[2], weights, f"{name}.out_proj")
    _norm(spec.layer_norm, weights, f"{name}_layer_norm")


def _feed_forward(spec: Any, weights: Weights, prefix: str) -> None:
    _linear(spec.linear_0, weights, f"{prefix}fc1")
    _linear(spec.linear_1, weights, f"{prefix}fc2")
    _norm(spec.layer_norm, weights, f"{prefix}final_layer_norm")


def _linear(spec: Any, weights: Weights, *names: str) -> None:
    """Fill one projection with one or several, stacked."""
    spec.weight = _array(torch.cat([weights.take(f"{name}.weight") for name in names]))
    spec.bias = _array(torch.cat([weights.take(f"{name}.bias") for name in names]))


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma = _array(weights.take(f"{name}.weight"))
    spec.beta = _array(weights.take(f"{name}.bias"))


def _value(value: Any) -> Any:
    """Return an attribute as the specification wants it; ``None`` is one that is left out."""
    if value is None:
        return library().specs.model_spec.OPTIONAL
    return _array(value) if isinstance(value, Tensor) else np.int32(value)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()
