"""What scoring a large test set holds in memory beside the texts."""

import io
import json
import tracemalloc

from fairseq_posenc.json_files import write_json
from fairseq_posenc.tools.scores.reference_check import check_reference
from fairseq_posenc.tools.scores.texts import Languages

LINES = [f"{n} " + " ".join(f"w{(n * k) % 977}" for k in range(1, 20)) for n in range(400)]


def peak(work, *arguments):
    """Return the megabytes that a function held at most."""
    tracemalloc.start()
    work(*arguments)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held / 1e6


def test_references_are_compared_without_holding_the_sequences_of_all_lines():
    languages = Languages("en", "de")
    sources = [line[::-1] for line in LINES]
    for known in (None, LINES):
        assert peak(check_reference, "r", LINES, known, sources, LINES, languages) < 1.5


class Nowhere(io.StringIO):
    def write(self, text):
        return len(text)


def test_json_is_written_without_its_text_as_a_whole():
    value = {
        "rows": [[n % 99] * 40 for n in range(3000)],
        "text": [],
        "é": {},
        "of": [0.5, 2],
        "n": None,
    }
    assert peak(write_json, value, Nowhere()) < 0.3
    stream = io.StringIO()
    write_json(value, stream)
    text = stream.getvalue()
    assert json.loads(text) == value and text.endswith("\n}\n")
    assert '\n  "of": [0.5,2],\n' in text and '\n  "é": {},\n' in text
    assert len(text.splitlines()) == 3000 + 8
