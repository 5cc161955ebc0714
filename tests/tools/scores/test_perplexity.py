"""Perplexity: windows, sums and intervals by hand; trained models equal fairseq-eval-lm."""

import math
import re

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import perplexity

EOS = 2


class Markov(torch.nn.Module):
    """Predicts from the last token alone; remembers what it was shown."""

    def __init__(self, logits):
        super().__init__()
        self.logits, self.shown = torch.nn.Parameter(logits), []

    def forward(self, tokens):
        self.shown += tokens.tolist()
        return self.logits[tokens]

    def get_normalized_probs(self, output, log_probs, sample):
        return output.log_softmax(dim=-1)


@pytest.mark.parametrize("length, stride", [(3, None), (4, 2), (100, None)])
def test_bits_are_those_of_the_tokens_before(length, stride):
    logits = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    tokens = torch.tensor([3, 5, 4, EOS, 3, 3, EOS])
    model, parts = Markov(logits), [*perplexity.windows(len(tokens), length, stride)]
    found = perplexity.predict(model, tokens, parts, EOS, max_tokens=6)
    stream = [EOS, *tokens.tolist()]
    assert model.shown == [stream[part.start : part.end] for part in parts]
    by_hand = [
        -math.log2(math.exp(logits[a, b]) / sum(math.exp(x) for x in logits[a]))
        for a, b in zip(stream, stream[1:])
    ]
    assert found.bits == pytest.approx(by_hand, abs=1e-6)
    shown = {part.first + n: part.first + n - part.start for part in parts
             for n in range(part.end - part.first)}  # fmt: skip
    assert found.positions.tolist() == [shown[n] for n in range(len(tokens))]


def test_means_by_position():
    one = perplexity.Predicted(np.array([1.0, 2, 3, 4, 5]), np.array([0, 1, 2, 0, 1]))
    other = perplexity.Predicted(one.bits + 2, one.positions)
    assert perplexity.by_position([one, other], 2) == [(0, (1 + 2 + 4 + 5) / 4 + 1), (2, 4.0)]


def test_intervals_cover_what_is_drawn():
    """Of texts and seeds drawn anew, 95 % of the intervals hold the true mean."""
    random, hits = np.random.RandomState(1), 0
    for _ in range(400):
        pieces = np.repeat(random.randn(40), 5) + random.randn(200)
        seeds = [3 + pieces + 0.1 * random.randn() + random.randn(200) for _ in range(3)]
        found = perplexity.mean(seeds, piece=5)
        hits += found.low <= 3 <= found.high
    assert 0.92 <= hits / 400 <= 0.995
    assert perplexity.mean([np.ones(10)], piece=5)[:3] == (1, 1, 1)


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_text_of_one_piece_has_no_interval(seeds):
    mean = perplexity.mean([np.ones(3)] * seeds, piece=5)
    assert mean == (1, None, None, None)


def test_words_and_bytes_of_a_text(tmp_path, monkeypatch):
    lines = [torch.tensor([4, 5, EOS]), torch.tensor([6, EOS])]
    spelt = {3: "ab c", 2: "ü"}
    dictionary = Dictionary()
    monkeypatch.setattr(dictionary, "string", lambda line: spelt[len(line)])
    monkeypatch.setattr(perplexity.data_utils, "load_indexed_dataset", lambda *_: lines)
    text = perplexity.read_text("bin", "test", dictionary, "@@ ")
    assert text.tokens.tolist() == [4, 5, EOS, 6, EOS]
    assert (text.words, text.bytes) == (2 + 1 + 1 + 1, 5 + 3)
    dictionary.add_symbol("<unk>", overwrite=True)  # number 4, which the text has
    assert perplexity.read_text("bin", "test", dictionary, "@@ ")[1:] == (None, None)
    dictionary.symbols.pop()
    lines[0][0] = 3
    assert perplexity.read_text("bin", "test", dictionary, "@@ ")[1:] == (None, None)
    raw = tmp_path / "raw"
    raw.write_text("ab  c\nu\n")
    assert perplexity.read_text("bin", "test", dictionary, "@@ ", str(raw))[1:] == (5, 8)
    raw.write_text("de\nf\n")
    with pytest.raises(UsageError, match="other sentences than 'test' in bin, .* line 1: give"):
        perplexity.read_text("bin", "test", dictionary, "@@ ", str(raw))


