"""Sizes that a stranger's checkpoint asks for: bounded by what its file holds."""

import copy
import functools
import re

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint, option_checks
from fairseq_posenc.checkpoints.sizes import no_larger_than
from fairseq_posenc.errors import UsageError
from tests.security.ways import export_it, from_bert, from_transformer, generate, set_option

pytestmark = pytest.mark.usefixtures("quiet")


def changed(cfg, group, **options):
    """Return options with some of a group changed."""
    for name, value in options.items():
        cfg = set_option(cfg, (group, name), value)
    return cfg


NOTHING = {"nothing": torch.empty(1 << 40, 0)}  # shows no size
LARGE = [
    {"encoder_layers": "100000"}, {"decoder_layers": 900}, {"encoder_layers": 900.0},
    {"encoder_embed_dim": "'30000'"}, {"encoder_embed_dim": " 3_0000 "},
    {"decoder_layers": "1e400"}, {"encoder_ffn_embed_dim": 1 << 39},
    {"max_source_positions": "10000000"}, {"max_target_positions": float("nan")},
    {"max_source_positions": 99_999, "encoder_embed_dim": 1024, "decoder_embed_dim": 1024},
    {"encoder_layers": 200_000},
    {"position_encoding": "shaw", "position_max_distance": "500000"},
    {"position_encoding": "t5", "position_num_buckets": "50000000"},
    {"position_encoding": "abs_scalar", "position_rank": "0x100000"},
]  # fmt: skip


@pytest.mark.parametrize("options", LARGE, ids=str)
@pytest.mark.parametrize("weights", [{}, NOTHING], ids=["small", "nothing"])
def test_sizes_beyond_the_weights_are_refused(translation, outcome, options, weights):
    cfg = changed(translation.cfg, "model", **options)
    # of a state in memory: the reader refuses the wide tensor itself
    state = translation.state(cfg=cfg, model={**translation.weights, **weights})
    with pytest.raises(UsageError, match="refused.*( its weights show|cannot be)"):
        option_checks.check_options(copy.deepcopy(state), "a.pt")
    path = translation.save(cfg=cfg, model={**translation.weights, **weights})
    for read in (generate, export_it, from_transformer):
        told = outcome(functools.partial(read, translation), 300, 10)
        assert f"checkpoint {path} refused" in told


@pytest.mark.parametrize("value", [200_000, "200000", "9999999999"])
@pytest.mark.parametrize("encoding", ["sinusoidal", "learned"])
def test_the_length_of_a_bert_model_is_bounded_by_its_weights(bert, outcome, encoding, value):
    cfg = changed(bert.cfg, "model", position_encoding=encoding)
    for group, name in (("task", "tokens_per_sample"), ("model", "max_positions")):
        bert.save(cfg=changed(cfg, group, **{name: value}))
        assert "refused" in outcome(lambda: from_bert(bert), 300, 10)


def test_tables_count_as_weights_while_a_model_is_built(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(bytes(1000))
    with no_larger_than([str(path)]):
        torch.nn.Module().register_buffer("table", torch.empty(9_000_000))
    with pytest.raises(UsageError, match="far larger"), no_larger_than([str(path)]):
        torch.nn.Module().register_buffer("table", torch.empty(11_000_000))


def test_a_model_is_no_larger_than_its_weights(translation):
    lengths = dict.fromkeys(["max_source_positions", "max_target_positions"], 64)
    names = vars(translation.cfg["model"])
    wide = re.compile("..coder_(ffn_)?embed_dim|decoder_(in|out)put_dim")
    widths = dict.fromkeys(filter(wide.fullmatch, names), 30000)
    cfg = changed(changed(translation.cfg, "task", **lengths), "model", **lengths, **widths)
    translation.save(cfg=cfg, model={**translation.weights, "long": torch.zeros(30000)})
    for read in (generate, export_it):
        with pytest.raises(UsageError, match="far larger than its weights"):
            read(translation)


def test_states_of_many_weights_and_old_optimizers_load(tmp_path):
    state = {"model": {f"w{n}": torch.zeros(1) for n in range(3000)}}
    state["old"] = {(n << 30) + 140_000_000_000_000: {"step": n} for n in range(3000)}
    for is_zip in (True, False):
        torch.save(state, tmp_path / "a.pt", _use_new_zipfile_serialization=is_zip)
        loaded = load_checkpoint(str(tmp_path / "a.pt"))
        assert loaded["old"] == state["old"] and loaded["model"].keys() == state["model"].keys()
