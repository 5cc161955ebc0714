"""What ``fairseq-generate`` prints: the lines S-id, T-id, H-id and D-id, and how to read them."""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Dict, List, Mapping, Optional, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import parse_number, read_lines
from fairseq_posenc.tools.scores.data_folder import translated_split
from fairseq_posenc.tools.scores.generation_options import (
    GenerationOptions,
    read_options,
    shared_beginning,
)
from fairseq_posenc.tools.scores.tags import Untagged, cut_tags, without_tags
from fairseq_posenc.tools.scores.texts import BPE_SYMBOLS, Languages

_LINE = re.compile(r"([STHD])-([0-9]{1,15})\t(.*)", re.DOTALL)
_POSITIONS = re.compile(r"P-([0-9]{1,15})\t(.*)")
_DICTIONARY = re.compile(r"\| \[(\S{1,40})\] dictionary: [0-9]+ types")
_CONSTRAINT = re.compile(r"C-[0-9]{1,15}\t")
_SKIPPED = re.compile(r"[0-9,]+ samples have invalid sizes and will be skipped")
_LOG_MESSAGE = re.compile(r"\| (?:INFO|WARNING) \| fairseq|(?:INFO|WARNING):fairseq")


@dataclass
class GenerateOutput:
    """The sentences of one output of ``fairseq-generate``, in the order of the test set.

    ``hypotheses`` are H-lines: tokens as the model made them; ``decoded`` D-lines: the same after
    fairseq's ``--bpe`` and ``--tokenizer``, if given. The output may lack T- and S-lines.
    ``languages`` are those that fairseq's log names, or those of the data's text. Tags of
    languages are left out; ``remarks`` are what the user should know; for ``precision`` see
    :meth:`GenerationOptions.precision`. ``joined`` is the kind of subwords that fairseq has joined,
    as its log says.
    """

    hypotheses: List[str]
    decoded: List[str]
    references: Optional[List[str]]
    sources: Optional[List[str]]
    languages: Languages = Languages()
    remarks: List[str] = field(default_factory=list)
    precision: Mapping[str, Optional[str]] = field(default_factory=dict)
    joined: str = ""


def read_generate_output(
    path: str, expected: Optional[int] = None, data: Optional[str] = None
) -> GenerateOutput:
    """Read an output of ``fairseq-generate``: lines in any order, log lines in between.

    Of several hypotheses of a sentence (``--nbest``) the one with the best score is taken, the
    first one of equals.

    Args:
        expected: the number of sentences of the test set, if known.
        data: the binarised folder, which knows how many sentences its splits have. Without both a
            missing sentence at the very end cannot be noticed.
    """
    lines = read_lines(path)
    texts_of, lengths = _texts_by_letter(path, lines)
    log = [line for line in lines if not _LINE.fullmatch(line)]
    options = read_options(log)
    for letter in "HD":
        if not texts_of[letter]:
            raise UsageError(
                f"{path} has no {letter}-lines: give the whole output of fairseq-generate"
            )
    count = 1 + max(max(of, default=0) for of in texts_of.values())
    size, of_text = translated_split(data, texts_of, count)
    total = size or max(expected or 0, count)
    for letter, texts in texts_of.items():
        if texts and len(texts) < total:
            raise _incomplete(path, letter, texts, total, options, log)
    if expected not in (None, total):
        raise UsageError(
            f"the reference has {expected} lines, and {path} all {total} sentences: give the "
            "references of these sentences, one a line"
        )
    ordered = {letter: [texts[i] for i in sorted(texts)] for letter, texts in texts_of.items()}
    untagged, remarks = _without_tags(ordered)
    tags = untagged["T"].first
    options.check(path, tags, any(map(_CONSTRAINT.match, log)))
    remarks += options.remarks()
    limit_remark = options.limit_remark(lengths, texts_of["S"])
    remarks += [limit_remark] if limit_remark else []
    hypotheses, references = untagged["H"].lines, untagged["T"].lines
    joined = options.value("post_process")
    remarks += _reference_remarks(hypotheses, references, options)
    return GenerateOutput(
        hypotheses=hypotheses,
        decoded=untagged["D"].lines,
        references=references or None,
        sources=untagged["S"].lines or None,
        languages=_languages(log, options, of_text),
        remarks=remarks,
        precision=options.precision(),
        joined=joined if joined in BPE_SYMBOLS else "",
    )


def compare_models(path: str, scores: str) -> List[str]:
    """Return a remark if an output and the scores of references name two files of models."""
    of_output, of_scores = (
        read_options([line for line in read_lines(file) if not _LINE.fullmatch(line)])
        for file in (path, scores)
    )
    difference = f"{scores} has scores by {{}}, {path} is of {{}}"
    signatures = of_scores.signature, of_output.signature
    if all(signatures) and len(set(signatures)) > 1:
        raise UsageError(f"{difference.format(*signatures)}: give those of one model")
    models = of_scores.value("path"), of_output.value("path")
    return [difference.format(*models)] if all(models) and len(set(models)) > 1 else []


