"""JSON is read, or what is wrong with it is told with its place."""

from dataclasses import dataclass, field
from typing import Mapping, Optional, Sequence

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import (
    NAMES,
    Each,
    Maybe,
    OrNull,
    from_json,
    load_json,
    parse_json,
    schema_error,
)  # fmt: skip

SHAPE = {
    "count": int,
    "bins": [{"name": str, "up_to": OrNull(float)}],
    "scores": Each(Each(float)),
    "notes": Maybe({"gpus": int}),
}
WHOLE = {"count": 3, "bins": [{"name": "a", "up_to": None}], "scores": {"valid": {"f1": 2}}}


@pytest.mark.parametrize(
    "change, expected",
    [
        ({}, None),
        ({"more": []}, None),
        ({"notes": None}, None),
        ({"notes": {"gpus": 2}}, None),
        ({"bins": []}, None),
        ({"count": 3.0}, "count should be a whole number"),
        ({"count": True}, "count should be a whole number"),
        ({"count": 10**30}, "count should be a whole number"),
        ({"bins": {}}, "bins should be a list"),
        ({"bins": [{"name": "a", "up_to": 1}, {"name": "b"}]}, "bins.1.up_to is missing"),
        ({"bins": [{"name": "\ud800", "up_to": 1}]}, "bins.0.name should be text"),
        ({"scores": {"valid": {"f1": "2"}}}, "scores.valid.f1 should be a number"),
        ({"scores": {"valid": {"f1": float("nan")}}}, "scores.valid.f1 should be a number"),
        ({"scores": {"\ud800": {}}}, "the names in scores should be text"),
        ({"\udfff": 1}, "the names in it should be text"),
        ({"scores": {"valid": {"f1": float("inf")}}}, "scores.valid.f1 should be a number"),
        ({"scores": {"valid": None}}, "scores.valid should be an object"),
        ({"notes": {}}, "notes.gpus is missing"),
    ],
)
def test_the_first_misfit_is_named(change, expected):
    assert schema_error({**WHOLE, **change}, SHAPE) == expected


def test_the_whole_may_be_of_another_kind():
    assert schema_error([], SHAPE) == "it should be an object"


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 10**5, '{"a":' * 10**5, "9" * 5000, "9" * 5000 + "x", "nul"]
)
def test_what_is_no_json_is_reported_in_one_line(text):
    with pytest.raises(UsageError, match="notes.json is not JSON: "):
        parse_json(text, "notes.json")


def test_a_file_of_another_origin_is_reported(tmp_path):
    (tmp_path / "a.json").write_text('{"count": 1}')
    with pytest.raises(UsageError, match="a.json is not from b.py, or damaged: bins is missing"):
        load_json(str(tmp_path / "a.json"), SHAPE, "b.py")


@dataclass(frozen=True)
class Part:
    count: int
    figures: Mapping[str, Optional[float]] = field(default_factory=dict, metadata={NAMES: "ab"})


@dataclass(frozen=True)
class Record:
    name: Optional[str]
    parts: Sequence[Part] = ()
    rows: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"name": None}, Record(None)),
        ({"name": "x", "parts": None, "more": 1}, Record("x")),
        (
            {"name": "x", "parts": [{"count": 1, "a": 2.5, "c": "x"}]},
            Record("x", [Part(1, {"a": 2.5})]),
        ),
        ({"name": "x", "rows": {"r": [[1, 2]]}}, Record("x", rows={"r": [[1, 2]]})),
        ({}, "name is missing"),
        ([], "it should be an object"),
        ({"name": 1}, "name should be text"),
        ({"name": "x", "parts": [{"count": 1}, {}]}, "parts.1.count is missing"),
        ({"name": "x", "parts": [{"count": 1, "b": "2"}]}, "parts.0.b should be a number"),
        ({"name": "x", "rows": {"r": [[1, "2"]]}}, "rows.r.0.1 should be a number"),
    ],
)
def test_a_dataclass_is_read_with_checked_types(content, expected):
    if isinstance(expected, Record):
        assert from_json(Record, content, "a.json", "b.py") == expected
        return
    with pytest.raises(UsageError, match=f"a.json is not from b.py, or damaged: {expected}"):
        from_json(Record, content, "a.json", "b.py")
