"""The command measures, prints, can be interrupted and continues."""

import json

import pytest

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.benchmark import command as benchmark
from fairseq_posenc.tools.benchmark.attention import NAIVE_SHAW
from fairseq_posenc.tools.benchmark.timing import SUBJECTS
from fairseq_posenc.tools.commands.benchmark import main

COST = "cost cape-9 --device cpu --lengths 10 --dtype float32"
SPEED = "training --device cpu --encodings shaw --lengths 8,16"
BOTH = ("base", "stock")
VARIANTS = {
    "attention": {NAIVE_SHAW},
    "bert": {"learned --position-segments input", "rel_scalar --position-segments per_head"},
}


@pytest.fixture
def command(monkeypatch):
    """A function that runs the command, and the titles of what it measured; figures are made up.

    It is interrupted in the column number ``interrupt``, if that is not None.
    """

    def command(line, *arguments, interrupt=None):
        def measure(setting):
            if len(command.measured) == interrupt:
                raise KeyboardInterrupt
            command.measured.append(setting.title)
            ratios = {"": 2, "_low": 1.5, "_high": 3}
            figures = {f"{against}{end}": ratios[end] for against in BOTH for end in ratios}
            figures.update(seconds=0.5, megabytes=1)
            names = ["stock", *setting.contestants]
            return {"batch": setting.batch, "contestants": dict.fromkeys(names, figures)}

        monkeypatch.setattr(benchmark, "measure", measure)
        monkeypatch.setattr("sys.argv", ["posenc benchmark", *line.split(), *map(str, arguments)])
        main()

    command.measured = []
    return command


def read(output):
    return json.loads(output.read_text())["cells"]


def check_ratios(figures):
    assert all(figures[f"{a}_low"] <= figures[a] <= figures[f"{a}_high"] for a in BOTH)
    assert figures["megabytes"] > 0


def test_every_encoding_is_timed_in_every_subject(run, tmp_path):
    output = tmp_path / "speed.json"
    options = "--shape tiny --lengths 8 --tokens 16 --rounds 5 --dropout 0.1".split()
    printed = run("posenc", "benchmark", *options, "--device", "cpu", "--output", output)
    results = read(output)
    subjects = ["training", "generation", "attention", "bert"]
    assert [result["cell"]["table"] for result in results] == subjects
    for result in results:
        setting, contestants = result["cell"], result["contestants"]
        assert (setting["forked"], setting["shared"]) == (True, False)
        assert (setting["shape"], setting["length"], result["batch"]) == ("tiny", 8, 2)
        variants = VARIANTS.get(setting["table"], set())
        assert set(contestants) == {"stock", *names()} | variants
        for name, figures in contestants.items():
            check_ratios(figures)
            assert name == "stock" or f"| `{name}` | {figures['stock']:.3f} (" in printed
        base = "learned" if setting["table"] == "bert" else "sinusoidal"
        assert contestants[base]["base"] == contestants["stock"]["stock"] == 1
        assert f"### {setting['table']}: relative to `{base}`" in printed


def test_the_smoke_command_prints_our_figures_beside_the_papers(run, tmp_path):
    output = tmp_path / "cost.json"
    options = ["--quick", "--device", "cpu", "--dtype", "float32", "--output", output]
    printed = run("posenc", "benchmark", "cost", *options)
    results = read(output)
    assert {result["cell"]["subject"] for result in results} == set(SUBJECTS) - {"attention"}
    assert len(results) == 3 + 4 + 1 + 1
    for paper in ["paper 2.4 |", "paper +65 % |", "paper x0.91 |"]:
        assert paper in printed
    for result in results:
        for options, figures in result["contestants"].items():
            check_ratios(figures)
            assert options == "stock" or f"`{options}` |" in printed
    assert "Traceback" not in printed and "32 wide, 2 heads, model of 1 layers" in printed


def test_an_interrupted_command_continues(command, tmp_path, capsys):
    output = tmp_path / "cost.json"
    with pytest.raises(UsageError, match="the same command continues from"):
        command(COST, "--output", output, interrupt=2)
    assert "2 of 3: cape-9, Encoder, FP32 Len-10, float32: " in capsys.readouterr().err
    assert len(read(output)) == 2
    command(COST, "--output", output)
    groups = ("Transformer layer", "Encoder", "Decoder")
    assert command.measured == [f"cape-9, {group}, FP32 Len-10, float32" for group in groups]
    printed = capsys.readouterr().out
    assert all(f"### {group}: relative to `none`" in printed for group in groups)
    assert "| 2.00 (1.50 to 3.00); paper 2.3 |" in printed
    assert "| 500.0 ms, 1,000 tokens/s, 1 MB |" in printed


@pytest.mark.parametrize("line, columns", [(COST, 3), (SPEED, 2)])
def test_other_settings_and_machines_are_measured_anew_and_nothing_is_lost(
    command, monkeypatch, tmp_path, line, columns
):
    output = tmp_path / "timings.json"

    def measured(*more):
        before = len(command.measured)
        command(line, "--output", output, *more)
        return len(command.measured) - before

    assert [measured(), measured("--rounds", 6), measured()] == [columns, columns, 0]
    assert [measured("--encodings", "t5"), measured()] == [columns, 0]
    monkeypatch.setattr(benchmark, "hardware", lambda device: "another")
    assert measured() == columns
    forks = "fairseq_posenc.tools.benchmark.tables.can_fork"
    for answer in (True, False):
        monkeypatch.setattr(forks, lambda device, answer=answer: answer)
        measured()
    # processes of their own, for contestants of speed, are a setting like others
    expected = [9, 6, 9, 9] + [9] * (line == SPEED)
    assert [result["cell"]["rounds"] for result in read(output)][::columns] == expected


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"rounds": 5, "results": []}'])
def test_another_file_is_not_overwritten(command, tmp_path, content):
    output = tmp_path / "notes.json"
    output.write_text(content)
    with pytest.raises(UsageError, match="name another --output"):
        command(COST, "--output", output)
    assert output.read_text() == content and not command.measured


@pytest.mark.parametrize(
    "line, words",
    [
        ("speed", "unknown: speed; choose from training"),
        ("--rounds 4", "5 or more, not 4"),
        ("--encodings shaw,sinusodial", "unknown: sinusodial"),
        ("--lengths 8,x", "expected a positive number, not 'x'"),
        ("--tokens 0", "expected a positive number, not '0'"),
        ("--dropout 0,1.5", "expected a probability below 1"),
        ("--dropout x", "--dropout: invalid"),
        ("--device cpu --dtype float16", "--dtype float16 needs a GPU"),
        ("cost chen-3", "unknown: chen-3; choose from cape-9, chen2021-3"),
        ("--shape large", "unknown: large; choose from tiny"),
        ("cost --dropout 0.1", "--dropout and --shape are not for the papers' tables"),
        ("cost --dtype double", "unknown: double"),
        ("cost --device cpu --lengths 11", "no table has a column of these --lengths"),
    ],
)
def test_mistakes_are_answered_in_one_line(command, capsys, line, words):
    with pytest.raises((SystemExit, UsageError)) as raised:
        command(line)
    assert words in f"{raised.value}{capsys.readouterr().err}" and not command.measured
    assert getattr(raised.value, "code", 1)


def test_tables_without_the_lengths_are_named(command, capsys):
    command("cost --device cpu --lengths 32 --dtype float32")
    assert "cape-9: no such column; lengths are 10, 100, 1000" in capsys.readouterr().err
    assert command.measured == [
        "generation, Transformer base, Length 32, float32",
        "shape-2, Transformer base, VANILLA, float32",
    ]