@pytest.fixture(scope="session")
def language_model(tmp_path_factory, run):
    """A folder with a binarised text, in `bin`, and tiny trained models, in folders by name."""
    folder = tmp_path_factory.mktemp("lm")
    generator = np.random.RandomState(1)
    for split, count in (("train", 300), ("test", 60)):
        rows = (generator.randint(20, size=generator.randint(3, 12)) for _ in range(count))
        text = "".join(" ".join(f"w{n}" for n in row) + "\n" for row in rows)
        (folder / split).write_text(text)
    run("fairseq-preprocess", "--only-source", "--trainpref", folder / "train",
         "--testpref", folder / "test", "--destdir", folder / "bin")  # fmt: skip
    for name, options in (("a", ["--position-encoding", "alibi"]),
                          ("b", ["--adaptive-input", "--adaptive-input-cutoff", "10",
                                 "--adaptive-softmax-cutoff", "10",
                                 "--criterion", "adaptive_loss",
                                 "--ddp-backend", "legacy_ddp"]),
                          ("bos", ["--position-encoding", "learned", "--add-bos-token"]),
                          ("lines", ["--sample-break-mode", "eos"])):  # fmt: skip
        run("fairseq-train", folder / "bin", "--user-dir", "fairseq_posenc",
             "--task", "language_modeling", "--arch", "posenc_transformer_lm_tiny", *options,
             "--tokens-per-sample", 16, "--max-tokens", 400, "--optimizer", "adam", "--lr", 0.003,
             # fairseq 0.12.2 loads a validation set also where there is no validation
             "--max-update", 15, "--disable-validation", "--valid-subset", "train", "--cpu",
             "--save-dir", folder / name)  # fmt: skip
    return folder


@pytest.mark.parametrize("name, mode, evaluation", [
    ("a", ["--lengths", 16], ["--tokens-per-sample", 16]),
    ("a", ["--lengths", "40,40"], ["--tokens-per-sample", 40]),
    ("a", ["--lengths", 16, "--mode", "sliding", "--stride", 8],
     ["--tokens-per-sample", 16, "--context-window", 8]),
    ("b", ["--lengths", 16], ["--tokens-per-sample", 16]),
    ("bos", ["--lengths", 16], ["--tokens-per-sample", 16, "--add-bos-token"]),
    ("bos", ["--lengths", 7], ["--tokens-per-sample", 7, "--add-bos-token"]),
    ("lines", ["--lengths", 16], ["--tokens-per-sample", 16]),
])  # fmt: skip
def test_perplexity_is_that_of_fairseq_eval_lm(
    language_model, posenc, run, tmp_path, name, mode, evaluation
):
    path = language_model / name / "checkpoint_last.pt"
    printed = posenc("perplexity", "--models", f"m={path}", "--data", language_model / "bin", *mode,
                     "--cpu", "--output", tmp_path / "p").out  # fmt: skip
    evaluated = run("fairseq-eval-lm", language_model / "bin", "--user-dir", "fairseq_posenc",
                     "--path", path, "--gen-subset", "test", "--cpu", "--max-tokens", 400,
                     "--sample-break-mode", "none", *evaluation)  # fmt: skip
    [(bits, ppl)] = re.findall(r"base 2\): ([\d.]+), Perplexity: ([\d.]+)", evaluated)
    [row] = re.findall(r"^\| m .*", printed, re.MULTILINE)
    cells = [cell.strip() for cell in row.split("|")]
    assert float(cells[4].split()[0]) == pytest.approx(float(bits), abs=6e-4)
    assert float(cells[7]) == pytest.approx(float(ppl), abs=0.011)


def test_two_models_are_compared(language_model, posenc, tmp_path, capsys):
    path = language_model / "a" / "checkpoint_last.pt"
    same = [f"one={path}", f"one={path}", f"two={path}", f"two={path}"]
    words = ["perplexity", "--data", language_model / "bin", "--cpu",
             "--output", tmp_path / "p"]  # fmt: skip
    printed = posenc(
        *words, "--lengths", "8,16", "--models", *same, "--baseline", "two", "--by-position", 8
    ).out
    assert "| one   |      8 |   2 |" in printed and "| +0.000 ± 0.000 |" in printed
    assert re.search(r"^\| 9 +\| +- \|", printed, re.MULTILINE)
    assert {"p.md", "p.json", "p.png"} == {file.name for file in tmp_path.iterdir()}
    for wrong, said in [
        (["--lengths", "8,16", "--baseline", "three"], "--baseline is not one of the models"),
        (["--lengths", "8", "--mode", "sliding"], "--lengths must be at least --stride"),
        (["--lengths", "8", "--stride", 4], "--stride is for --mode sliding"),
    ]:
        with pytest.raises(SystemExit):
            posenc(*words, "--models", *same, *wrong)
        assert said in capsys.readouterr().err
    # no figure stands beside a length that the text does not have
    printed = posenc(*words, "--models", *same, "--lengths", "8,99998,99999")
    assert "--lengths 99998, 99999 left out\n" in printed.err and "9999" not in printed.out
    [count] = re.findall(r"(\d+) tokens, blocks", printed.out)
    printed = posenc(*words, "--models", *same, "--lengths", count).out
    assert re.search(r"\| one +\| +\d+ \| +2 \| +[\d.]+ ± - +\|", printed)
    assert f"± is - as the text is one piece of {count} tokens" in printed
    with pytest.raises(UsageError, match="tokens: give shorter --lengths"):
        posenc(*words, "--models", *same, "--lengths", "99999")
