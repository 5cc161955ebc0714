"""The model card of an export, and --check, which measures what it says."""

import json
import re
from dataclasses import replace

import pytest
import torch

from fairseq_posenc.data.segmentation import CODES, TOKENIZER, Moses
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.families import EXPORTED
from tests.tiny import binarise

transformers = pytest.importorskip("transformers")


@pytest.fixture
def binarised(data):
    """The folder of dictionaries with a test set of 60 sentences."""
    for name, types in (("test.en-de.en", 40), ("test.en-de.de", 36), ("test", 40)):
        generator = torch.Generator().manual_seed(1)
        lengths = torch.randint(1, 30, (60,), generator=generator).tolist()
        words = (torch.randint(4, types, (n,), generator=generator).tolist() for n in lengths)
        binarise(data / name, ([*sentence, 2] for sentence in words))
    return data


@pytest.mark.parametrize(
    "kind, encoding, options, title, answer",
    [
        ("checkpoint", "cape", {}, "# Translation, en to de", r"(w\d+ ?)+"),
        ("lm_checkpoint", "rotary", {}, "# Language model", r"(w\d+ ?)+"),
        ("bert_checkpoint", "learned", {}, "# BERT", r"\[.*\]"),
    ],
)
def test_the_card_says_what_was_measured_and_its_code_runs(
    request, binarised, run_code, tmp_path, kind, encoding, options, title, answer
):
    path, _ = request.getfixturevalue(kind)(encoding, **options)
    agreement, *_ = to_huggingface(str(path), str(tmp_path / "hf"), str(binarised), check=True)
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert f"\n{title}\n" in card and f"`position:{encoding}|" in card
    measured = re.search(r"largest difference of scores (\S+) on 50 sentences, transformers", card)
    assert measured and float(measured.group(1)) < 1e-3
    assert measured.group() in agreement
    assert str(tmp_path) not in card and re.fullmatch(answer, run_code(card, tmp_path / "hf"))


@pytest.fixture
def run_code(monkeypatch, capsys):
    """A function that runs the code of a card in its folder, with another text: what it prints."""

    def run_code(card, folder):
        [code] = re.findall("```python\n(.*?)```", card, re.DOTALL)
        monkeypatch.chdir(folder)
        capsys.readouterr()
        exec(code.replace("A text of your own.", "w1 w2"), {"__name__": "__main__"})
        return capsys.readouterr().out.strip()

    return run_code


def test_the_card_of_a_model_of_moses_tokens_tokenises(checkpoint, binarised, run_code, tmp_path):
    """Also where source and target have dictionaries of their own."""
    path, _ = checkpoint("cape")
    how = dict.fromkeys(Moses._fields[1:], True)
    (binarised / TOKENIZER).write_text(json.dumps(how))
    (binarised / CODES).write_text("#version: 0.2\nw 1</w>\n")
    to_huggingface(str(path), str(tmp_path / "hf"), str(binarised))
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert 'sacremoses.MosesTokenizer("en")' in card
    assert 'sacremoses.MosesDetokenizer("de")' in card and card.count("{folder}/target") == 1
    run_code(card, tmp_path / "hf")


def test_check_refuses_what_computes_otherwise(checkpoint, binarised, tmp_path, monkeypatch):
    path, _ = checkpoint("sinusoidal")
    key = ("posenc_transformer", "after", "sinusoids")
    to_config = EXPORTED[key].to_config
    wrong = replace(
        EXPORTED[key], to_config=lambda s: {**to_config(s), "activation_function": "gelu"}
    )
    monkeypatch.setitem(EXPORTED, key, wrong)
    with pytest.raises(UsageError, match="scores of FSMT.* differ by up to"):
        to_huggingface(str(path), str(tmp_path / "hf"), str(binarised), check=True)
    assert not (tmp_path / "hf").exists()


def test_check_needs_sentences(checkpoint, data, tmp_path):
    path, _ = checkpoint("sinusoidal")
    with pytest.raises(UsageError, match="--check needs a binarised test, valid or train set"):
        to_huggingface(str(path), str(tmp_path / "hf"), str(data), check=True)
