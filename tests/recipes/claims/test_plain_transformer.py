"""The Transformer of torch alone, which our figures are compared with."""

import importlib.util
import json
import math
from pathlib import Path

import pytest
import torch

from fairseq_posenc.encodings.base import Positions, StackConfig
from fairseq_posenc.encodings.cape import Cape
from fairseq_posenc.encodings.shape import Shape
from fairseq_posenc.encodings.sinusoidal import Sinusoidal

SCRIPT = Path(__file__).resolve().parents[3] / "recipes" / "claims" / "plain_transformer.py"
spec = importlib.util.spec_from_file_location("plain_transformer", SCRIPT)
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 5, 2, 1, 1]])
PREVIOUS = torch.tensor([[2, 7, 6, 5, 9, 8], [2, 6, 1, 1, 1, 1]])
SMALL = {"layers": 2, "width": 16, "ffn": 32, "heads": 4, "warmup": 5}
all_encodings = pytest.mark.parametrize("encoding", plain.ENCODINGS)


def build(encoding, **options):
    torch.manual_seed(1)
    options = plain.Regime(encoding, **SMALL, **options)
    return plain.PlainTransformer(options, entries=12, source_scale=1.25).eval()


@pytest.fixture
def run_dir(tmp_path):
    """A recipe's folder with 40 sentences of 1 to 12 words, of which each is its translation."""
    (tmp_path / "bin").mkdir()
    words = [f"w{number}" for number in range(8)]
    (tmp_path / "bin" / "dict.en.txt").write_text("".join(f"{word} 1\n" for word in words))
    lines = [" ".join((words * 3)[n % 8 : n % 8 + 1 + n % 12]) + "\n" for n in range(40)]
    for name in ("train", "valid", "test"):
        for language in ("en", "de"):
            (tmp_path / f"{name}.bpe.{language}").write_text("".join(lines))
    return tmp_path


@all_encodings
@pytest.mark.parametrize("gradients", [True, False])
def test_padding_and_the_future_change_nothing(encoding, gradients):
    # without gradients torch's fused layers give NaN for a bias with padding
    model = build(encoding)
    with torch.set_grad_enabled(gradients):
        both = model(SOURCE, PREVIOUS)
        alone = model(SOURCE[1:, :3], PREVIOUS[1:, :2])
        torch.testing.assert_close(both[1:, :2], alone, atol=1e-5, rtol=0)
        changed = PREVIOUS.clone()
        changed[0, 4:] = 10
        torch.testing.assert_close(model(SOURCE, changed)[0, :4], both[0, :4], atol=1e-5, rtol=0)
        assert not torch.allclose(model(SOURCE, changed)[0, 4:], both[0, 4:], atol=1e-3)


@all_encodings
def test_only_an_encoder_without_positions_takes_its_input_for_a_bag_of_words(encoding):
    model = build(encoding)
    swapped = SOURCE[:1, [1, 0, 2, 3, 4]]
    same = torch.allclose(model(SOURCE[:1], PREVIOUS[:1]), model(swapped, PREVIOUS[:1]), atol=1e-5)
    assert same == (encoding == "none")


@all_encodings
def test_positions_are_random_in_training_only(encoding):
    model = build(encoding)
    plainly = model(SOURCE, PREVIOUS)
    assert torch.equal(model(SOURCE, PREVIOUS), plainly)
    model.train()
    random = encoding in ("shape", "cape")
    assert torch.allclose(model(SOURCE, PREVIOUS), plainly, atol=1e-5) != random


def test_shape_shifts_source_and_target_of_a_sentence_independently_by_0_to_k():
    source, target = build("shape", max_shift=3).train().positions(1000, 4, 5)
    for side in (source, target):
        torch.testing.assert_close(
            side - side[:, :1], torch.arange(side.size(1)).expand_as(side) * 1.0
        )
        assert side[:, 0].unique().tolist() == [0, 1, 2, 3]
    assert len({*zip(source[:, 0].tolist(), target[:, 0].tolist())}) == 16


def test_cape_shifts_both_sides_of_a_pair_alike_but_for_each_token():
    source, target = build("cape").train().positions(2000, 4, 4)
    places = torch.arange(4.0)
    source, target = source - 1.25 * places, target - places
    shift = source.mean(1)
    assert 4.5 < shift.max() < 5.5 and -5.5 < shift.min() < -4.5
    for local in (source - source[:, :1], source - target):
        assert 0.9 < local.abs().max() <= 1.0


