#!/usr/bin/env bash
# Guess: an empty line of parallel text is an empty sentence, or its pair is left out. U+2028, which
#        Europarl and the UN's text have inside sentences, ends no line of a file.
# Seen:  JoeyNMT leaves out an empty line of one side alone: from there on each sentence stands beside
#        the translation of the one before, and nothing is said. It checks that both sides have the
#        same number of lines, but before it leaves some out. And it ends lines by Python's
#        splitlines, so at U+2028, U+0085 and form feeds, too; if both files have the same number of
#        these in different places, the pairs between them move.
# Versions: joeynmt 2.3.0. Source: joeynmt/datasets.py, PlaintextDataset.load_data, and
#        joeynmt/helpers.py, read_list_from_file.
# Why:   text of OPUS has empty sides where a sentence has no partner. The training goes on, its loss
#        falls, and the model learns to translate the sentence before.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# to compile what is not imported takes half a minute of the CPU
install() { "$work/env/bin/pip" -qq install --no-compile "$@"; }
# the build for a CPU where the package index has it: the other one is several GB
install "torch==2.13.0+cpu" 2>/dev/null || install "torch==2.13.0"
# what reading text needs; importlib_metadata it needs without saying so
install numpy==2.4.6 importlib_metadata==10.2.0 packaging==26.4 PyYAML==6.0.4 \
    sentencepiece==0.2.3 subword-nmt==0.3.8 tensorboard==2.20.0 matplotlib==3.11.2
install --no-deps joeynmt==2.3.0
cd "$work"
env/bin/python - <<'END' 2>&1 | grep -v Warning
import joeynmt
from joeynmt.datasets import PlaintextDataset
from joeynmt.tokenizers import BasicTokenizer

ENGLISH = ["One.", "Two.", "Three.", "Four."]
GERMAN = ["Eins.", "Zwei.", "Drei.", "Vier."]


def pairs(english, german):
    for language, lines in (("en", english), ("de", german)):
        with open(f"train.{language}", "w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines)
    tokenizers = {language: BasicTokenizer("word") for language in ("en", "de")}
    text = PlaintextDataset(
        "train", "en", "de", "train", True, {"en": False, "de": False}, tokenizers,
        {"en": None, "de": None},
    )
    read = [tuple(text.lookup_item(n, side)[0] for side in ("en", "de")) for n in range(len(text))]
    print(*read, sep="\n", end="\n\n")
    return read


print("joeynmt", joeynmt.__version__)
assert pairs(ENGLISH, GERMAN) == list(zip(ENGLISH, GERMAN))
empty = pairs(["One.", "", "Three.", "Four."], GERMAN)
assert empty == [("One.", "Eins."), ("Three.", "Zwei."), ("Four.", "Drei.")]
separator = pairs(["The\u2028one.", *ENGLISH[1:]], [*GERMAN[:3], "Die\u2028Vier."])
assert separator[1:4] == [("one.", "Zwei."), ("Two.", "Drei."), ("Three.", "Die")]
END
