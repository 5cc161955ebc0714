"""Translation with CTranslate2 as fairseq-generate does it, and the comparison of the two."""

import random
import re
from argparse import Namespace

import pytest
import torch
from fairseq.data import indexed_dataset

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.export.ct2_model import to_ctranslate2
from fairseq_posenc.tools.export.translate import (
    SEARCH,
    TranslatedTestSet,
    Translation,
    longest,
    render,
    translate_in_turn,
)
from fairseq_posenc.tools.results.generated import read_generated

pytest.importorskip("ctranslate2")
EOS, SENTENCES = 2, 12


@pytest.fixture
def binarised(data):
    """The test set of a task: sentences of 1 to 4 words, and the same words backwards."""
    draw = random.Random(5)
    sides = {"en": [], "de": []}
    for _ in range(SENTENCES):
        words = [draw.randrange(4, 12) for _ in range(draw.randint(1, 4))]
        sides["en"].append(words)
        sides["de"].append(words[::-1])
    for language, sentences in sides.items():
        prefix = str(data / f"test.en-de.{language}")
        builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", vocab_size=40)
        for words in sentences:
            builder.add_item(torch.IntTensor([*words, EOS]))
        builder.finalize(f"{prefix}.idx")
    return data


def teach(model):
    """Train a model for a second or two to say words backwards."""
    torch.manual_seed(1)
    for parameter in model.train().parameters():
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(120):
        words = torch.randint(4, 12, (24, 1 + step % 4))
        end = torch.full((24, 1), EOS)
        source, target = torch.cat([words, end], 1), torch.cat([words.flip(1), end], 1)
        output = model(source, None, torch.cat([end, target[:, :-1]], 1))[0]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(output.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
    return model.eval().state_dict()


@pytest.fixture(scope="module")
def lesson():
    """What was learnt, once for all tests."""
    return {}


@pytest.fixture
def learnt(checkpoint, lesson):
    """A checkpoint that has begun to learn to say words backwards."""
    path, model = checkpoint(
        "cape", position_source_scale=1.1, share_all_embeddings=True,
        encoder_layers=1, decoder_layers=1, encoder_embed_dim=32,
        encoder_normalize_before=True, decoder_normalize_before=True,
    )  # fmt: skip
    if not lesson:
        lesson.update(teach(model))
    state = load_checkpoint(path)
    state["model"] = dict(lesson)
    torch.save(state, path)
    return path


def rows(table):
    """The cells of a Markdown table below its head."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_both_translate_alike_and_are_compared(posenc, learnt, binarised, tmp_path):
    for kind in ("float32", "int8"):
        to_ctranslate2(str(learnt), str(tmp_path / kind), quantization=kind)
    folder, models = tmp_path / "compared", [tmp_path / "float32", tmp_path / "int8"]
    options = ["--max-len-a", "1", "--max-len-b", "9", "--beam", "3", "--threads", "1", "--cpu"]
    chosen = [part for model in models for part in ("--model", model)]
    printed = posenc(
        "translate", binarised, "--path", learnt, *chosen, "--output", folder, *options
    )
    ours, exact, rough = rows(printed.out)
    assert [ours[0], exact[0], rough[0]] == ["fairseq", "float32", "int8"]
    assert ours[2] == "1.00" and exact[3] == ours[3]
    assert exact[4] == "12 of 12, 100.00 %" and rough[4].endswith("%")
    found = {
        name: read_generated(str(folder / f"generate.{name}.out"), SENTENCES)
        for name in ("fairseq", "float32")
    }
    assert found["float32"].hypotheses == found["fairseq"].hypotheses
    assert found["fairseq"].references == [
        " ".join(reversed(source.split())) for source in found["fairseq"].sources
    ]
    assert len(set(found["fairseq"].hypotheses)) > 3
    # a single model prints the same
    printed = posenc("translate", binarised, "--model", models[0], *options)
    assert re.match(r"12 sentences, \d+ tokens in .* tokens/s; 0 were cut", printed.err)
    alone = tmp_path / "alone.out"
    alone.write_text(printed.out, encoding="utf-8")
    assert read_generated(str(alone), SENTENCES).hypotheses == found["fairseq"].hypotheses


def scores(path):
    """The score of every sentence and its translation."""
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {(line[0], line[2]): float(line[1]) for line in lines if line[0].startswith("H-")}


def test_scores_are_those_that_fairseq_prints(posenc, learnt, binarised, tmp_path):
    to_ctranslate2(str(learnt), str(tmp_path / "ct2"))
    folder = tmp_path / "compared"
    posenc(
        "translate", binarised, "--path", learnt, "--model", tmp_path / "ct2",
        "--output", folder, "--lenpen", "0.6", "--max-len-b", "30", "--cpu",
    )  # fmt: skip
    ours, theirs = scores(folder / "generate.fairseq.out"), scores(folder / "generate.ct2.out")
    # the end of a sentence is ruled out as first token before the softmax here, after it there
    differences = sorted(abs(ours[key] - theirs[key]) for key in ours.keys() & theirs.keys())
    assert len(differences) >= SENTENCES - 2
    assert differences[len(differences) // 2] < 0.01 and differences[-1] < 0.3


def test_bad_models_and_data_are_told_in_one_line(posenc, learnt, binarised, data, tmp_path):
    def told(*arguments):
        with pytest.raises(UsageError) as caught:
            posenc("translate", binarised, *arguments)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "no CTranslate2 model" in told("--model", tmp_path)
    model = tmp_path / "ct2"
    to_ctranslate2(str(learnt), str(model), positions=3)
    assert "--positions" in told("--model", model)
    assert "there is no binarised 'x'" in told("--model", model, "--gen-subset", "x")
    two = ["--path", learnt, "--output", tmp_path / "o", "--model", model, "--model", model]
    assert "two are named ct2" in told(*two)
    lines = (data / "dict.en.txt").read_text(encoding="utf-8").replace("w3 ", "other ")
    (data / "dict.en.txt").write_text(lines, encoding="utf-8")
    assert "source dictionary" in told("--model", model)


def test_batches_are_timed_in_turn(monkeypatch):
    calls = []

    def system(name):
        return lambda sample: calls.append((name, sample)) or []

    found, seconds = translate_in_turn({"a": system("a"), "b": system("b")}, [1, 2, 3])
    warm, timed = calls[:2], calls[2:]
    assert warm == [("a", 1), ("b", 1)]
    assert [name for name, _ in timed] == ["a", "b", "b", "a", "a", "b"]
    assert found == {"a": [[]] * 3, "b": [[]] * 3} and set(seconds) == {"a", "b"}


def test_the_table_compares_with_the_first():
    one = {0: Translation(0, ["a"], -1.0), 1: Translation(1, ["b", "c"], -1.0)}
    other = {0: Translation(0, ["a"], -2.0), 1: Translation(1, ["b"], -1.0)}
    table = render(
        {"x": TranslatedTestSet(one, 0.5, 30.0), "y": TranslatedTestSet(other, 0.1, 29.5)}
    )
    assert rows(table) == [
        ["x", "10", "1.00", "30.00", ""],
        ["y", "40", "4.00", "29.50", "1 of 2, 50.00 %"],
    ]


def test_the_longest_translation_is_fairseqs():
    sample = {"net_input": {"src_tokens": torch.zeros(2, 7)}}
    assert longest(sample, Namespace(**SEARCH)) == 200
    assert longest(sample, Namespace(max_len_a=1.5, max_len_b=10)) == 20
