"""The log of a training beside a result: it is a log, and of the model that made the result."""

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import check_signature, read_notes

SIGNED = "2026-01-01 00:00:00 | INFO | fairseq_posenc.models.transformer | position:{}\n"
OUTPUT = SIGNED.format("kerple|sharing:none|version:0.1.0") + "H-0\t-1\ta cat\n"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (SIGNED.format("kerple|sharing:none|version:0.0.9"), None),
        ("2026-01-01 00:00:00 | INFO | fairseq_cli.train | Namespace()", None),  # of stock fairseq
        (SIGNED.format("rotary|base:10000"), "out is of position:kerple.*log of position:rotary"),
        ("A cat sleeps.\n", "log is not a log of fairseq-train"),
    ],
)
def test_a_log_of_another_training_is_refused(tmp_path, log, said):
    (tmp_path / "log").write_text(log)
    (tmp_path / "out").write_text(OUTPUT)
    options = {"notes": [], "training_log": f"{tmp_path}/log", "generated": f"{tmp_path}/out"}
    if said:
        with pytest.raises(UsageError, match=said):
            read_notes(options)
    else:
        read_notes(options)
        assert log.rstrip().endswith(options["notes"]["signature"])


def test_a_checkpoint_is_compared_with_its_log():
    notes = {"signature": "position:shaw|max-distance:16"}
    check_signature(notes, "a.pt", [""])  # a model of stock fairseq
    check_signature({}, "a.pt", ["position:alibi"])
    check_signature(notes, "a.pt", ["position:alibi", "position:shaw|max-distance:8"])
    with pytest.raises(UsageError, match="a.pt is of position:alibi, and the log of position:shaw"):
        check_signature(notes, "a.pt", ["position:alibi"])
