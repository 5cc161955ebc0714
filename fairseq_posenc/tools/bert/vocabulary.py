"""Learning a vocabulary of subwords from a stream of lines."""

import io
import itertools
import os
import re
import shutil
from collections import Counter
from importlib.metadata import version
from typing import Any, Callable, Iterable, Iterator, List, Set, Tuple

from fairseq_posenc.data.subwords import (
    DICTIONARY,
    SPECIALS,
    UNKNOWN,
    VERSION,
    SentencePiece,
    Subwords,
    WordPiece,
    library,
)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.writing import replacing

# Chen et al. 2021, section 4: English, and many languages
SIZES = {"wordpiece": 30000, "sentencepiece": 120000}
# rarer characters become <unk>; 1000 is what the library proposes for BERT
WORDPIECE_CHARACTERS = 1000
# longer lines are skipped by SentencePiece's trainer, without a word; its default is 4192 bytes
_LONGEST_LINE = 1 << 20

Lines = Callable[[], Iterable[str]]


def learn_wordpiece(lines: Lines, folder: str, size: int, cased: bool = False) -> None:
    """Learn WordPiece from lines and write ``wordpiece.json`` into a folder.

    Text is normalised and cut into words as BERT does it: spaces around punctuation and around
    Chinese characters; without ``cased``, as in BERT's uncased models, letters are lowered and lose
    their accents. The same lines give the same vocabulary in every run.

    Args:
        lines: called twice; gives an iterator over the lines.
        size: of the vocabulary with the five special tokens; a small corpus gives fewer.
    """
    tokenizers = library("tokenizers")
    # without this, processes that are started later print a warning
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    normaliser = tokenizers.normalizers.BertNormalizer(lowercase=not cased)
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    alphabet, characters = _wordpiece_alphabet(_informative_lines(lines()), normaliser, splitter)
    if size <= len(alphabet) + len(SPECIALS):
        raise _too_small(size, len(alphabet) + len(SPECIALS))
    learner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=UNKNOWN))
    learner.normalizer, learner.pre_tokenizer = normaliser, splitter
    # The library numbers ##-characters in random order, and breaks ties by number: as "special
    # tokens" they come first, in our order.
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size - len(SPECIALS) + 1,
        special_tokens=[UNKNOWN, *alphabet],
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    learner.train_from_iterator(_informative_lines(lines()), trainer)
    model = tokenizers.models.WordPiece(learner.get_vocab(), unk_token=UNKNOWN)
    result = tokenizers.Tokenizer(model)
    result.normalizer, result.pre_tokenizer = normaliser, splitter
    result.decoder = tokenizers.decoders.WordPiece(cleanup=False)
    result.add_special_tokens([UNKNOWN])
    with replacing(os.path.join(folder, WordPiece.name)) as stream:
        stream.write(result.to_str())


def _wordpiece_alphabet(
    lines: Iterable[str], normaliser: Any, splitter: Any
) -> Tuple[List[str], List[str]]:
    """Return the pieces of one character, ``c`` and ``##c``, and the characters alone."""
    counts: Counter = Counter()
    neighbours: Set[Tuple[str, str]] = set()
    for line in lines:
        normal = normaliser.normalize_str(line)
        counts.update(normal)
        neighbours.update(zip(normal, normal[1:]))
    for blank in [character for character in counts if character.isspace()]:
        del counts[blank]
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = sorted(frequent[:WORDPIECE_CHARACTERS])
    inside = {
        second
        for first, second in neighbours
        if first in counts
        and second in counts
        and len(splitter.pre_tokenize_str(first + second)) == 1
    }
    return alphabet + ["##" + character for character in alphabet if character in inside], alphabet


def learn_sentencepiece(
    lines: Lines, folder: str, size: int, character_coverage: float = 0.9995
) -> None:
    """Learn a SentencePiece unigram model and write ``sentencepiece.model`` into a folder.

    Text is normalised as the library does by default (NFKC and unified spaces; case is kept). The
    same lines give the same vocabulary in every run of the same version of the library.

    Args:
        lines: called once; gives an iterator over the lines, which the library keeps in memory.
        size: of the vocabulary with the five special tokens; a small corpus gives fewer.
        character_coverage: share of the text's characters that get a piece; the rest is ``<unk>``.
    """
    try:
        model = train_unigram(
            _informative_lines(lines()),
            vocab_size=size - 2,  # the library counts <unk>, <s> and </s>
            character_coverage=character_coverage,
        )
    except RuntimeError as error:
        raise _explained(error, size) from None
    write_model(model, folder)


def train_unigram(lines: Iterator[str], **options: Any) -> bytes:
    """Learn a unigram model, with these options of the library, and return its file.

    Raises:
        RuntimeError: the library refuses the lines or options, and what the lines themselves raise.
    """
    model, raised = io.BytesIO(), []

    def watched() -> Iterator[str]:
        try:
            yield from lines
        except (Exception, KeyboardInterrupt) as error:
            raised.append(error)
            raise

    try:
        library("sentencepiece").SentencePieceTrainer.train(
            sentence_iterator=watched(),
            model_writer=model,
            model_type="unigram",
            hard_vocab_limit=False,
            max_sentence_length=_LONGEST_LINE,
            minloglevel=2,
            **options,
        )
    except (RuntimeError, SystemError):
        if raised:  # of the library's error, 0.2.3 has the text of this one alone
            raise raised[0] from None
        raise
    return model.getvalue()


def write_model(model: bytes, folder: str) -> None:
    """Write a model that was learnt just now, and the version of the library that has learnt it."""
    learnt_by = f"{version('sentencepiece')}\n".encode()
    for name, content in ((VERSION, learnt_by), (SentencePiece.name, model)):
        with replacing(os.path.join(folder, name), "wb") as stream:
            stream.write(content)


def _informative_lines(lines: Iterable[str]) -> Iterator[str]:
    """Return the lines that teach something, without the literal ``<unk>``.

    Raises:
        UsageError: there are none; SentencePiece's trainer would take the process down.
    """
    texts = (line.replace(UNKNOWN, " ") for line in lines)
    words = (line for line in texts if any(map(str.isalnum, line)))
    first = next(words, None)
    if first is None:
        raise UsageError("there are no words in the text to learn a vocabulary from")
    return itertools.chain([first], words)


def _too_small(size: int, least: int, remedy: str = "") -> UsageError:
    return UsageError(
        f"a vocabulary of {size} is too small for the characters of this text; it takes more than "
        f"{least}{remedy}"
    )


def _explained(error: RuntimeError, size: int) -> UsageError:
    numbers = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
    if numbers or size <= len(SPECIALS):
        least = int(numbers.group(1)) + 2 if numbers else len(SPECIALS)
        return _too_small(size, least, ", or a lower character coverage")
    return UsageError(f"SentencePiece cannot learn a vocabulary: {error}")


def copy_subwords(model: Subwords, folder: str) -> None:
    """Copy a subword model and its ``dict.txt`` (made anew if there is none) into a folder."""
    dictionary = os.path.join(os.path.dirname(model.file), DICTIONARY)
    learnt_by = os.path.join(os.path.dirname(model.file), VERSION)
    files = [(learnt_by, VERSION)] if os.path.isfile(learnt_by) else []
    for original, name in (*files, (model.file, model.name), (dictionary, DICTIONARY)):
        copy = os.path.join(folder, name)
        if not os.path.isfile(original):
            with replacing(copy) as text:
                model.dictionary().save(text)
        elif os.path.abspath(original) != os.path.abspath(copy):
            with open(original, "rb") as stream, replacing(copy, "wb") as target:
                shutil.copyfileobj(stream, target)
