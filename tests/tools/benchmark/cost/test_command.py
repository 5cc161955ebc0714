"""The command measures, prints, can be interrupted and continues."""

import json

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark.cost import command
from fairseq_posenc.tools.benchmark.cost.cell import SUBJECTS

LENGTHS = ["cape-9", "--device", "cpu", "--lengths", "10", "--dtype", "float32"]


@pytest.fixture
def measured(monkeypatch):
    """Titles of the cells that the command measures; their figures are made up."""
    titles = []

    def measure(cell):
        titles.append(cell.title)
        figures = {"seconds": 0.5, "megabytes": 1, "base": 2, "base_low": 1.5, "base_high": 3}
        return {
            "batch": cell.batch,
            "contestants": dict.fromkeys(["stock", *cell.contestants], figures),
        }

    monkeypatch.setattr(command, "measure", measure)
    return titles


def interrupt(monkeypatch, after):
    """Let the command be interrupted in the cell after so many."""
    measure, left = command.measure, [after]

    def interrupted(cell):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return measure(cell)

    monkeypatch.setattr(command, "measure", interrupted)


def test_the_smoke_command_prints_our_figures_beside_the_papers(run, tmp_path):
    output = tmp_path / "cost.json"
    options = ["--quick", "--device", "cpu", "--dtype", "float32", "--output", output]
    printed = run("posenc", "benchmark", "cost", *options)
    results = json.loads(output.read_text())["cells"]
    assert {result["cell"]["subject"] for result in results} == set(SUBJECTS)
    assert len(results) == 3 + 4 + 1 + 1
    for paper in ["paper 2.4 |", "paper +65 % |", "paper x0.91 |"]:
        assert paper in printed
    for result in results:
        for options, figures in result["contestants"].items():
            assert figures["base_low"] <= figures["base"] <= figures["base_high"]
            assert options == "stock" or f"`{options}` |" in printed
    assert "Traceback" not in printed and "32 wide, 2 heads, model of 1 layers" in printed


def test_an_interrupted_command_continues(measured, monkeypatch, tmp_path, capsys):
    output = tmp_path / "cost.json"
    with monkeypatch.context() as patch:
        interrupt(patch, after=2)
        with pytest.raises(UsageError, match="the same command continues from"):
            command.main([*LENGTHS, "--output", str(output)])
    assert len(json.loads(output.read_text())["cells"]) == 2
    command.main([*LENGTHS, "--output", str(output)])
    assert measured == [
        f"cape-9, {group}, FP32 Len-10, float32"
        for group in ("Transformer layer", "Encoder", "Decoder")
    ]
    printed = capsys.readouterr().out
    for group in ("Transformer layer", "Encoder", "Decoder"):
        assert f"### {group}: relative to `none`" in printed
    assert "| 2.00 (1.50 to 3.00); paper 2.3 |" in printed
    assert "| 500.0 ms, 1,000 tokens/s, 1 MB |" in printed


def test_other_settings_and_machines_are_measured_anew_and_nothing_is_lost(
    measured, monkeypatch, tmp_path
):
    output = tmp_path / "cost.json"
    arguments = [*LENGTHS, "--output", str(output)]
    command.main(arguments)
    command.main([*arguments, "--rounds", "6"])
    assert len(measured) == 6
    command.main(arguments)
    assert len(measured) == 6
    monkeypatch.setattr(
        "fairseq_posenc.tools.benchmark.cost.options.hardware", lambda device: "another"
    )
    command.main(arguments)
    assert len(measured) == 9
    cells = [result["cell"] for result in json.loads(output.read_text())["cells"]]
    assert [cell["rounds"] for cell in cells] == [9] * 3 + [6] * 3 + [9] * 3


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"rounds": 5, "results": []}'])
def test_another_file_is_not_overwritten(measured, tmp_path, content):
    output = tmp_path / "notes.json"
    output.write_text(content)
    with pytest.raises(UsageError, match="name another --output"):
        command.main([*LENGTHS, "--output", str(output)])
    assert output.read_text() == content and not measured


@pytest.mark.parametrize(
    "options, words",
    [
        ("chen-3", "unknown: chen-3; choose from cape-9, chen2021-3"),
        ("--encodings shaw,sinusodial", "unknown: sinusodial"),
        ("--dtype double", "unknown: double"),
        ("--rounds 4", "5 or more: 4"),
        ("--lengths 10,x", "expected a whole number, 1 or more: x"),
        ("--device cpu --dtype float16", "--dtype float16 needs a GPU"),
        ("--device cpu --lengths 11", "no table has a column of these --lengths"),
    ],
)
def test_mistakes_are_answered_in_one_line(measured, capsys, options, words):
    with pytest.raises(SystemExit) as raised:
        command.main(options.split())
    told = str(getattr(raised.value, "code", "")) + capsys.readouterr().err
    assert words in told and raised.value.code != 0 and not measured


def test_tables_without_the_lengths_are_named(measured, capsys):
    command.main(["--device", "cpu", "--lengths", "32", "--dtype", "float32"])
    assert "cape-9: no such column; lengths are 10, 100, 1000" in capsys.readouterr().err
    assert measured == [
        "generation, Transformer base, Length 32, float32",
        "shape-2, Transformer base, VANILLA, float32",
    ]
