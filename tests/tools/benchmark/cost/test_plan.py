"""What is measured is what was asked for."""

from fairseq_posenc.tools.benchmark.cost.plan import cells
from fairseq_posenc.tools.benchmark.cost.table import load


def plan(name, choice):
    return cells(name, load(name), choice)


def test_columns_take_the_precision_that_they_name(choose):
    asked = plan("cape-9", choose(dtypes=["bfloat16", "float32"]))
    assert {(cell.column[:4], cell.dtype) for cell in asked} == {
        ("FP16", "bfloat16"),
        ("FP32", "float32"),
    }
    half = plan("cape-9", choose(dtypes=["bfloat16"]))
    assert len(half) == 9 and {cell.column[:4] for cell in half} == {"FP16"}


def test_tables_without_precisions_take_the_first_type(choose):
    for first, second in [("float32", "bfloat16"), ("bfloat16", "float32")]:
        asked = plan("shape-2", choose(dtypes=[first, second]))
        assert {cell.dtype for cell in asked} == {first}


def test_lengths_choose_columns(choose):
    asked = plan("cape-9", choose(lengths=[100, 1000]))
    assert {cell.length for cell in asked} == {100, 1000} and len(asked) == 12
    assert plan("chen2021-3", choose(lengths=[100])) == []


def test_the_batch_is_the_papers_the_users_or_what_the_tokens_allow(choose):
    def batches(name, **options):
        return {cell.length: cell.batch for cell in plan(name, choose(**options))}

    assert batches("cape-9") == {10: 50, 100: 50, 1000: 50}
    assert batches("cape-9", tokens=900) == {10: 50, 100: 9, 1000: 1}
    assert batches("cape-9", batch=8, tokens=2000) == {10: 8, 100: 8, 1000: 2}
    assert batches("shape-2") == {24: 291, 32: 218, 320: 21}


def test_encodings_are_measured_beside_the_papers_rows(choose):
    paper = plan("cape-9", choose())[0].contestants
    assert plan("cape-9", choose(encodings=["alibi", "cape"]))[0].contestants == [*paper, "alibi"]
    chen = plan("chen2021-3", choose(encodings=["alibi"]))[0].contestants
    assert chen[4:] == ["alibi", "alibi --position-segments per_head"]


def test_quick_is_tiny(choose):
    asked = plan("cape-9", choose(quick=True))
    assert {cell.shape for cell in asked} == {"tiny"} and {cell.length for cell in asked} == {10}
