"""Longer tables of learned positions, against loops over their formulas, in all kinds of models."""

import math
from argparse import Namespace

import pytest
import torch
from fairseq.models.roberta.model import RobertaModel
from fairseq.models.roberta.model import base_architecture as roberta_architecture
from fairseq.models.transformer import TransformerModel, tiny_architecture

from fairseq_posenc import compat
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.extending import HOW, extend, extended

OURS = {"position_encoding": "learned"}
STOCK = {"encoder_learned_pos": True, "decoder_learned_pos": True}
MODELS = {
    "posenc_transformer": (PosencTransformerModel, tiny_architecture, OURS),
    "transformer": (TransformerModel, tiny_architecture, STOCK),
    "posenc_bert": (PosencBertModel, roberta_architecture, OURS),
    "roberta": (RobertaModel, roberta_architecture, {}),
}
TABLE = {"transformer": "encoder.embed_positions.weight"}
TABLE["bert"] = "encoder.sentence_encoder.embed_positions.weight"
MOMENTS = ("exp_avg", "exp_avg_sq")
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


def trained(task, arch, limit=9, updates=1):
    """A tiny model with tables of so many rows, its optimiser, and its options."""
    kind, architecture, options = MODELS[arch]
    args = Namespace(arch=arch, encoder_layers=1, encoder_embed_dim=16, encoder_ffn_embed_dim=16)
    args.__dict__.update(encoder_attention_heads=2, share_all_embeddings=True, **options)
    args.max_source_positions = args.max_target_positions = args.max_positions = limit
    architecture(args)
    task.max_positions = lambda: limit
    torch.manual_seed(1)
    model = kind.build_model(args, task)
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters() if updates else ():
        parameter.grad = torch.randn_like(parameter)
    if updates:
        optimizer.step()
    return model, optimizer, args


def write(path, model, optimizer, args):
    state = {"model": model.state_dict(), "args": None, "cfg": {"model": args}}
    torch.save({**state, "last_optimizer_state": optimizer.state_dict()}, path)


def flat(model, optimizer):
    """The state of the same optimiser over one row of all parameters, as --fp16 has it."""
    state, parameters = optimizer.state_dict(), list(model.parameters())
    moments = {"step": 1}
    for name in ("exp_avg", "exp_avg_sq"):
        moments[name] = torch.cat([optimizer.state[p][name].flatten() for p in parameters])
    groups = [{**state["param_groups"][0], "params": [0]}]
    return {**state, "state": {0: moments}, "param_groups": groups}


@every_model
@pytest.mark.parametrize("how", HOW)
def test_models_of_all_kinds_load_with_what_they_have_learned(tiny_task, tmp_path, arch, how):
    is_bert = arch in ("posenc_bert", "roberta")
    model, optimizer, args = trained(tiny_task, arch)
    write(tmp_path / "9.pt", model, optimizer, args)
    option = "max_positions" if is_bert else "max_source_positions"
    notes = extend(str(tmp_path / "9.pt"), str(tmp_path / "20.pt"), how, {option: 20})
    assert len(notes) == 1 and "9 positions became 20" in notes[0]
    state = torch.load(tmp_path / "20.pt", weights_only=False)
    assert getattr(state["cfg"]["model"], option) == 20
    longer, fresh, _ = trained(tiny_task, arch, limit=20, updates=0)
    if not is_bert:
        assert state["cfg"]["model"].max_target_positions == 9
        longer.decoder.embed_positions = model.decoder.embed_positions
        fresh = torch.optim.Adam(longer.parameters())
    longer.load_state_dict(state["model"])
    key, before, after = TABLE["bert" if is_bert else "transformer"], {}, {}
    for name, parameter in model.named_parameters():
        if name.endswith(tuple(f".{copy}" for copy in compat._FUSED_WEIGHTS)):
            continue  # stock layers of fairseq 0.12.2 make these copies anew when they load
        before[name] = [parameter, *(optimizer.state[parameter][k] for k in MOMENTS)]
    fresh.load_state_dict(state["last_optimizer_state"])
    for name, parameter in longer.named_parameters():
        after[name] = [parameter, *(fresh.state[parameter][k] for k in MOMENTS)]
    for name, olds in before.items():
        for number, (old, new) in enumerate(zip(olds, after[name])):
            if name != key:
                assert torch.equal(new, old)
                continue
            rows = extended(old[2:].detach(), 20, how)
            if number and how == "sinusoid":
                rows[9:] = 0
            assert torch.equal(new, torch.cat([old[:2], rows]))


