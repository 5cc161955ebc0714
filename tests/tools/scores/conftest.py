"""Three sentences and their translations, as lines and as fairseq-generate prints them."""

import pytest

SOURCES = ["a house", "the dog runs fast today", "two children play in the big garden there ."]
REFERENCES = ["ein Haus", "der Hund läuft heute schnell", "zwei Kinder spielen im großen Garten ."]
HYPOTHESES = ["ein Haus", "der Hund läuft heute", "zwei Kinder spielen in dem Garten ."]


@pytest.fixture
def files(write):
    contents = {"hypothesis": HYPOTHESES, "reference": REFERENCES, "source": SOURCES}
    return {name: write(name, lines) for name, lines in contents.items()}


def output_of(hypotheses, references=(), sources=(), decoded=None):
    """The lines that fairseq-generate prints of sentences; without references no T-lines."""
    texts = {"S": sources or (), "T": references or ()}
    lines = [f"{k}-{n}\t{line}" for k, side in texts.items() for n, line in enumerate(side)]
    texts = {"H": hypotheses, "D": decoded or hypotheses}
    return lines + [f"{k}-{n}\t-0.5\t{line}" for k in texts for n, line in enumerate(texts[k])]


@pytest.fixture
def generated(write):
    sources = [line.replace("dog", "d@@ o@@ g") for line in SOURCES]
    hypotheses = [line.replace("spielen", "spiel@@ en") for line in HYPOTHESES]
    return write("generate-test.txt", output_of(hypotheses, REFERENCES, sources))
