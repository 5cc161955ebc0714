"""Languages with a hyphen: by the name that is advised, from text to score, export and back."""

import re

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError

# by the name that a user tries: text, and sacreBLEU's tokeniser for it
TARGETS = {
    "pt-BR": (["O menino lê um livro.", "A casa é muito velha.", "Nós vamos à praia hoje."], "13a"),
    "zh-CN": (["男孩在看一本书。", "房子很旧。", "我们今天去海边。"], "zh"),
    "sr-Latn": (["Dečak čita knjigu.", "Kuća je veoma stara.", "Danas idemo na plažu."], "13a"),
}
SOURCE = ["The boy reads a book.", "The house is very old.", "We go to the beach today."]


@pytest.mark.parametrize("name", TARGETS)
def test_a_language_with_a_hyphen_from_text_to_score_export_and_back(
    posenc, write, checkpoint, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    target, tokenizer = TARGETS[name]
    text = {split: f"--{split} text" for split in ("train", "valid", "test")}
    command = f"prepare translation --source-lang en {' '.join(text.values())} --output data "
    command += "--sentencepiece 60 --ratio 9 --workers 1 --target-lang"
    with pytest.raises(UsageError) as refused:
        posenc(*command.split(), name)
    advised = re.search(r"write (\w+), and call your files so \(train.\1\)", str(refused.value))[1]
    write("text.en", SOURCE * 4), write(f"text.{advised}", target * 4)
    posenc(*command.split(), advised)

    path, _ = checkpoint("sinusoidal", prepared="data", target_lang=advised)
    printed = posenc(
        *f"export --path {path} --to huggingface --data data --output hf --check".split()
    )
    assert "FSMTForConditionalGeneration" in printed.out
    posenc(*"import --from hf --output back/model.pt".split())
    weights, again = (load_checkpoint(file)["model"] for file in (path, "back/model.pt"))
    assert all(torch.equal(weight, again[key]) for key, weight in weights.items())
    assert {file.name for file in (tmp_path / "back").glob("dict.*")} == {
        "dict.en.txt", f"dict.{advised}.txt",
    }  # fmt: skip

    lines = []
    for number, (source, line) in enumerate(zip(SOURCE * 4, target * 4)):
        lines += [f"S-{number}\t{source}", f"T-{number}\t{line}"]
        lines += [f"{mark}-{number}\t-0.1\t{line}" for mark in "HD"]
    write("out", lines)
    printed = posenc(*"score --generated out --data data".split())
    assert f"language: {advised}, source: en" in printed.out
    assert f"|tok:{tokenizer}|" in printed.out and "100.00" in printed.out
