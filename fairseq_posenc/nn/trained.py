"""Trained models of ours, as ``posenc export`` writes them, in PyTorch alone."""

import math
from argparse import Namespace
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc import options
from fairseq_posenc.attention import core
from fairseq_posenc.attention.projections import Projections
from fairseq_posenc.encodings import StackConfig
from fairseq_posenc.encodings.base import AttentionTerms
from fairseq_posenc.encodings.segments import SEGMENT_MODULES
from fairseq_posenc.errors import UsageError
from fairseq_posenc.nn.layers import Encoder, EncoderLayer

_PADDING = 1  # in every dictionary
_BERT_STD = 0.02
_TANH_GELU = partial(F.gelu, approximate="tanh")
_ACTIVATIONS: Dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_accurate": _TANH_GELU,
    "gelu_fast": _TANH_GELU,
    "tanh": torch.tanh,
}
# prefixes of the names of weights in our checkpoints, and the prefixes here
_NAMES = {
    "encoder.sentence_encoder.": "encoder.",
    "encoder.lm_head.": "output.",
    "decoder.output_projection.": "output.",
}
# ADMIN's factors belong to the LayerNorm after the sum
_OMEGAS = {
    "attention_ratio_change": "self_attn_layer_norm.omega",
    "self_ratio_change": "self_attn_layer_norm.omega",
    "encoder_ratio_change": "encoder_attn_layer_norm.omega",
    "fc_ratio_change": "final_layer_norm.omega",
}
_NORMS = ("layer_norm", "layernorm_embedding")
_HEADS = ("classification_heads.", "span_heads.")


class States(NamedTuple):
    """Output of one side of a model.

    ``states`` are ``(batch, length, channels)``, ``padding_mask`` is ``(batch, length)``, true at
    padding, and ``shared`` is what the encodings of both sides share, see ``Positions``.
    """

    states: Tensor
    padding_mask: Tensor
    shared: List[Tensor]


class CrossAttention(Projections):
    """Attention to a source, without position terms."""

    batch_first = True

    def forward(self, x: Tensor, source: States) -> Tensor:
        """Return the output ``(batch, length, channels)``."""
        outputs, _ = core.attend(
            self.split(self.q_proj(x)),
            self.split(self.k_proj(source.states)),
            self.split(self.v_proj(source.states)),
            AttentionTerms(),
            source.padding_mask,
        )
        return self.join(outputs)


class DecoderLayer(EncoderLayer):
    """A layer with attention to a source between its two parts."""

    def __init__(self, key_channels: int, channels: int, heads: int, *args: Any, **kwargs: Any):
        super().__init__(channels, heads, *args, **kwargs)
        self.encoder_attn = CrossAttention(channels, heads, key_channels)
        self.encoder_attn_layer_norm = nn.LayerNorm(channels)

    def forward(self, x, terms=None, padding_mask=None, source=None) -> Tensor:  # type: ignore
        """Return ``(batch, length, channels)``; ``source`` is the encoder's output."""
        x = self.added(
            x, self.self_attn_layer_norm, lambda y: self.self_attn(y, terms, padding_mask)
        )
        x = self.added(x, self.encoder_attn_layer_norm, lambda y: self.encoder_attn(y, source))
        return self.feed_forward(x)


class TokenStack(Encoder):
    """One side of a trained model: embeddings, positions, layers.

    Args:
        args: the model's options.
        side: ``encoder`` or ``decoder``.
        weights: of the model, by their names here, which tell sizes and what there is.
    """

    def __init__(self, args: Namespace, side: str, weights: Dict[str, Tensor]):
        entries, channels = weights[f"{side}.embed_tokens.weight"].shape
        heads, decoder = getattr(args, f"{side}_attention_heads"), side == "decoder"
        layer_of: Callable[..., EncoderLayer] = EncoderLayer
        if f"{side}.layers.0.encoder_attn.k_proj.weight" in weights:
            keys = weights[f"{side}.layers.0.encoder_attn.k_proj.weight"]
            layer_of = partial(DecoderLayer, keys.size(1))
        layer = layer_of(
            channels,
            heads,
            inner=len(weights[f"{side}.layers.0.fc1.weight"]),
            norm_first=bool(getattr(args, f"{side}_normalize_before", False)),
            activation=_ACTIVATIONS[args.activation_fn],
        )
        stack = StackConfig(
            channels,
            decoder,
            getattr(args, "max_target_positions" if decoder else "max_source_positions"),
            layers=len(
                {name.split(".")[2] for name in weights if name.startswith(f"{side}.layers.")}
            ),
            heads=heads,
            has_cls="output.bias" in weights,
            token_std=_BERT_STD if "output.bias" in weights else 1.0,
        )
        super().__init__(layer, stack, options.encoding_name(args), **options.chosen(args))
        self.embed_tokens = nn.Embedding(entries, channels)
        self.embed_scale = 1.0 if args.no_scale_embedding else math.sqrt(channels)
        self.segments = SEGMENT_MODULES[getattr(args, "position_segments", None) or "none"](stack)
        has_norm = {name: f"{side}.{name}.weight" in weights for name in _NORMS}
        self.layer_norm, self.layernorm_embedding = (
            nn.LayerNorm(channels) if has_norm[name] else nn.Identity() for name in _NORMS
        )

    def forward(  # type: ignore[override]
        self, tokens: Tensor, segments: Optional[Tensor] = None, source: Optional[States] = None
    ) -> States:
        """Return the states of ``(batch, length)`` tokens.

        Args:
            tokens: ``(batch, length)``, padded by 1, on the right if the encoding has a table.
            segments: ``(batch, length)``, which text each token of a BERT is of; all 0 by default.
            source: what the encoder returned, of a decoder of translations.
        """
        padding = tokens.eq(_PADDING)
        if segments is None:
            segments = torch.zeros_like(tokens)
        x = self.embed_scale * self.embed_tokens(tokens)  # (batch, length, channels)
        positions = self.positions(x, padding, segments)
        # CAPE's shift and scale of the pair, which the encoder has drawn; nothing in evaluation
        positions.shared = [] if source is None else source.shared
        terms = self.segments(self.embed_positions(positions), segments)
        x = self.layernorm_embedding(x if terms.input is None else x + terms.input)
        sources = [source] if isinstance(self.layers[0], DecoderLayer) else []
        x = self.through_layers(x, terms, padding, *sources)
        return States(x, padding, terms.shared)