def test_moments_in_one_row_are_cut_where_the_table_is(tiny_task, tmp_path):
    model, optimizer, args = trained(tiny_task, "posenc_transformer")
    write(tmp_path / "9.pt", model, optimizer, args)
    state = torch.load(tmp_path / "9.pt", weights_only=False)
    torch.save({**state, "last_optimizer_state": flat(model, optimizer)}, tmp_path / "flat.pt")
    limits = {"max_source_positions": 20, "max_target_positions": 11}
    for name in ("9.pt", "flat.pt"):
        extend(str(tmp_path / name), str(tmp_path / f"long {name}"), "repeat", limits)
    apart, joined = (
        torch.load(tmp_path / f"long {name}", weights_only=False)["last_optimizer_state"]["state"]
        for name in ("9.pt", "flat.pt")
    )
    for name in MOMENTS:
        parts = [apart[index][name].flatten() for index in sorted(apart)]
        assert torch.equal(joined[0][name], torch.cat(parts))
    # an optimiser that remembers something else
    state["last_optimizer_state"]["state"][3]["exp_avg"] = torch.zeros(7)
    torch.save(state, tmp_path / "odd.pt")
    notes = extend(str(tmp_path / "odd.pt"), str(tmp_path / "new.pt"), "repeat", limits)
    assert notes[-1] == "without the optimiser's state: go on with --finetune-from-model"
    assert torch.load(tmp_path / "new.pt", weights_only=False)["last_optimizer_state"] is None


def test_what_cannot_be_extended_is_refused_and_nothing_written(tiny_task, tmp_path):
    path, output = tmp_path / "9.pt", tmp_path / "20.pt"
    write(path, *trained(tiny_task, "posenc_transformer"))
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
    write(path, *trained(tiny_task, "posenc_transformer"))
    state = torch.load(path, weights_only=False)
    torch.save(ODD[name](state), path)
    with pytest.raises(UsageError, match="9.pt"):
        extend(path, str(output), how, {"max_source_positions": 20})
    assert not output.exists()


def group(**content):
    return {"state": {}, "param_groups": [{"params": [0]}], **content}


ODD_STATES = [
    "text", group(state=[1]), group(state={0: "text"}), group(param_groups=["text"]),
    group(param_groups=[{"params": None}]),
]  # fmt: skip


@pytest.mark.parametrize("state", ODD_STATES, ids=str)
def test_an_odd_state_of_an_optimiser_is_left_out(tiny_task, tmp_path, state):
    path, output = str(tmp_path / "9.pt"), str(tmp_path / "20.pt")
    write(path, *trained(tiny_task, "posenc_transformer"))
    whole = torch.load(path, weights_only=False)
    torch.save({**whole, "last_optimizer_state": state}, path)
    notes = extend(path, output, "repeat", {"max_source_positions": 20})
    assert notes[-1].startswith("without the optimiser's state")


def test_the_moving_average_is_as_long_as_the_model(tiny_task, tmp_path):
    """Of ``--store-ema``; a resumed training loads it into a model with the longer table."""
    model, optimizer, args = trained(tiny_task, "posenc_transformer")
    write(tmp_path / "9.pt", model, optimizer, args)
    state = torch.load(tmp_path / "9.pt", weights_only=False)
    average = {name: 2 * weight for name, weight in state["model"].items()}
    state["extra_state"] = {"ema": average, "ema_fp32_params": dict(average)}
    torch.save(state, tmp_path / "9.pt")
    extend(str(tmp_path / "9.pt"), str(tmp_path / "20.pt"), "repeat", {"max_source_positions": 20})
    state, key = torch.load(tmp_path / "20.pt", weights_only=False), TABLE["transformer"]
    for weights in state["extra_state"].values():
        assert torch.equal(weights[key][2:], 2 * state["model"][key][2:])
