"""Three sentences and their translations, as lines and as fairseq-generate prints them."""

import pytest

SOURCES = ["a house", "the dog runs fast today", "two children play in the big garden there ."]
REFERENCES = ["ein Haus", "der Hund läuft heute schnell", "zwei Kinder spielen im großen Garten ."]
HYPOTHESES = ["ein Haus", "der Hund läuft heute", "zwei Kinder spielen in dem Garten ."]


@pytest.fixture
def files(write):
    contents = {"hypothesis": HYPOTHESES, "reference": REFERENCES, "source": SOURCES}
    return {name: write(name, lines) for name, lines in contents.items()}


@pytest.fixture
def generated(write):
    lines = []
    for i, (source, target, text) in enumerate(zip(SOURCES, REFERENCES, HYPOTHESES)):
        cut = text.replace("spielen", "spiel@@ en")
        lines += [f"S-{i}\t{source.replace('dog', 'd@@ o@@ g')}", f"T-{i}\t{target}"]
        lines += [f"H-{i}\t-0.4\t{cut}", f"D-{i}\t-0.4\t{cut}"]
    return write("generate-test.txt", lines)