class WordScores(nn.Module):
    """BERT's output: a score for each type of the dictionary."""

    def __init__(self, entries: int, channels: int, activation: Callable[[Tensor], Tensor]):
        super().__init__()
        self.dense, self.layer_norm = nn.Linear(channels, channels), nn.LayerNorm(channels)
        self.weight = nn.Parameter(torch.zeros(entries, channels))
        self.bias, self.activation = nn.Parameter(torch.zeros(entries)), activation

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(batch, length, types)`` for ``(batch, length, channels)``."""
        return F.linear(self.layer_norm(self.activation(self.dense(x))), self.weight, self.bias)


class TrainedModel(nn.Module):
    """A BERT (an encoder), a language model (a decoder) or a translation model (both)."""

    def __init__(self, args: Namespace, weights: Dict[str, Tensor]):
        super().__init__()
        sides = {side: f"{side}.embed_tokens.weight" in weights for side in ("encoder", "decoder")}
        self.encoder: Any
        self.decoder: Any
        self.encoder, self.decoder = (
            TokenStack(args, side, weights) if has_side else None
            for side, has_side in sides.items()
        )
        entries, channels = weights["output.weight"].shape
        self.output: nn.Module = nn.Linear(channels, entries, bias=False)
        if "output.bias" in weights:
            self.output = WordScores(entries, channels, _ACTIVATIONS[args.activation_fn])
        # ADMIN's ω, which the layers of models without it lack
        for name in (name for name in weights if name.endswith(".omega")):
            omega = nn.Parameter(torch.ones_like(weights[name]))
            self.get_submodule(name.rpartition(".")[0]).register_parameter("omega", omega)

    def forward(
        self, tokens: Tensor, targets: Optional[Tensor] = None, segments: Optional[Tensor] = None
    ) -> Tensor:
        """Return scores ``(batch, length, types)``: of each token, or of the one that follows it.

        Args:
            tokens: ``(batch, length)``, of the text, or of the source of a translation.
            targets: ``(batch, target length)``, of the translation so far; it begins with ``</s>``.
            segments: ``(batch, length)``, see :class:`TokenStack`.
        """
        if self.encoder is None:
            hidden = self.decoder(tokens)
        else:
            hidden = self.encoder(tokens, segments)
            hidden = hidden if self.decoder is None else self.decoder(targets, source=hidden)
        return self.output(hidden.states)


def load(folder: str) -> TrainedModel:
    """Return a trained model that ``posenc export`` has written, in evaluation and float32.

    Nothing in the folder is run. Heads of fine-tuning are left out, and so is dropout.

    Raises:
        UsageError: a file is missing or damaged; or the model has parts that are not made here,
            such as adaptive embeddings.
    """
    # they need NumPy, which all else here does not
    from fairseq_posenc.checkpoints.folders import read_folder

    description, stored = read_folder(folder)
    weights = {}
    for name, weight in stored.items():
        begins = next((old for old in _NAMES if name.startswith(old)), "")
        stem, dot, last = name[len(begins) :].rpartition(".")
        if last != "version" and not name.startswith(_HEADS):
            weights[f"{_NAMES.get(begins, '')}{stem}{dot}{_OMEGAS.get(last, last)}"] = weight
    args = Namespace(**description["model"])
    try:
        if getattr(args, "cross_self_attention", False) or "output.weight" not in weights:
            raise ValueError("it has --cross-self-attention, or adaptive embeddings")
        if getattr(args, "no_source_eos", False):
            raise ValueError("it has --no-source-eos")
        for side in ("encoder", "decoder"):
            if getattr(args, f"{side}_attention_heads", 1) < 1:
                raise ValueError(f"its {side} has no heads")
        if args.activation_fn not in _ACTIVATIONS:
            raise ValueError(f"it has --activation-fn {args.activation_fn}")
        model = TrainedModel(args, weights)
        for module in model.modules():
            if getattr(args, "layer_norm_eps", None) and isinstance(module, nn.LayerNorm):
                module.eps = args.layer_norm_eps
        model.load_state_dict(weights)
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())
        raise UsageError(f"{folder} has no model that can be made here: {reason:.300}") from None
    return model.eval()
