"""Longer tables of learned positions, against loops over their formulas, in all kinds of models."""

import math

import pytest
import torch

from fairseq_posenc import compat
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.extending import HOW, extend, extended
from tests.tiny import build_model

OURS = {"position_encoding": "learned"}
STOCK = {"encoder_learned_pos": True, "decoder_learned_pos": True}
MODELS = {
    "posenc_transformer": ("transformer", OURS),
    "transformer": ("transformer", STOCK),
    "posenc_bert": ("bert", OURS),
    "roberta": ("bert", {}),
}
TABLE = {"transformer": "encoder.embed_positions.weight"}
TABLE["bert"] = "encoder.sentence_encoder.embed_positions.weight"
every_model = pytest.mark.parametrize("arch", MODELS)


def interpolated(rows, p, m):
    place = p * (len(rows) - 1) / (m - 1)
    k = min(int(place), len(rows) - 2)
    return [(1 - place + k) * a + (place - k) * b for a, b in zip(rows[k], rows[k + 1])]


def repeated(rows, p, m):
    while p >= len(rows):
        p -= len(rows)
    return rows[p]


def with_sinusoids(rows, p, m):
    if p < len(rows):
        return rows[p]
    values = [x for row in rows for x in row]
    pairs = len(rows[0]) // 2
    size = math.sqrt(sum(x * x for x in values) / len(values) / 0.5)
    angles = [(p + 2) * 10000 ** (-c / (pairs - 1)) for c in range(pairs)]
    return [size * math.sin(a) for a in angles] + [size * math.cos(a) for a in angles]


@pytest.mark.parametrize("n, m", [(5, 6), (5, 13), (7, 70), (2, 3)])
def test_rows_are_those_of_the_formula(n, m):
    rows = torch.randn(n, 6, generator=torch.Generator().manual_seed(n + m))
    for how, reference in zip(HOW, (interpolated, repeated, with_sinusoids)):
        found = extended(rows, m, how)
        expected = [reference(rows.tolist(), p, m) for p in range(m)]
        torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-5)
        assert torch.equal(found[:n], rows) or how == "interpolate"


def trained(task, arch, limit=9):
    """A tiny model with tables of so many rows."""
    kind, options = MODELS[arch]
    sizes = dict(encoder_layers=1, encoder_embed_dim=16, encoder_ffn_embed_dim=16)
    sizes.update(max_source_positions=limit, max_target_positions=limit, max_positions=limit)
    sizes.update(encoder_attention_heads=2, share_all_embeddings=True, **options)
    task.max_positions = lambda: limit
    return build_model(kind, task, stock="posenc" not in arch, arch=arch, **sizes)


def write(path, model):
    state = {"model": model.state_dict(), "args": None, "cfg": {"model": model.options}}
    torch.save({**state, "last_optimizer_state": {"state": {}}}, path)


@every_model
@pytest.mark.parametrize("how", HOW)
def test_models_of_all_kinds_load_with_what_they_have_learned(tiny_task, tmp_path, arch, how):
    is_bert = arch in ("posenc_bert", "roberta")
    model = trained(tiny_task, arch)
    write(tmp_path / "9.pt", model)
    option = "max_positions" if is_bert else "max_source_positions"
    notes = extend(str(tmp_path / "9.pt"), str(tmp_path / "20.pt"), how, {option: 20})
    assert len(notes) == 1 and "9 positions became 20" in notes[0]
    state = torch.load(tmp_path / "20.pt", weights_only=False)
    assert getattr(state["cfg"]["model"], option) == 20
    longer = trained(tiny_task, arch, limit=20)
    if not is_bert:
        assert state["cfg"]["model"].max_target_positions == 9
        longer.decoder.embed_positions = model.decoder.embed_positions
    longer.load_state_dict(state["model"])
    assert state["last_optimizer_state"] is None
    key, after = TABLE["bert" if is_bert else "transformer"], dict(longer.named_parameters())
    for name, old in model.named_parameters():
        if name.endswith(tuple(f".{copy}" for copy in compat._FUSED_WEIGHTS)):
            continue  # stock layers of fairseq 0.12.2 make these copies anew when they load
        rows = torch.cat([old[:2], extended(old[2:].detach(), 20, how)]) if name == key else old
        assert torch.equal(after[name], rows)


def test_what_cannot_be_extended_is_refused_and_nothing_written(tiny_task, tmp_path):
    path, output = tmp_path / "9.pt", tmp_path / "20.pt"
    write(path, trained(tiny_task, "posenc_transformer"))
    for limits, words in (
        ({"max_source_positions": 9}, "--max-source-positions 9: the table has 9 positions"),
        (
            {"max_positions": 20},
            "no table of learned positions for --max-positions: it was .*; "
            "its tables are those of --max-source-positions and --max-target-positions",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            extend(str(path), str(output), "repeat", limits)
    with pytest.raises(UsageError, match="is an input, and would be lost"):
        extend(str(path), str(path), "repeat", {"max_source_positions": 20})
    assert not output.exists()


ODD = {
    "a list": lambda state: [state],
    "nothing": lambda state: None,
    "no model": lambda state: {**state, "model": None},
    "an empty model": lambda state: {**state, "model": {}},
    "text in the model": lambda state: {**state, "model": {**state["model"], "x": "text"}},
    "options that are text": lambda state: {**state, "args": "text"},
    "a number for a table": lambda state: with_table(state, torch.tensor(1.0)),
    "a row for a table": lambda state: with_table(state, torch.ones(9)),
    "a cube for a table": lambda state: with_table(state, torch.ones(9, 2, 2)),
    "whole numbers": lambda state: with_table(state, torch.ones(9, 32, dtype=torch.long)),
    "no rows": lambda state: with_table(state, torch.ones(2, 32)),
    "text for a table": lambda state: with_table(state, "text"),
    "no encoder": lambda state: {
        **state,
        "model": {k: v for k, v in state["model"].items() if not k.startswith("encoder")},
    },
}


def with_table(state, table):
    return {**state, "model": {**state["model"], TABLE["transformer"]: table}}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("how", HOW)
def test_odd_checkpoints_are_refused_in_one_line(tiny_task, tmp_path, name, how):
    path, output = str(tmp_path / "9.pt"), tmp_path / "20.pt"
    write(path, trained(tiny_task, "posenc_transformer"))
    state = torch.load(path, weights_only=False)
    torch.save(ODD[name](state), path)
    with pytest.raises(UsageError, match="9.pt"):
        extend(path, str(output), how, {"max_source_positions": 20})
    assert not output.exists()
