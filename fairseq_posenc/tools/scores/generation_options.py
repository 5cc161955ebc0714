"""Options of ``fairseq-generate`` by which hypotheses are not, or not only, the model's own.

fairseq logs them all at the start, in the same file as its output unless that was parted from it.
"""

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from fairseq_posenc.errors import UsageError

_OFF = ("None", "False", "0", "0.0", "-1", "-1.0", "''", "'{}'", '"{}"', "{}", "[]")
_REFUSED = {
    "score_reference": "its hypotheses are the references",
    "prefix_size": "its hypotheses begin with words of the references",
    "constraints": "its hypotheses were made to hold words that were given",
}
# "{}" is the value
_REMARKS = {
    "lm_path": "a language model took part in the translation (--lm-path {})",
    "iter_decode_with_external_reranker": "another model chose among the translations "
    "(--iter-decode-with-external-reranker)",
    "replace_unk": "unknown words were replaced by words of the source (--replace-unk)",
    "sampling": "translations were drawn at random (--sampling)",
    "retain_dropout": "dropout was on in the translation (--retain-dropout)",
    "match_source_len": "translations were made as long as their sources (--match-source-len)",
    "truncate_source": "sources were cut to --max-source-positions (--truncate-source)",
    "model_overrides": "the model's own options were changed (--model-overrides {})",
}
_TASK = (
    "source_lang", "target_lang", "decoder_langtok", "lm_weight", "gen_subset", "path",
    "post_process",
)  # fmt: skip
_LENGTH = ("max_len_a", "max_len_b")
_DEFAULT_LENGTH = 200  # fairseq's max_len_b; its max_len_a is 0
_PILED_UP = 3  # translations of one length, the longest of all
_TRAINED = re.compile(r"\| models were trained in (.{1,300})")
_SIGNATURE = re.compile(r"\| (position:\S+)")
_NAMES = "|".join((*_REFUSED, *_REMARKS, *_TASK, *_LENGTH, "fp16", "distributed_world_size"))
# 'prefix_size': 3, as fairseq logs a configuration, or prefix_size=3, as a namespace
_VALUE = re.compile(rf"\b({_NAMES})(?:': |=)('[^']*'|\"[^\"]*\"|[^\s,}})]+)")


class GenerationOptions(NamedTuple):
    """The options that matter here, as they are logged; none where there is no log.

    ``trained`` is the precision of the models' training and its hardware, and ``signature`` that of
    their encoding, as our models log them.
    """

    values: Dict[str, str]
    trained: Optional[str] = None
    signature: str = ""

    def precision(self) -> Dict[str, Optional[str]]:
        """Return the precision of ``generation`` and of ``training``, None where not known."""
        fp16 = self.values.get("fp16")
        generation = None if fp16 is None else "float16" if fp16 == "True" else "float32"
        return {"generation": generation, "training": self.trained}

    def value(self, name: str) -> str:
        """Return an option's value, empty where it is off or not known."""
        value = self.values.get(name, "")
        return "" if value in _OFF else value.strip("'\"")

    def check(self, path: str, tags: int, constrained: bool) -> None:
        """Refuse hypotheses that were made with the references in sight.

        Args:
            tags: of languages at the beginning of each T-line, which a prefix may give away.
            constrained: whether the output has lines of constraints, as of fairseq-interactive.
        """
        forced = tags + (self.value("decoder_langtok") == "True")
        for name, reason in _REFUSED.items():
            value = self.value(name)
            if name == "prefix_size" and value in map(str, range(forced + 1)):
                continue
            if value or (name == "constraints" and constrained):
                option = f"--{name.replace('_', '-')}"
                value = "" if value in ("", "True") else f" {value}"
                raise UsageError(
                    f"{path} was made with {option}{value}: {reason}; run fairseq-generate without "
                    "it to translate"
                )

    def remarks(self) -> List[str]:
        """Return what the user should know of the way in which hypotheses came about."""
        remarks = []
        for name, text in _REMARKS.items():
            value = self.value(name)
            if value and (name != "lm_path" or self.value("lm_weight")):
                remarks.append(text.format(value))
        models = len(self.value("path").split(":"))
        if models > 1:
            remarks.append(f"translations are those of {models} models together (--path)")
        if self.value("gen_subset").startswith("train"):
            remarks.append("these sentences are of the training set (--gen-subset)")
        return remarks

    def limit_remark(self, lengths: Mapping[int, int], sources: Mapping[int, str]) -> Optional[str]:
        """Return how many translations end at fairseq's limit of length; None where none does.

        Args:
            lengths: tokens of the hypothesis of each sentence, without the end of sentence.
            sources: the text of S-lines by sentence.
        """
        if not lengths:
            return None
        a, b = (self.values.get(name, "") for name in _LENGTH)
        per_token, least = float(a or 0), float(b or _DEFAULT_LENGTH)
        longest = max(lengths.values())
        if not b:  # no log
            count = list(lengths.values()).count(longest)
            if longest != _DEFAULT_LENGTH and (longest < _DEFAULT_LENGTH / 2 or count < _PILED_UP):
                return None
            limit = f"at {longest} tokens"
        else:
            if per_token and (self.value("post_process") or not lengths.keys() <= sources.keys()):
                return None  # how many subwords the sources have is not known
            # fairseq takes the longest source of a batch, so that others may be longer than this
            limits = {
                n: int(per_token * (len(sources[n].split()) + 1 if per_token else 0) + least)
                for n in lengths
            }
            count = sum(length >= limits[n] for n, length in lengths.items())
            limit = f"at the limit of length (--max-len-a {per_token:g} --max-len-b {least:g})"
        if not count:
            return None
        return (
            f"{count} of {len(lengths)} translations end {limit} and may be cut: give fairseq-"
            f"generate more, as --max-len-a {max(1.5, 2 * per_token):g} --max-len-b {least:g}"
        )


def read_options(log: Sequence[str]) -> GenerationOptions:
    """Read the options from the lines of an output that are no sentences."""
    values: Dict[str, str] = {}
    trained, signature = None, ""
    for line in log:
        for name, value in _VALUE.findall(line):
            values.setdefault(name, value)
        match = _TRAINED.search(line)
        trained = match.group(1).strip() if match else trained
        match = _SIGNATURE.search(line)
        signature = match.group(1) if match else signature
    return GenerationOptions(values, trained, signature)


def shared_beginning(hypotheses: Sequence[str], references: Sequence[str]) -> int:
    """Return with how many words of its reference every hypothesis begins.

    0 where that proves nothing: of few sentences, where all begin alike, and where all are equal.
    """
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references)]
    firsts = {tuple(reference[:1]) for _, reference in pairs}
    if len(pairs) < 20 or len(firsts) < 5 or all(h == r for h, r in pairs):
        return 0
    return min(_common(*pair) for pair in pairs if all(pair))


def _common(words: Sequence[str], more_words: Sequence[str]) -> int:
    differs = (n for n, (a, b) in enumerate(zip(words, more_words)) if a != b)
    return next(differs, min(len(words), len(more_words)))
