"""The texts of one test set in the forms that metrics want: tokenised and plain."""

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, NamedTuple, Optional

from fairseq_posenc.data.languages import has_spaces
from fairseq_posenc.data.segmentation import detokenise_lines
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.result import TrainedLengths

# marks BERT's pieces; fairseq has no name for them: its "wordpiece" is another kind
CONTINUES = "##"
# by fairseq's names of kinds of subwords, the mark by which they are known in a text
SUBWORD_MARKS = {
    "@@ ": "@@", "subword_nmt": "@@", "none": None,
    "sentencepiece": "\u2581", "wordpiece": "_", "letter": "|", "_EOW": "_EOW",
    CONTINUES: CONTINUES,
}  # fmt: skip
LONGER = "longer"  # of source and reference
BPE_SYMBOLS = tuple(SUBWORD_MARKS)


class Languages(NamedTuple):
    """Source and target language; None where it is not known."""

    source: Optional[str] = None
    target: Optional[str] = None


UNKNOWN = Languages()


def join_subwords(line: str, symbol: str) -> str:
    """Return a line with its subwords joined; ``symbol`` is a key of ``SUBWORD_MARKS``."""
    if symbol == CONTINUES:
        return line.replace(f" {CONTINUES}", "")
    # here, as it loads torch, and `posenc score --help` needs none
    from fairseq.data.data_utils import post_process

    joined: str = post_process(line, symbol)
    return joined


class RoundTrip(NamedTuple):
    """References as text, cut into subwords and made text again, and with what is unknown to the
    dictionary left out."""

    references: List[str]
    restored: List[str]
    with_unknown: List[str]


@dataclass
class TestSet:
    """Hypotheses and references, one string per sentence, all lists equally long.

    They are plain text, and tokens with spaces between them and subwords joined. ``subwords`` are
    numbers per sentence of ``source`` and ``reference``, where they are known; ``remarks`` what the
    user should know of the texts; by the rules of ``languages`` they were (de)tokenised, which
    files of binarised data call ``names``. Words of plain text are counted by its blanks; of
    ``source`` it is None where there are tokens alone.
    ``tokens_back`` is the text of ``reference_tokens`` where ``reference`` is raw text. Where each
    sentence has several references, lengths are those of ``reference``, and the others are in
    ``more_references``. ``precision`` is that of ``generation`` and of ``training``, where an
    output of fairseq-generate tells. Where they are known, ``longest_trained`` are the longest
    sentences of the training set, ``within`` tells of each sentence whether it is no longer, and
    ``round_trip`` are the references after the preparation of the training text.
    """

    hypothesis: List[str]
    reference: List[str]
    hypothesis_tokens: List[str]
    reference_tokens: List[str]
    source_tokens: Optional[List[str]] = None
    subwords: Dict[str, List[int]] = field(default_factory=dict)
    remarks: List[str] = field(default_factory=list)
    languages: Languages = Languages()
    tokens_back: Optional[List[str]] = None
    names: Languages = Languages()
    source: Optional[List[str]] = None
    is_plain: bool = False
    more_references: List[List[str]] = field(default_factory=list)
    more_reference_tokens: List[List[str]] = field(default_factory=list)
    precision: Mapping[str, Optional[str]] = field(default_factory=dict)
    longest_trained: Optional[TrainedLengths] = None
    within: Optional[List[bool]] = None
    round_trip: Optional[RoundTrip] = None

    def __len__(self) -> int:
        return len(self.hypothesis)

    def plain_sources(self) -> Optional[List[str]]:
        """Return the text of the sources, made of their tokens where there are these alone."""
        if self.source or not self.source_tokens:
            return self.source
        return detokenise_lines(self.source_tokens, self.languages.source or "")

    def without(self, token: str) -> "TestSet":
        """Return the hypotheses and references without a token, as ``<sep>``, wherever it stands.

        It is found in plain text too where a (de)tokeniser split it or glued it to a quote.
        """
        pattern = re.compile(r"\s*" + r"\s*".join(map(re.escape, token)) + r"\s*")
        if not any(pattern.search(line) for line in self.reference):
            raise UsageError(f"no reference holds {token!r}, which was to be left out")

        def left(lines: List[str]) -> List[str]:
            return [pattern.sub(" ", line).strip() for line in lines]

        plain = left(self.hypothesis), left(self.reference)
        return TestSet(
            *plain,
            left(self.hypothesis_tokens),
            left(self.reference_tokens),
            more_references=[*map(left, self.more_references)],
            more_reference_tokens=[*map(left, self.more_reference_tokens)],
        )

    def lengths(self, side: str, unit: str) -> List[int]:
        """Return the length of each sentence, without the end of sentence.

        The unit is ``words`` (between blanks, with subwords joined), ``tokens`` (words and marks,
        as the tokenizer parts them), ``characters`` (but spaces), or ``subwords`` (as the model
        saw them). The side ``longer`` has the larger of both lengths.
        """
        if side == LONGER:
            sides = (self.lengths(name, unit) for name in ("source", "reference"))
            return [max(pair) for pair in zip(*sides)]
        if unit == "subwords":
            if side not in self.subwords:
                raise UsageError(
                    f"--length-unit subwords: the subwords of the {side} are not known. They are "
                    "in the output of fairseq-generate made without --remove-bpe, --bpe and "
                    "--tokenizer; give it with --generated, or take --length-unit words"
                )
            return self.subwords[side]
        tokens = self.source_tokens if side == "source" else self.reference_tokens
        if tokens is None:
            raise UsageError(
                "the length of the source is asked for, but there is no source, or its language is "
                "not known: give --source and --source-language, or take --length-of reference"
            )
        if unit == "characters":
            return [sum(map(len, line.split())) for line in tokens]
        if unit == "tokens":
            return [len(line.split()) for line in tokens]
        if not self._has_words(side):
            raise UsageError(
                f"--length-unit words: no spaces part the words of the {side}; take characters or "
                "subwords"
            )
        # Moses parts words at marks of Persian, Sinhala or Yoruba
        plain = self.source if side == "source" else self.reference if self.is_plain else None
        return [len(line.split()) for line in plain or tokens]

    def usual_unit(self, side: str) -> str:
        """Return the unit that lengths of a side are counted in where none is asked for."""
        return "words" if self._has_words(side) else "characters"

    def _has_words(self, side: str) -> bool:
        if side == LONGER:
            return self._has_words("source") and self._has_words("reference")
        return has_spaces(self.languages.source if side == "source" else self.languages.target)
