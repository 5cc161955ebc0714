"""The command line of every analysis, and what it writes."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from fairseq import tasks
from omegaconf import OmegaConf

import fairseq_posenc.models.transformer_lm  # noqa: F401 (registers it)
from fairseq_posenc.errors import UsageError
from tests.tiny import checkpoint_of, parsed


@pytest.fixture
def analyse(posenc, tmp_path):
    """A function that runs an analysis; returns its output's prefix and what it printed."""
    prefix = tmp_path / "out" / "it"
    return lambda *words: (prefix, posenc("analyse", *words, "--output", prefix).out)


CASES = {
    "shift-invariance": (
        ["sinusoidal", "learned", "t5"], "--offsets 0,10,60 --sentences 3",
        "Cosine similarity", {"sentences": 3, "offsets": [0, 10, 60]},
    ),
    "swap": (
        ["sinusoidal", "shaw"], "--pairs 4 --beam 2 --max-len-a 1 --max-len-b 2",
        "sacreBLEU of the", {"pairs": 4, "beam": 2},
    ),
    "tokens": (
        ["sinusoidal", "shaw"], "--frequency-bins 9 --position-bins 5,10",
        "Share of the tokens of valid that shaw", {"frequency_ranks": ["1-9", "10+", "all"]},
    ),
    "attention": (
        ["rel_scalar", "sinusoidal", "t5"], "--length 12 --inputs 2", "Ranks", {"length": 12},
    ),
}  # fmt: skip


def test_of_several_pairs_that_of_the_model_is_taken(analyse, checkpoint, corpus, tmp_path):
    pairs = tmp_path / "pairs"
    shutil.copytree(corpus.path, pairs)
    for path in pairs.glob("*.en-de.*"):
        shutil.copy(path, str(path).replace("en-de", "aa-de").replace(".en.", ".aa."))
    shutil.copy(pairs / "dict.en.txt", pairs / "dict.aa.txt")
    model = checkpoint("sinusoidal")
    words = ["shift-invariance", "--data", pairs, "--offsets", "0,1", "--models"]
    assert "9 sentences of test" in analyse(*words, model)[1]
    with pytest.raises(UsageError, match="was trained for en-de, not for aa-de: leave out"):
        analyse(*words, model, "--source-lang", "aa", "--target-lang", "de")
    state = torch.load(model.partition("=")[2], weights_only=False)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)  # as fairseq's own have it
    stock = tmp_path / "stock.pt"
    torch.save(state, stock)
    message = "several pairs of languages, aa-de, en-de, and .*: give --source-lang and --target"
    with pytest.raises(UsageError, match=message):
        analyse(*words, f"stock={stock}")
    assert "9 sentences of test" in analyse(*words, f"stock={stock}", "--source-lang", "en")[1]


@pytest.mark.parametrize("name", CASES)
def test_every_analysis_prints_and_writes(analyse, checkpoint, corpus, name):
    encodings, options, title, expected = CASES[name]
    models = [checkpoint(encoding) for encoding in encodings]
    words = [name, "--models", *models, "--data", corpus.path, "--cpu", *options.split()]
    prefix, printed = analyse(*words)
    pictures = [".png", ".ranks.png"] if name == "attention" else [".png"]
    written = sorted(path.name for path in prefix.parent.iterdir())
    assert written == sorted(f"it{ending}" for ending in (".md", ".json", *pictures))
    for ending in pictures:
        assert Path(f"{prefix}{ending}").read_bytes().startswith(b"\x89PNG")
    text = Path(f"{prefix}.md").read_text(encoding="utf-8")
    assert printed == text and text.startswith(title)
    data = json.loads(Path(f"{prefix}.json").read_text(encoding="utf-8"))
    assert data["command"][:3] == ["posenc", "analyse", name] and "torch" in data["versions"]
    assert {key: data[key] for key in expected} == expected
    described = data.get("encodings", data.get("models"))
    assert "position:sinusoidal|" in json.dumps(described) or name == "tokens"


def test_nothing_is_written_when_a_model_is_refused(analyse, checkpoint, corpus, tmp_path):
    with pytest.raises(UsageError, match="depend on the queries"):
        analyse("attention", "--models", checkpoint("shaw"), "--data", corpus.path, "--length", 8)
    for models, message in (
        (["a=nowhere.pt"], "no checkpoint nowhere.pt"),
        ([checkpoint("t5")] * 2, "two of the name t5"),
        (["t5.pt"], "expected NAME=FILE"),
    ):
        with pytest.raises(UsageError, match=message):
            analyse("attention", "--models", *models, "--data", corpus.path)
    assert not (tmp_path / "out").exists()


def test_a_language_model_has_no_encoder_and_is_refused(analyse, posenc, corpus, tmp_path):
    words = "--task language_modeling --arch posenc_transformer_lm_tiny --tokens-per-sample 32"
    cfg = parsed([corpus.text, *words.split()])
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    plain = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    torch.save(checkpoint_of(plain, model.state_dict()), tmp_path / "lm.pt")
    for name, message in (("attention", "needs the encoder of"), ("swap", "a translation model")):
        with pytest.raises(UsageError, match=message):
            analyse(name, "--models", f"lm={tmp_path / 'lm.pt'}", "--data", corpus.text)
    words = f"predict --path {tmp_path}/lm.pt --data {corpus.text} --output {tmp_path}/out".split()
    with pytest.raises(UsageError, match="--task language_modeling, which predicts nothing; fine"):
        posenc(*words, "--subsets", "valid")
    assert not (tmp_path / "out").exists()
