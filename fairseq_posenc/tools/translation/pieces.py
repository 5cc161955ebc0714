"""Learning sentencepieces of raw text that give back every character of it.

SentencePiece's own rules write some characters as others (NFKC: … as ..., ， as a comma). Ours
writes only what cannot stand in a piece, each as a character of its own from the private use area,
and back when pieces are joined. The rule is part of the model, so that every program that cuts and
joins by the model does the same.
"""

import os
import tempfile
from collections import Counter
from typing import Dict, Iterator, Optional, Sequence, Set, Tuple

from fairseq.data import Dictionary

from fairseq_posenc.data.segmentation import SentencePieces
from fairseq_posenc.data.subwords import SentencePiece, library, model_proto_class
from fairseq_posenc.errors import UsageError, first_line
from fairseq_posenc.files import stream_lines
from fairseq_posenc.tools.bert import sampling
from fairseq_posenc.tools.bert.vocabulary import train_unigram, write_model
from fairseq_posenc.tools.writing import replacing

_MOST_LINES = 4_000_000  # which the library holds in memory
# below a number of pairs, how many pieces besides the characters; small text has few words twice
_DEFAULTS = ((100_000, 4_000), (1_000_000, 10_000), (float("inf"), 32_000))
_META = 3  # <unk>, <s> and </s>
# A piece is "<" or has none, so that none is <pad> or </s>, which dictionaries of fairseq know.
_ALONE = ["<"]
# fairseq parts pieces at every blank; the library takes ▁ for a space and skips lines with ▅
_BLANKS = [chr(code) for code in range(0x110000) if chr(code).isspace() and chr(code) not in " \n"]
_HIDDEN = [*_BLANKS, "\u2581", "\u2585"]
_FIRST_MARK = 0xE000


def rules() -> Dict[str, str]:
    """Return what is written for characters that cannot stand in a piece.

    The characters that stand for them are written with an escape before them where the text itself
    has them, so that joining is the exact reverse.
    """
    marks = {character: chr(_FIRST_MARK + n) for n, character in enumerate(_HIDDEN)}
    escape = chr(_FIRST_MARK + len(marks))
    return {**marks, **{mark: escape + mark for mark in [*marks.values(), escape]}}


def default_pieces(pairs: int) -> int:
    """Return how many pieces so many pairs get by default, besides the characters."""
    return next(count for end, count in _DEFAULTS if pairs < end)


def learn(files: Sequence[str], folder: str, size: Optional[int] = None) -> int:
    """Learn a unigram model of all files together; write ``sentencepiece.model`` into a folder.

    Every character of the text gets a piece. The same text gives the same model in every run of the
    same version of the library, which is written beside it.

    Args:
        files: raw text, one sentence a line.
        size: pieces; small text gives fewer. None: 4,000, 10,000 or 32,000 by the number of lines,
            and one for each character.
    """
    total, characters = _count(files)
    least = len(characters | {"\u2581", *_ALONE})
    if size is None:
        size = least + default_pieces(total // len(files))
    if size < least:
        raise UsageError(
            f"{size} sentencepieces are too few for the {least} characters of this text; give more"
        )
    lines = (line for line in sampling.spread(_lines(files), total, _MOST_LINES) if line.strip())
    model = _train(lines, size, characters)
    write_model(model, folder)
    return len(library("sentencepiece").SentencePieceProcessor(model_proto=model)) - _META


def _count(files: Sequence[str]) -> Tuple[int, Set[str]]:
    """Return the number of lines, and the characters that need a piece."""
    characters: Set[str] = set()
    total = 0
    for line in _lines(files):
        characters.update(line)
        total += 1
    written = rules()
    # the library has no piece for NUL, which then stands for itself
    required = {mark for c in characters - {" ", "\0"} for mark in written.get(c, c)}
    if not required:
        raise UsageError("there is no text to learn sentencepieces from")
    return total, required


def _train(lines: Iterator[str], size: int, characters: Set[str]) -> bytes:
    model_proto = model_proto_class()  # before minutes of work
    with tempfile.TemporaryDirectory() as temporary:
        rules_file, inverse_file = f"{temporary}/rules.tsv", f"{temporary}/inverse.tsv"
        _write_rules(rules_file, rules())
        _write_rules(inverse_file, {mark: character for character, mark in rules().items()})
        try:
            model = train_unigram(
                lines,
                vocab_size=size + _META,
                character_coverage=1.0,
                required_chars="".join(sorted(characters.difference(_ALONE))),  # and of other lines
                user_defined_symbols=_ALONE,
                normalization_rule_tsv=rules_file,
                denormalization_rule_tsv=inverse_file,
                remove_extra_whitespaces=False,
            )
        except RuntimeError as error:
            raise UsageError(f"SentencePiece cannot learn: {first_line(error)}") from None
    message = model_proto.FromString(model)
    for rule in (message.normalizer_spec, message.denormalizer_spec):
        rule.ClearField("normalization_rule_tsv")  # a file of this machine and this run
    return message.SerializeToString()


def write_dictionary(files: Sequence[str], folder: str) -> str:
    """Write ``dict.txt`` of all pieces of the model in a folder, counted in text; return its path.

    fairseq's own would lack those that the training text does not become, such as q where every
    word with it is a piece, so that a character which training has seen would be unknown.
    """
    counts: Counter = Counter()
    for line in _lines(files):
        counts.update(line.split())
    dictionary = Dictionary()
    model = SentencePieces(os.path.join(folder, SentencePiece.name))
    for piece in dict.fromkeys([*counts, *model.vocabulary()]):
        dictionary.add_symbol(piece, counts[piece])
    dictionary.finalize(padding_factor=8)  # fairseq-preprocess's
    path = os.path.join(folder, "dict.txt")
    with replacing(path) as stream:
        dictionary.save(stream)
    return path


def _lines(files: Sequence[str]) -> Iterator[str]:
    for path in files:
        yield from stream_lines(path)


def _write_rules(path: str, changes: Dict[str, str]) -> None:
    with open(path, "w", encoding="ascii") as stream:
        for pair in changes.items():
            numbers = (" ".join(f"{ord(character):X}" for character in side) for side in pair)
            stream.write("\t".join(numbers) + "\n")