@pytest.mark.parametrize("encoding", ["alibi", "t5", "kerple"])
@pytest.mark.parametrize("causal", [False, True])
def test_biases_are_those_of_the_formula(encoding, causal):
    model, length = build(encoding), 150
    bias = model.bias(1, length, causal)
    for head in range(4):
        for i in range(length):
            for j in range(0, i + 1 if causal else length, 7):
                if encoding == "alibi":
                    expected = -(2.0 ** -(2 * (head + 1))) * abs(i - j)
                elif encoding == "t5":
                    expected = model.biases[causal][bucket(i - j, causal), head].item()
                else:
                    r1, r2 = model.biases[causal][1, :, head].exp().flatten().tolist()
                    expected = -r1 * math.log(1 + r2 * abs(i - j))
                assert math.isclose(bias[head, i, j].item(), expected, rel_tol=1e-5)


def bucket(distance, causal):
    """Bucket of a distance query minus key, in whole numbers (Raffel et al. 2020)."""
    one_way = 32 if causal else 16
    exact, size = one_way // 2, abs(distance)
    if size >= exact:
        # the largest m with exact · (128 / exact) ** (m / exact) ≤ size
        steps = [m for m in range(exact) if exact**exact * 128**m <= size**exact * exact**m]
        size = exact + steps[-1]
    return size if causal or distance >= 0 else size + one_way


@pytest.mark.parametrize(
    ("encoding", "ours", "scale"),
    [("sinusoidal", Sinusoidal, 1.0), ("shape", Shape, 1.0), ("cape", Cape, 1.25)],
)
@pytest.mark.parametrize("decoder", [False, True])
def test_evaluation_adds_what_our_encodings_add(encoding, ours, scale, decoder):
    ours = ours(StackConfig(channels=16, decoder=decoder), source_scale=scale).eval()
    positions = build(encoding).positions(1, 6, 6)[decoder]
    theirs = plain.sinusoids(positions + plain.FIRST_POSITION, 16)
    torch.testing.assert_close(ours(Positions.of_length(6)).input, theirs)


def test_batches_hold_every_pair_once_within_max_tokens():
    pairs = [
        ([5] * (n % 9) + [2], [number] * (n % 7) + [2]) for number, n in enumerate(range(100), 4)
    ]
    batches = plain.make_batches(pairs, max_tokens=120)
    found = []
    for source, previous, target in batches:
        assert len(source) * max(source.size(1), target.size(1)) <= 120
        for row in zip(source.tolist(), target.tolist()):
            found.append(tuple([token for token in side if token != plain.PAD] for side in row))
        assert (previous[:, 0] == plain.EOS).all()
        assert torch.equal(previous[:, 1:][target[:, 1:] != 1], target[:, :-1][target[:, 1:] != 1])
    assert sorted(found) == sorted(pairs)
    assert all(len(batch[0]) % 8 == 0 for batch in batches[:-1])


def test_a_training_learns_writes_json_and_repeats_itself(run_dir, capsys):
    results = []
    for name in ("a", "b"):
        options = plain.Regime(
            "t5", updates=60, validate_interval=20, max_tokens=100, bins=(4, 8), **SMALL
        )
        plain.main(options, str(run_dir), str(run_dir / name))
        results.append(json.loads((run_dir / name).read_text()))
    assert results[0] == results[1]
    assert list(results[0]["curve"]) == ["20", "40", "60"]
    assert results[0]["curve"]["60"] < results[0]["curve"]["20"] < 4
    assert list(results[0]["test"]) == ["1-4", "5-8", "9+"]
    assert (results[0]["encoding"], results[0]["seed"]) == ("t5", 1)
    assert "| valid on 'valid' subset | nll_loss " in capsys.readouterr().out
    assert not list(run_dir.glob("*.part"))


def test_learning_rates_are_fairseqs():
    options = plain.Regime("none", updates=20, warmup=5, lr=1.0)
    rates = [plain.learning_rate(options, done) for done in (0, 2, 5, 11, 20)]
    assert rates == [0, 0.4, 1, 0.6, 0]
