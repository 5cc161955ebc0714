"""Conditional positions: a convolution over the first layer's output (Chu et al. 2021)."""

from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from fairseq_posenc.encodings.base import Encoding, Positions, StackConfig, Terms

Cache = Dict[str, Dict[str, Any]]


class Conditional(Encoding):
    """The Positional Encoding Generator in one dimension (Chu et al. 2021, section 3.2).

    After the first layer ("position 0", section 5.2), with hidden states ``x[i, b]`` that are 0
    beyond the ends and at padding, a kernel ``w`` of ``k`` taps per channel and a bias ``c``::

        encoder:  y[i] = x[i] + c + Σ_j w[j] · x[i + j - (k - 1) / 2]     j = 0 … k - 1
        decoder:  y[i] = x[i] + c + Σ_j w[j] · x[i + j - (k - 1)]

    The paper's convolution is centred. In the decoder it must not see the future, so its window
    ends at the token itself. Zeros beyond the ends are what makes absolute positions visible
    (appendix B.3). Any length can be encoded. Parameters: ``conv.weight`` ``(channels, 1, k)`` and
    ``conv.bias`` ``(channels,)``, drawn as torch does for ``Conv1d``.

    The paper's class token passes by (Algorithm 1). Our reading for BERT: [CLS], the first token,
    is that class token. ``y = x`` there, and the others see zeros in its place.

    Args:
        kernel_size: k, odd and at least 3 (3, the paper's "k ≥ 3").
        convolve_cls: treat [CLS] like any token (off).
    """

    export_error = "it is a convolution of the hidden states after the first layer"

    def __init__(self, stack: StackConfig, kernel_size: int = 3, convolve_cls: bool = False):
        super().__init__(stack)
        if convolve_cls and not stack.has_cls:
            raise ValueError("convolve cls is for BERT: there is no [CLS] here")
        if not (isinstance(kernel_size, int) and kernel_size >= 3 and kernel_size % 2):
            raise ValueError(f"kernel size must be odd and at least 3, not {kernel_size}")
        channels = stack.channels
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)
        self.kernel_size = kernel_size
        self.cls_passes = stack.has_cls and not convolve_cls

    def forward(self, positions: Positions) -> Terms:
        """Return a term that acts on the first layer's output."""
        return Terms(after_layer={0: lambda x: self.generate(x, positions)})

    def generate(self, x: Tensor, positions: Positions) -> Tensor:
        """Return hidden states ``(length, batch, channels)`` with their encoding added."""
        # hidden: (batch, length), zeros for the convolution: padding, and [CLS] if it passes
        masked, hidden = x, positions.padding_mask
        if self.cls_passes:
            # padding before the first token has its number, too
            first = positions.numbers.eq(0)
            hidden = first if hidden is None else hidden | first
        if hidden is not None:
            masked = x.masked_fill(hidden.t().unsqueeze(-1), 0)
        # window: (length + k - 1, batch, channels), with what stands before and behind the tokens
        if positions.cache is not None:
            window = self._append_to_cache(masked, positions.cache)
        else:
            before = self.kernel_size - 1 if self.stack.decoder else self.kernel_size // 2
            window = nn.functional.pad(masked, (0, 0, 0, 0, before, self.kernel_size - 1 - before))
        added = self.convolve(window)
        return x + (added.masked_fill(first.t().unsqueeze(-1), 0) if self.cls_passes else added)

    def convolve(self, window: Tensor) -> Tensor:
        """Return the sum over taps: ``(length + k - 1, batch, channels)`` to ``(length, …)``.

        One multiplication per tap on the layout at hand is faster than ``conv1d``, which would
        transpose to ``(batch, channels, length)`` and back.
        """
        length = window.size(0) - self.kernel_size + 1
        taps = self.conv.weight.squeeze(1).t()  # (k, channels)
        bias: Any = self.conv.bias
        total = bias + window[:length] * taps[0]
        for tap in range(1, self.kernel_size):
            total = torch.addcmul(total, window[tap : tap + length], taps[tap])
        return total

    def _append_to_cache(self, newest: Tensor, cache: Cache) -> Tensor:
        """Return the last k hidden states, and keep k - 1 of them for the next step."""
        past = cache.get(self._key, {}).get("hidden")
        if past is None:
            past = newest.new_zeros(self.kernel_size - 1, *newest.shape[1:])
        window = torch.cat([past, newest])
        cache[self._key] = {"hidden": window[1:]}
        return window

    @property
    def _key(self) -> str:
        return f"conditional.{id(self)}"

    def reorder_incremental_state(self, cache: Cache, order: Tensor) -> Optional[Cache]:
        """Follow the beam search, which calls this on every module of a decoder."""
        if self._key in cache:
            past = cache[self._key]["hidden"]
            cache[self._key] = {"hidden": past.index_select(1, order)}
        return cache
