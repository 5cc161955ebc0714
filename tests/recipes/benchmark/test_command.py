"""The command measures every encoding in every subject, and writes one table."""

import csv

import pytest

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from recipes.benchmark import __main__ as benchmark
from recipes.benchmark import papers
from recipes.benchmark.attention import NAIVE_SHAW
from recipes.benchmark.updates import amp_variants

VARIANTS = {
    "attention": {NAIVE_SHAW},
    "bert": {"learned --position-segments input", "rel_scalar --position-segments per_head"},
}
SUBJECTS = ["training", "updates", "generation", "attention", "bert"]
ENDS = [("", 2), ("_low", 1.5), ("_high", 3)]
WORDS = [
    "CUDA out of memory. Tried to allocate 20.00 MiB",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.",
    "shapes do not fit",
]


@pytest.fixture
def command(monkeypatch):
    """A function that runs the command; figures are made up, and settings in `measured`.

    It is interrupted before setting number ``interrupt``, if that is not None. Each step is taken
    once.
    """

    def command(line, interrupt=None):
        def race(steps, device, rounds, base, title):
            if len(command.measured) == interrupt:
                raise KeyboardInterrupt
            command.measured.append(title)
            for step in steps.values():
                step()
            ratios = {f"{one}{end}": figure for one in ("base", "stock") for end, figure in ENDS}
            return dict.fromkeys(steps, {"seconds": 0.5, "megabytes": 1, **ratios})

        monkeypatch.setattr(benchmark, "race", race)
        monkeypatch.setattr("sys.argv", ["recipes.benchmark", *line.split()])
        benchmark.main()

    command.measured = []
    return command


def by_subject(path):
    """The rows of a table in a file: from subject to contestant to row."""
    table = {}
    with open(path, encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            table.setdefault(row["subject"], {})[row["encoding"]] = row
    assert list(table) == SUBJECTS
    return table


def test_every_subject_is_timed(run, tmp_path):
    output = tmp_path / "speed.csv"
    options = "--shape tiny --lengths 8 --tokens 16 --rounds 5 --dropout 0.1 --device cpu".split()
    options += ["--encodings", "learned"]
    printed = run("python", "-m", "recipes.benchmark", *options, "--output", output)
    for subject, rows in by_subject(output).items():
        base = "learned" if subject == "bert" else "sinusoidal"
        assert {"stock", "learned", base} <= set(rows)
        assert float(rows[base]["base"]) == float(rows["stock"]["stock"]) == 1
        for row in rows.values():
            assert (row["shape"], row["length"], row["batch"]) == ("tiny", "8", "2")
            low, middle, high = (float(row[f"base{end}"]) for end in ("_low", "", "_high"))
            assert low <= middle <= high and float(row["megabytes"]) > 0
            assert (
                row["encoding"] == "stock" or f"| `{row['encoding']}` | {middle:.3f} (" in printed
            )


@pytest.mark.filterwarnings("ignore:.torch.cuda.amp.autocast")
def test_every_encoding_takes_the_steps_of_every_subject(command, tmp_path):
    output = tmp_path / "speed.csv"
    command(f"--shape tiny --lengths 4 --tokens 8 --rounds 5 --device cpu --output {output}")
    for subject, rows in by_subject(output).items():
        timed = ["sinusoidal", *amp_variants()] if subject == "updates" else names()
        assert set(rows) == {"stock", *timed} | VARIANTS.get(subject, set())


def test_what_was_measured_stays_when_the_command_is_interrupted(command, tmp_path):
    output = tmp_path / "speed.md"
    line = f"training --shape tiny --encodings shaw --tokens 16 --lengths 8,16 --output {output}"
    with pytest.raises(KeyboardInterrupt):
        command(f"{line} --device cpu", interrupt=1)
    written = output.read_text()
    assert "| training ÷ sinusoidal, tiny, float32, 2 x 8, dropout 0 | `shaw` |" in written
    assert "| 2.000 (1.500 to 3.000) | 500.0 ms, 32 tokens/s, 1 MB |" in written
    assert "1 x 16" not in written


@pytest.mark.parametrize("words", WORDS)
def test_too_little_memory_is_reported_and_other_errors_are_not_hidden(monkeypatch, words):
    def fail(*_):
        raise RuntimeError(words)

    monkeypatch.setattr(benchmark, "race", fail)
    setting = benchmark.Setting("tiny", ["shaw"], 10, batch=6)
    with pytest.raises(RuntimeError if words == WORDS[-1] else UsageError) as caught:
        benchmark.measure("attention", setting, 5)
    assert words in str(caught.value)
    assert words == WORDS[-1] or "6 sentences of 10 tokens" in str(caught.value)


def idle_steps(setting):
    """Steps that do nothing."""
    return dict.fromkeys(["stock", *setting.contestants], lambda: None)


@pytest.fixture
def unbuilt(monkeypatch):
    """No model is built: those of the papers' tables have up to 12 layers, 768 wide."""
    for subjects in (benchmark.SUBJECTS, benchmark.PARTS):
        for name, subject in subjects.items():
            monkeypatch.setitem(subjects, name, subject._replace(prepare=idle_steps))


@pytest.mark.usefixtures("unbuilt")
@pytest.mark.parametrize("name", papers.TABLES)
def test_a_papers_table_is_printed_beside_its_figures(command, capsys, name):
    command(f"--table {name} --tokens 128 --rounds 5 --device cpu")
    table, text = papers.TABLES[name], capsys.readouterr().out
    lines = {line.split(" | ")[0][2:]: line for line in text.splitlines() if line[:2] == "| "}
    for index, column in enumerate(table.columns):
        for figures in filter(None, table.rows.values()):
            paper = f"{figures[index]:+g} %" if table.percent else str(figures[index])
            assert f"paper {paper} " in lines[column.title]
    assert len(command.measured) == len(table.columns)


@pytest.mark.parametrize("subjects", ["", "training updates"])
def test_updates_on_a_cpu_are_not_said_to_be_in_bfloat16(command, subjects):
    with pytest.raises(UsageError, match="updates are in float32 on a CPU"):
        command(f"{subjects} --dtype bfloat16 --device cpu")


@pytest.mark.usefixtures("unbuilt")
def test_parts_of_a_papers_table(command, capsys):
    command("--table cape-9 --lengths 10 --tokens 20 --rounds 5 --device cpu")
    assert len(command.measured) == 6
    assert "2 x 10, bfloat16 |" in capsys.readouterr().out
    for wrong, message in [
        ("--lengths 11", "cape-9 has 10, 100, 1000"),
        ("--shape tiny", "leave out"),
        ("--dtype bfloat16", "leave out"),
        ("--output a.csv", "another ending than .csv"),
    ]:
        with pytest.raises(UsageError, match=message):
            command(f"--table cape-9 {wrong} --rounds 5 --device cpu")
