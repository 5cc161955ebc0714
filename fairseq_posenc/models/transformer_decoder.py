"""fairseq's Transformer decoder with a position encoding of ours."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from torch import Tensor, nn

from fairseq_posenc import options
from fairseq_posenc.attention import admin
from fairseq_posenc.attention.attention import ON_HOST, REORDERING, State
from fairseq_posenc.attention.cache import beam_size
from fairseq_posenc.attention.joint import JointDecoderLayer
from fairseq_posenc.attention.layers import (
    DecoderLayer,
    as_arguments,
    layers_after_layerdrop,
    wrapped,
)
from fairseq_posenc.encodings import Positions, Terms
from fairseq_posenc.models.padding import find_padding, left_padding, roll_rows

# What the decoder keeps in the state for itself while decoding step by step: the modules that have
# something to reorder, found once; and whether the first step had padding on the left.
_REORDERED_MODULES = "reordered modules"
_PADDING, _LEFT = "padding", "left"


class PosencTransformerDecoder(TransformerDecoderBase):
    """Decoder of ``--arch posenc_transformer``; parameter names and arguments are fairseq's.

    The configuration carries the options of the encoding as ``position_…``.
    """

    def __init__(
        self, cfg: TransformerConfig, dictionary, embed_tokens, no_encoder_attn: bool = False
    ):
        # fairseq's constructor calls build_decoder_layer once per layer, from the first on
        self.omegas = iter(admin.omegas_by_layer(cfg, "decoder"))
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=no_encoder_attn)
        stack = options.stack(
            channels=self.embed_dim,
            decoder=True,
            max_length=cfg.max_target_positions,
            first_index=self.padding_idx + 1,
            layers=cfg.decoder.layers,
            heads=cfg.decoder.attention_heads,
        )
        self.embed_positions = options.build(cfg, stack)
        # criterions that train the attention to follow alignments need its weights in training
        self.trains_alignment = getattr(cfg, "load_alignments", False)
        if getattr(cfg, "no_embedding_dropout", False):
            self.dropout_module.p = 0.0

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[Dict[str, Any]] = None,
        incremental_state: Optional[State] = None,
        **kwargs: Any,
    ):
        """Return scores ``(batch, length, types)`` and fairseq's dictionary of extras."""
        if incremental_state is not None and prev_output_tokens.size(1) == 1 and encoder_out:
            beam = self._equal_hypotheses(prev_output_tokens, encoder_out)
            if beam > 1:
                return self._first_step(
                    prev_output_tokens, encoder_out, incremental_state, beam, **kwargs
                )
        return super().forward(prev_output_tokens, encoder_out, incremental_state, **kwargs)

    def _equal_hypotheses(self, tokens: Tensor, encoder_out: Dict[str, Any]) -> int:
        """Return how many hypotheses each sentence has if they are all the same; or 1.

        Args:
            tokens: ``(batch, 1)``, the first of each hypothesis.
            encoder_out: whose ``sentences`` ``(batch,)`` number the sentence of each hypothesis.
        """
        # one copy for both, as each copy from a GPU waits for it
        stacked = torch.stack([encoder_out["sentences"][0], tokens[:, 0]])
        sentences, firsts = stacked.cpu()
        beam = beam_size(sentences)
        same = torch.equal(firsts[::beam].repeat_interleave(beam), firsts)
        return beam if same else 1

    def _first_step(
        self,
        tokens: Tensor,
        encoder_out: Dict[str, Any],
        incremental_state: State,
        beam: int,
        **kwargs: Any,
    ):
        """Take the first step of a beam search for one hypothesis of each sentence.

        The others are the same. From then on they share the projected source of their sentence,
        which would otherwise be kept ``beam`` times in every layer.
        """
        # batch = sentences · beam; first: (sentences, 1)
        first = tokens[::beam]
        sources = {
            "encoder_out": [x[:, ::beam] for x in encoder_out["encoder_out"]],
            "encoder_padding_mask": [x[::beam] for x in encoder_out["encoder_padding_mask"]],
            "position_shared": [x[::beam] for x in encoder_out["position_shared"]],
            "padded": encoder_out["padded"],
        }
        # x: (sentences, 1, types)
        x, extra = super().forward(first, sources, incremental_state, **kwargs)
        # repeat caches and results for each hypothesis; order: (batch,)
        rows = torch.arange(len(first)).repeat_interleave(beam)
        order = torch.arange(len(first), device=first.device).repeat_interleave(beam)
        self._reorder(incremental_state, order, rows)
        attention = [y if y is None else y[order] for y in extra["attn"]]
        states = [y[:, order] for y in extra["inner_states"]]
        return x[order], {"attn": attention, "inner_states": states}

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[Dict[str, Any]],
        incremental_state: Optional[State] = None,
        full_context_alignment: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ):
        """Return features ``(batch, length, channels)`` and fairseq's dictionary of extras.

        With ``incremental_state``, the tokens are the prefix so far and the features those of the
        newest token. Attention weights ``attn`` are ``(batch, length, source length)``, the mean
        over ``alignment_heads``, of the last layer if ``alignment_layer`` does not say otherwise;
        in training there are none unless it does or ``--load-alignments`` is given, as they would
        cost time.
        """
        tokens, encoder_out = prev_output_tokens, encoder_out or {}
        padded, left = self._find_padding(tokens, incremental_state)
        padding = None
        if left and self.embed_positions.by_index and incremental_state is None:
            # Tables by index need the first token in column 0: padding moves to the right, and
            # back at the end; padding: (batch,)
            padding = left_padding(tokens, self.padding_idx)
            tokens, left = roll_rows(tokens, -padding), False
        # tokens → positions → terms; step by step those of the newest token, and of its keys
        positions = Positions.of_tokens(
            tokens,
            self.padding_idx,
            padded,
            shared=encoder_out.get("position_shared", []),
            cache=incremental_state,
        )
        terms: Terms = self.embed_positions(positions)
        if incremental_state is not None:
            tokens = tokens[:, -1:]
        if alignment_layer is None and (self.trains_alignment or not self.training):
            alignment_layer = self.num_layers - 1

        # terms.input is added to the embeddings; x: (length, batch, channels)
        x = self.embed(tokens, terms.input).transpose(0, 1)
        arguments = {
            "incremental_state": incremental_state,
            "self_attn_padding_mask": self._padding_mask(positions, left, full_context_alignment),
            "causal": incremental_state is None and not full_context_alignment,
        }
        # the source: (source length, batch, channels), its padding: (batch, source length)
        for name in ("encoder_out", "encoder_padding_mask"):
            arguments[name] = next(iter(encoder_out.get(name, [])), None)
        if not encoder_out.get("padded", True):  # without padding, attention needs no mask
            arguments["encoder_padding_mask"] = None
        # terms.attention goes into the layers; states: each (length, batch, channels),
        # weights: (batch, heads, length, source length), attention: (batch, length, source length)
        states, weights = self._states(x, terms, alignment_layer, arguments)
        attention = None if weights is None else weights[:, :alignment_heads].mean(dim=1).to(x)
        if padding is not None:
            states = [roll_rows(y.transpose(0, 1), padding).transpose(0, 1) for y in states]
            attention = roll_rows(attention, padding)
        features = self.finish(states[-1].transpose(0, 1))  # (batch, length, channels)
        return features, {"attn": [attention], "inner_states": states}

    def _find_padding(self, tokens: Tensor, state: Optional[State]) -> Tuple[bool, bool]:
        """Return whether there is padding that matters, and whether it is on the left.

        Step by step the first step tells: later padding is on the right of its sequence, where no
        real token sees it.
        """
        if state is None:
            return find_padding(tokens, self.padding_idx)
        cached = state.setdefault(_PADDING, {})
        if not cached:
            cached[_LEFT] = find_padding(tokens, self.padding_idx)[1]
        return cached[_LEFT], cached[_LEFT]

    def _padding_mask(
        self, positions: Positions, left: bool, full_context: bool
    ) -> Optional[Tensor]:
        """Return the mask ``(batch, keys)`` of self-attention, true at padding, or ``None``."""
        if self.cross_self_attention:  # fairseq's layer puts the source's before it
            return positions.padding_mask
        if torch.is_grad_enabled() and not left and not full_context:
            # Real tokens do not see what comes after them. Without gradients, padding may count,
            # as it does when ADMIN measures variances.
            return None
        return positions.key_padding_mask

    def _states(
        self, x: Tensor, terms: Terms, alignment_layer: Optional[int], arguments: Dict[str, Any]
    ) -> Tuple[List[Tensor], Optional[Tensor]]:
        """Return the states before the first layer and after each, and one layer's weights.

        States are ``(length, batch, channels)``, weights ``(batch, heads, length, source length)``.
        """
        states, attention = [x], None
        for number, layer in enumerate(layers_after_layerdrop(self.layers)):
            aligned = number == alignment_layer
            if layer is not None:
                own = as_arguments(terms.attention.get(number))
                x, weights = layer(x, need_attn=aligned, **arguments, **own)
                attention = weights if aligned else attention
            if number in terms.after_layer:
                x = terms.after_layer[number](x)
            states.append(x)
        return states, attention

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False) -> nn.Module:
        """Build a layer whose self-attention takes position terms."""
        if cfg.cross_self_attention:
            return wrapped(JointDecoderLayer(cfg, no_encoder_attn), cfg)
        return wrapped(DecoderLayer(cfg, no_encoder_attn, next(self.omegas)), cfg)

    def reorder_incremental_state_scripting(self, incremental_state: State, new_order: Tensor):
        """Let all modules that remember something follow the beam search."""
        # read once for all: a GPU is waited for
        self._reorder(incremental_state, new_order, new_order.cpu())

    def _reorder(self, incremental_state: State, new_order: Tensor, rows: Tensor) -> None:
        """Reorder the caches of all modules; ``rows`` is the order on the host."""
        modules: Dict = incremental_state.setdefault(_REORDERED_MODULES, {})
        if not modules:
            remembering = (m for m in self.modules() if hasattr(m, "reorder_incremental_state"))
            modules.update(enumerate(remembering))
        incremental_state[REORDERING] = {ON_HOST: rows}
        for module in modules.values():
            module.reorder_incremental_state(incremental_state, new_order)
        del incremental_state[REORDERING]

    def embed(self, tokens: Tensor, position: Optional[Tensor]) -> Tensor:
        """Return the input of the first layer ``(batch, length, channels)``."""
        x = self.embed_scale * self.embed_tokens(tokens)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if position is not None:
            x = x + position.type_as(x)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)

    def finish(self, x: Tensor) -> Tensor:
        """Return the features ``(batch, length, channels)`` from the last layer's output."""
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        return x if self.project_out_dim is None else self.project_out_dim(x)

    def max_positions(self) -> int:
        """Return the longest sequence that can be decoded; the task holds the user's limit."""
        return self.embed_positions.max_positions
