"""The command line of every analysis, and what it writes."""

import json
import sys
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools import cli


@pytest.fixture
def analyse(monkeypatch, tmp_path):
    """A function that runs an analysis and returns the prefix of what it wrote."""

    def analyse(*arguments):
        prefix = tmp_path / "out" / "it"
        command = ["posenc", "analyse", *map(str, arguments), "--output", str(prefix)]
        monkeypatch.setattr(sys, "argv", command)
        cli.main()
        return prefix

    return analyse


def models(corpus, *named):
    return ["--models", *named, "--data", corpus.path, "--cpu"]


def check(prefix, printed, title, endings=(".png",)):
    """Check the files of a report, and return what the JSON file holds."""
    written = sorted(path.name for path in prefix.parent.iterdir())
    assert written == sorted(f"it{ending}" for ending in (".md", ".json", *endings))
    for ending in endings:
        assert Path(f"{prefix}{ending}").read_bytes().startswith(b"\x89PNG")
    text = Path(f"{prefix}.md").read_text(encoding="utf-8")
    assert printed == text and text.startswith(title)
    data = json.loads(Path(f"{prefix}.json").read_text(encoding="utf-8"))
    assert data["command"][0] == "posenc analyse" and "torch" in data["versions"]
    return data


def test_shift_invariance(analyse, checkpoint, corpus, capsys):
    named = models(corpus, checkpoint("sinusoidal"), checkpoint("learned"), checkpoint("t5"))
    prefix = analyse("shift-invariance", *named, "--offsets", "0,10,60", "--sentences", "3")
    data = check(prefix, capsys.readouterr().out, "Cosine similarity")
    assert data["encodings"]["t5"].startswith("position:t5|") and data["sentences"] == 3


def test_swap(analyse, checkpoint, corpus, capsys):
    named = models(corpus, checkpoint("sinusoidal"), checkpoint("shaw"))
    options = ["--pairs", "4", "--beam", "2", "--max-len-a", "1", "--max-len-b", "2"]
    data = check(analyse("swap", *named, *options), capsys.readouterr().out, "sacreBLEU of the")
    assert (
        data["pairs"] == 4 and data["beam"] == 2 and set(data["models"]) == {"sinusoidal", "shaw"}
    )


def test_tokens(analyse, checkpoint, corpus, capsys):
    named = models(corpus, checkpoint("sinusoidal"), checkpoint("shaw"))
    prefix = analyse("tokens", *named, "--frequency-bins", "9", "--position-bins", "5,10")
    data = check(prefix, capsys.readouterr().out, "Share of the tokens of valid that shaw")
    assert data["frequency_ranks"] == ["1-9", "10+", "all"]


def test_length(analyse, tmp_path, capsys):
    outputs = []
    for name, end in (("a", "."), ("b", "!")):
        lines = [
            f"{kind}-{i}\t{score}ein Haus steht {'hier ' * i}{end if score else '.'}"
            for i in range(8)
            for kind, score in (("S", ""), ("T", ""), ("H", "-1\t"), ("D", "-1\t"))
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        outputs.append(f"{name}={tmp_path / name}")
    options = ["--bins", "5,7", "--samples", "20", "--language", "de"]
    prefix = analyse("length", "--generated", *outputs, *options)
    data = check(prefix, capsys.readouterr().out, "sacreBLEU by source length (words): a")
    assert data["models"]["a"]["all"]["bleu"] == pytest.approx(100)
    assert data["models"]["b"]["all"]["high"] < 0


def test_attention(analyse, checkpoint, corpus, capsys):
    named = models(corpus, checkpoint("rel_scalar"), checkpoint("sinusoidal"), checkpoint("t5"))
    prefix = analyse("attention", *named, "--length", "12", "--inputs", "2")
    data = check(prefix, capsys.readouterr().out, "Ranks", (".png", ".ranks.png"))
    assert [len(model["layers"]) for model in data["models"].values()] == [3, 1, 3]


def test_nothing_is_written_when_a_model_is_refused(analyse, checkpoint, tmp_path):
    with pytest.raises(UsageError, match="depend on the queries"):
        analyse("attention", "--models", checkpoint("t5"), checkpoint("shaw"), "--length", 8)
    with pytest.raises(UsageError, match="no checkpoint nowhere.pt"):
        analyse("attention", "--models", "a=nowhere.pt")
    assert not (tmp_path / "out").exists()
