"""Queries and keys rotated by their position (Su et al. 2021: RoPE)."""

import math

import torch
from torch import Tensor

from fairseq_posenc.encodings.base import (
    AttentionTerms,
    Encoding,
    ExportedPositions,
    Positions,
    StackConfig,
    Terms,
)

METHODS = ("linear", "ntk", "yarn", "dynamic")
# YaRN: pairs that rotate more often than this over the original length keep their speed, those that
# rotate less than once are slowed down
_FAST_ROTATIONS, _SLOW_ROTATIONS = 32, 1


class Rotary(Encoding):
    """Pairs of channels of queries and keys, rotated by angles that grow with the position.

    Su et al. 2021, section 3.2.2. In a head of width d, channels ``2c`` and ``2c + 1`` of the query
    or key at position ``i`` are rotated by ::

        angle[i, c] = i · θ_c        θ_c = base ** (-2c / d)        c = 0 … d / 2 - 1

    before their product, which thus depends on distances alone. All layers and heads have the same
    angles. There are no parameters, and any length can be encoded. d must be even.

    For sequences s = ``scale`` times as long, a trained model gets smaller angles, best with some
    fine-tuning. ``scale_method`` says which become smaller; L is the ``original_length``::

        linear:  angle = i / s · θ_c
        ntk:     base becomes base · s ** (d / (d - 2))
        yarn:    angle = i · (θ_c · (1 - ramp_c) + θ_c / s · ramp_c), scores · (0.1 ln s + 1)²
                 ramp_c = (c - lo) / (hi - lo), at least 0 and at most 1
                 lo = ⌊corr(32)⌋, hi = ⌈corr(1)⌉, corr(r) = d · ln(L / 2πr) / (2 ln base)
        dynamic: base becomes base · (s · T / L - (s - 1)) ** (d / (d - 2)) for T > L tokens

    Linear is position interpolation (Chen, Wong et al. 2023, arXiv 2306.15595, eq. 4). The others
    are of Peng et al. 2024 (YaRN, arXiv 2309.00071, sections 3.1 to 3.4), with the roundings of
    transformers' ``rope_type`` yarn and dynamic. T is a sentence's own length in an encoder. A
    decoder does not know beforehand how long its sentence becomes, so there T is the longest that
    it may write (``--max-target-positions``).

    Args:
        base: its powers are the speeds of the pairs; above 1 (10000, Su et al.).
        scale: s, how many times as long sequences become, 1 or more (1).
        scale_method: ``linear``, ``ntk``, ``yarn`` or ``dynamic`` (linear).
        original_length: L, tokens of the longest sequence of the training before, for ``yarn`` and
            ``dynamic`` (0: not given).
    """

    channel_pairs: Tensor

    def __init__(
        self,
        stack: StackConfig,
        base: float = 10_000.0,
        scale: float = 1.0,
        scale_method: str = "linear",
        original_length: int = 0,
    ):
        super().__init__(stack)
        width = stack.head_channels
        if width % 2:
            raise ValueError(f"heads must have an even width to be rotated in pairs, not {width}")
        if not 1 < base < math.inf:
            raise ValueError(f"base must be a number above 1, not {base}")
        if not 1 <= scale < math.inf:
            raise ValueError(f"scale must be a number, 1 or more, not {scale}")
        if scale_method not in METHODS:
            raise ValueError(
                f"scale method must be one of {', '.join(METHODS)}, not {scale_method}"
            )
        if not (isinstance(original_length, int) and original_length >= 0):
            raise ValueError(f"original length must be a number of tokens, not {original_length}")
        needs_length = scale_method in ("yarn", "dynamic")
        if needs_length != (original_length > 0):
            verb = "needs the" if needs_length else "does not read an"
            raise ValueError(f"scale method {scale_method} {verb} original length")
        if scale_method in ("ntk", "dynamic") and width == 2:
            raise ValueError(f"scale method {scale_method} needs heads wider than 2")
        self.method, self.original_length = scale_method, original_length
        self.base, self.scale = base, scale
        if scale_method == "ntk":
            self.base, self.scale = base * scale ** (width / (width - 2)), 1.0
        elif scale_method == "dynamic" and stack.decoder:
            longest = torch.tensor(stack.max_length, dtype=torch.float64)
            self.base, self.scale = base * self._growth(longest).item(), 1.0
        self.by_length = scale_method == "dynamic" and not stack.decoder
        # by which both queries and keys become longer
        self.stretch = 0.1 * math.log(scale) + 1 if scale_method == "yarn" else 1.0
        # whole numbers, which half precision holds exactly
        channel_pairs = torch.arange(width // 2, dtype=torch.float32)
        self.register_buffer("channel_pairs", channel_pairs, persistent=False)

    def forward(self, positions: Positions) -> Terms:
        """Return the rotation of the queries, one object for all layers."""
        frequencies = self.frequencies()  # (1, d / 2)
        if self.by_length:
            # (batch, 1)
            lengths = positions.numbers.amax(dim=1, keepdim=True).to(frequencies.dtype) + 1
            frequencies = frequencies * self._growth(lengths) ** self._exponents()
        # angles: (Q, batch or 1, d / 2); rotation: (2, Q, batch or 1, d / 2)
        angles = positions.position_row.to(frequencies.dtype)[:, None, None] * frequencies
        rotation = torch.stack([angles.cos(), angles.sin()])
        terms = AttentionTerms(rotation=rotation if self.stretch == 1 else rotation * self.stretch)
        return Terms(attention=dict.fromkeys(range(self.stack.layers), terms))

    def frequencies(self) -> Tensor:
        """Return the angles ``(1, d / 2)`` by which one position rotates each pair."""
        speeds = torch.pow(self.base, self._exponents())
        if self.method == "yarn":
            slow = self._ramp()
            return speeds * (1 - slow) + speeds / self.scale * slow
        return speeds if self.by_length else speeds / self.scale

    def _precise_pairs(self) -> Tensor:
        """Return the numbers of the channel pairs in float32 at least, ``(d / 2,)``."""
        return self.channel_pairs.to(torch.promote_types(self.channel_pairs.dtype, torch.float32))

    def _exponents(self) -> Tensor:
        """Return ``-2c / d`` of each pair, ``(1, d / 2)``."""
        return self._precise_pairs().unsqueeze(0) * (-2 / self.stack.head_channels)

    def _growth(self, lengths: Tensor) -> Tensor:
        """Return the factor of the base by ``dynamic``, for sentences of ``lengths`` tokens."""
        width, times = self.stack.head_channels, lengths / self.original_length
        return (self.scale * times - (self.scale - 1)).clamp(min=1) ** (width / (width - 2))

    def _ramp(self) -> Tensor:
        """Return how much YaRN slows down each pair: 0 not at all, 1 by ``scale``; ``(d / 2,)``."""
        width = self.stack.head_channels

        def pair_that_rotates(times: int) -> float:
            logarithm = math.log(self.original_length / (times * 2 * math.pi))
            return width * logarithm / (2 * math.log(self.base))

        low = max(math.floor(pair_that_rotates(_FAST_ROTATIONS)), 0)
        high = min(math.ceil(pair_that_rotates(_SLOW_ROTATIONS)), width - 1)
        return ((self._precise_pairs() - low) / max(high - low, 0.001)).clamp(0, 1)

    def export_tables(self, length: int) -> ExportedPositions:
        """Return the angles of one position.

        Raises:
            ValueError: vectors become longer, too, or the angles depend on the sentence's length.
        """
        if self.stretch != 1:
            raise ValueError("scale method yarn makes scores larger, which angles cannot tell")
        if self.by_length and length > self.original_length:
            raise ValueError(
                "scale method dynamic makes angles depend on the sentence's length beyond "
                f"{self.original_length} tokens"
            )
        return ExportedPositions(rotation=self.frequencies()[0])
