"""What a binarised folder knows of an output."""

import itertools
from functools import partial
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.inputs import read_texts
from fairseq_posenc.tools.scores.result import TrainedLengths
from tests.tiny import binarise
from tests.tools.scores.conftest import output_of


def test_an_output_that_lacks_sentences_of_the_folders_set_is_refused(tmp_path, write):
    """The folder knows how many sentences there are, whatever became of their subwords."""
    folder = tmp_path / "bin"
    folder.mkdir()
    lines = {
        "de": [f"H@@ aus {n} ." for n in range(60)],
        "en": [f"hou@@ se {n} ." for n in range(60)],
    }
    for side, texts in lines.items():
        types = write(
            f"bin/dict.{side}.txt", [f"{w} 1" for w in sorted({*" ".join(texts).split()})]
        )
        dictionary = Dictionary.load(types)
        for split, count in (("test", 60), ("valid", 30)):
            sentences = [dictionary.encode_line(t, add_if_not_exist=False) for t in texts[:count]]
            binarise(folder / f"{split}.en-de.{side}", sentences)
    read = partial(read_texts, data=str(folder))

    def output(count, form=str, tag=""):
        targets = [*map(form, lines["de"][:count])]
        sources = [tag + form(line) for line in lines["en"][:count]]
        return write("generate-test.txt", output_of(targets, targets, sources))

    def joined(line):
        return line.replace("@@ ", "")

    for form, tag in ((str, ""), (joined, ""), (str, "__de__ ")):
        with pytest.raises(UsageError, match=r"for 20 of 60 sentences \(ids 40, 41, .*cut off"):
            read(generated=output(40, form, tag))
        with pytest.raises(UsageError, match=r"for 2 of 60 .*--required-batch-size-multiple 1"):
            read(generated=output(58, form, tag))
        for count in (60, 30):
            assert len(read(generated=output(count, form, tag))) == count
    # the text tells the direction, too, where it is not that of the names
    straight = Path(output(60, joined)).read_text(encoding="utf-8").splitlines()
    back = write("back.txt", [line.translate(str.maketrans("ST", "TS")) for line in straight])
    assert read(generated=back).languages == ("de", "en")
    # references that were cut likewise
    raw = write("raw", [*map(joined, lines["de"][:40])])
    with pytest.raises(UsageError, match="20 of 60 sentences"):
        read(generated=output(40), reference=raw)
    for count in (59, 61):
        other = write("other", [f"Haus {n} ." for n in range(count)])
        with pytest.raises(
            UsageError, match=f"the reference has {count} lines, .* all 60 sentences"
        ):
            read(generated=output(60), reference=other)
    assert len(read_texts(generated=output(40), reference=raw, language="de")) == 40


def test_of_a_folder_of_several_pairs_the_one_that_was_translated_is_taken(tmp_path, write):
    """The output's log tells it, or the user."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for other, length in (("aa", 20), ("fr", 3), ("zh", 20)):
        for split, side in itertools.product(("test", "train"), ("de", other)):
            binarise(folder / f"{split}.de-{other}.{side}", [[5] * length + [2]] * 2)

    def pair_of(text, log="", **requested):
        generated = write("generate-test.txt", [log, *output_of(*[[text] * 2] * 3)])
        return read_texts(generated=generated, data=str(folder), **requested).languages

    log = "{'source_lang': 'de', 'target_lang': 'fr'}"
    assert pair_of("ohne", log) == ("de", "fr")
    assert pair_of("ohne", language="fr") == ("de", "fr")
    assert pair_of("ohne", language="de", source_language="zh") == ("zh", "de")
    for unclear in ({}, {"language": "de"}):
        with pytest.raises(UsageError, match="several pairs of languages, de-aa, de-fr, de-zh"):
            pair_of("ohne", **unclear)
    texts = read_texts(generated=str(tmp_path / "generate-test.txt"), data=str(folder),
                       language="fr")  # fmt: skip
    assert texts.longest_trained == TrainedLengths(3, 3)
