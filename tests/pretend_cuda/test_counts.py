"""What a GPU is asked for, counted on a pretended one: waits, copies, masks, precision.

The counting runs in a process of its own, as the pretended GPU changes what torch sees.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_posenc.encodings import names

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent.parent / "docs" / "speed.md"
IMPOSSIBLE = 77
STOCK = "stock"
BIASES = ("t5", "tupe", "abs_scalar", "rel_scalar", "alibi", "kerple")
PLAIN = "shaw"  # without torch's attention
BY_QUERIES = "transformer_xl"  # with a mask per sentence
# Operations that may make float32 (B, H, Q, K) from half precision: the backends without a kernel,
# and weights that the beam search asks for.
FLOAT32 = "attention/(plain|half_precision|attention).py|models/transformer_decoder.py"
ELSEWHERE = "sequence_generator"  # what fairseq sends to and fro itself
each_encoding = pytest.mark.parametrize("name", names())


def printed(*command):
    """What a script beside this one prints."""
    process = subprocess.run(
        [sys.executable, FOLDER / command[0], *command[1:]], cwd=FOLDER.parent.parent,
        env={**os.environ, "PYTHONPATH": "."}, encoding="utf-8", capture_output=True,
    )  # fmt: skip
    if process.returncode == IMPOSSIBLE:
        pytest.skip(f"no GPU can be pretended here: {process.stderr[-300:]}")
    assert process.returncode == 0, process.stderr[-4000:]
    return process.stdout


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """All counts, by encoding and case, and the table that was printed."""
    output = tmp_path_factory.mktemp("counts") / "counts.json"
    table = printed("count.py", output)
    return json.loads(output.read_text(encoding="utf-8")), table


@pytest.fixture
def cases(counted, name):
    """The counts of an encoding by case."""
    return counted[0][name]


def waits(found):
    return sum(n for _, line, n in found["syncs"] if not re.search(ELSEWHERE, line))


@each_encoding
def test_nothing_mixes_devices_or_is_not_finite(cases):
    for case, found in cases.items():
        assert not found["mixed"], case
        assert found.get("finite", True), case


@each_encoding
def test_the_host_waits_no_more_often_than_in_stock_fairseq(counted, cases):
    for case, found in cases.items():
        assert waits(found) <= waits(counted[0][STOCK][case]), (case, found["syncs"])
    longer, shorter = cases["generation 8"], cases["generation 4"]
    assert waits(longer) - waits(shorter) == 4
    assert waits(cases["translation amp left"]) == 2 and waits(cases["bert amp right"]) == 1


@each_encoding
def test_tensors_go_between_host_and_gpu_only_where_the_host_waits(cases):
    for case, found in cases.items():
        ours = [copy for copy in found["copies"] if not re.search(ELSEWHERE, copy[1])]
        assert all(direction == "to the host" for direction, *_ in ours), (case, ours)
        assert sum(n for *_, n in ours) <= waits(found), case


@each_encoding
def test_masks_are_the_same_for_all_sentences(cases, name):
    """Only where keys are hidden and nothing is added is a mask per sentence, and then of keys."""
    for case, found in cases.items() if name != BY_QUERIES else ():
        for queries, mask, causal, *_ in found["attention"]:
            of_keys = mask and mask[1:3] == [1, 1]
            assert of_keys or not mask or mask[0] == 1 or queries[2] == 1, (case, queries, mask)
            assert not (causal and mask)
    own = [shape for shape in cases["translation float32 left"]["attention"] if shape[0][2] == 11]
    assert bool(own) == (name != PLAIN)
    assert all((mask[0] == 1) == (name in BIASES) for _, mask, *_ in own)


@each_encoding
def test_without_padding_there_is_no_mask_but_the_bias(cases, name):
    for case in ("translation float32 none", "bert float32 none"):
        shapes = cases[case]["attention"]
        if name == BY_QUERIES:
            assert all(mask and mask[:2] == [3, 2] for q, mask, *_ in shapes if q[2] == 11)
        else:
            assert all(mask is None or (name in BIASES and mask[0] == 1) for _, mask, *_ in shapes)
        assert any(causal for _, _, causal, *_ in shapes) == (
            case[0] == "t" and name not in (*BIASES, PLAIN, BY_QUERIES)
        )


@each_encoding
def test_gradients_are_those_of_the_cpu(cases):
    errors = [found["error"] for found in cases.values() if "error" in found]
    assert len(errors) == 4 and max(errors) < 1e-5


def scores(found):
    """What was made in the shape of scores, ``(batch, heads, queries, keys)``."""
    return [x for x in found["made"] if min(x[2][2:]) > 8 and x[2][:2] == [3, 2]]


@each_encoding
def test_no_scores_are_promoted_to_float32(cases, name):
    for case, found in cases.items():
        if "float32" in case:
            continue
        wide = [x for x in scores(found) if x[3] == "torch.float32"]
        if case.startswith("evaluation") or name == PLAIN:
            wide = [x for x in wide if not re.search(FLOAT32, x[1]) and x[1] != "elsewhere"]
        assert not wide, case
        dtype = "torch.bfloat16" if "bfloat16" in case else "torch.float16"
        assert {call[3] for call in found["attention"]} <= {dtype}


@each_encoding
def test_only_what_torchs_attention_cannot_do_makes_every_sentences_scores(cases, name):
    """Attention to the source, with as many keys as it has, is stock fairseq's."""
    for case in ("translation bfloat16 left", "bert bfloat16 right"):
        own = [x for x in scores(cases[case]) if x[2][2] == x[2][3]]
        assert bool(own) == (name in (PLAIN, BY_QUERIES)), (case, own)


def test_the_page_shows_what_is_counted(counted):
    assert counted[1] in PAGE.read_text(encoding="utf-8")