def _languages(log: List[str], options: GenerationOptions, of_text: Languages) -> Languages:
    """Return the languages of the options, of the dictionaries that the log names, or of the text.

    A task of many languages names its dictionaries in the order of the alphabet, and is given the
    languages as options.
    """
    of_options = Languages(*(options.value(f"{side}_lang") or None for side in Languages._fields))
    dictionaries = [match.group(1) for match in map(_DICTIONARY.search, log) if match]
    if all(of_options):
        return of_options
    return Languages(*dictionaries) if len(dictionaries) == 2 else of_text


def _reference_remarks(
    hypotheses: List[str], references: List[str], options: GenerationOptions
) -> List[str]:
    """Return remarks on hypotheses that seem to be made of their references."""
    remarks = []
    if hypotheses == references:
        remarks.append(
            "every hypothesis is its reference, as fairseq-generate --score-reference prints them"
        )
    shared = 0 if options.values else shared_beginning(hypotheses, references)
    if shared:
        remarks.append(
            f"every hypothesis begins with {shared} words of its reference, as fairseq-generate "
            "--prefix-size makes them"
        )
    return remarks


def _without_tags(texts: Mapping[str, List[str]]) -> Tuple[Dict[str, Untagged], List[str]]:
    """Return the lines of each kind without tags of languages, and a remark on these.

    A model may forget the tag, or fairseq take it out, where the references have it.
    """
    untagged = {letter: without_tags(lines, letter == "S") for letter, lines in texts.items()}
    for letter in "HD":
        most = max(
            (untagged[side] for side in ("T", letter)),
            key=lambda side_lines: side_lines.first + side_lines.last,
        )
        untagged[letter] = untagged[letter]._replace(
            lines=[cut_tags(line, most.first, most.last) for line in texts[letter]]
        )
    letters = [letter for letter in "STHD" if untagged[letter].tags]
    if not letters:
        return untagged, []
    tags = sorted({tag for letter in letters for tag in untagged[letter].tags})
    shown = ", ".join(tags[:4]) + (", ..." if len(tags) > 4 else "")
    lines = " and ".join(f"{letter}-lines" for letter in letters if letter != "D")
    return untagged, [f"{shown} in all {lines}: tags of languages, not counted as words"]


def _incomplete(
    path: str,
    letter: str,
    texts: Mapping[int, str],
    total: int,
    options: GenerationOptions,
    log: List[str],
) -> UsageError:
    """Say which sentences have no line of a kind, and what may be the reason."""
    missing = total - len(texts)
    # a damaged id may be huge
    first = islice((i for i in range(total) if i not in texts), 5)
    named = ", ".join(map(str, first)) + (", ..." if missing > 5 else "")
    skipped = next(filter(None, map(_SKIPPED.search, log)), None)
    workers = options.value("distributed_world_size")
    advice = (
        "it was cut off, or is of another test set, or sentences were skipped as too long (raise "
        "--max-source-positions and --max-target-positions), or did not fill the last batch "
        "(--required-batch-size-multiple 1); to score a part, give --language in place of --data"
    )
    if skipped:
        advice = f"{skipped[0]}, says its log: raise --max-source-positions/--max-target-positions"
    elif workers not in ("", "1"):
        advice = f"it is of one of {workers} workers: join the outputs of all"
    return UsageError(
        f"{path} has no {letter}-line for {missing} of {total} sentences (ids {named}): {advice}"
    )


def _texts_by_letter(
    path: str, lines: List[str]
) -> Tuple[Dict[str, Dict[int, str]], Dict[int, int]]:
    """Return the texts by kind of line and number of sentence, and lengths of the hypotheses.

    Lengths are in tokens of the model, which P-lines have a number for, and one for the end.
    """
    texts: Dict[str, Dict[int, str]] = {letter: {} for letter in "HDST"}
    scores: Dict[Tuple[str, int], float] = {}
    lengths: Dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        line_at = f"{path}, line {number}"
        match = _LINE.fullmatch(line)
        if not match:
            if re.match(r"[STHD]-\d+$", line):
                raise UsageError(f"{line_at}: cut short; run fairseq-generate again")
            positions = _POSITIONS.match(line)
            if positions:
                lengths.setdefault(int(positions.group(1)), len(positions.group(2).split()) - 1)
            continue
        letter, sentence, text = match.group(1), int(match.group(2)), match.group(3)
        if _LOG_MESSAGE.search(text):
            raise UsageError(
                f"{line_at}: a log message was printed into this line; do not join the outputs by "
                "2>&1, or let fairseq-generate write a file with --results-path"
            )
        if letter in "ST":
            if sentence in texts[letter]:
                raise UsageError(f"{line_at}: {letter}-{sentence} a second time; give one output")
            texts[letter][sentence] = text
            continue
        first, tab, text = text.partition("\t")
        try:
            score = parse_number(first if tab else "")
        except ValueError:
            raise UsageError(
                f"{line_at}: expected a score and a text, separated by a tab; the line is cut "
                "short or not from fairseq-generate"
            ) from None
        if sentence not in texts[letter] or score > scores[letter, sentence]:
            scores[letter, sentence] = score
            texts[letter][sentence] = text
            if letter == "H":
                lengths.pop(sentence, None)  # what follows is the length of this one
    return texts, lengths
