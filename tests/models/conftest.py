"""Tiny models of ours and of fairseq, translation and BERT, and their checkpoints."""

import pytest
import torch

from tests.tiny import build_model

SIZES = dict(max_source_positions=32, max_target_positions=32, max_positions=32, encoder_layers=1)
SIZES.update(encoder_embed_dim=16, encoder_ffn_embed_dim=16, encoder_attention_heads=2)
STOCK = {"posenc_transformer": "transformer", "posenc_bert": "roberta"}


@pytest.fixture
def build(tiny_task):
    """A function that builds a tiny model of ours, or a stock one, with options."""
    tiny_task.max_positions = lambda: 32

    def build(model, stock=False, seed=1, **options):
        options = {**SIZES, **options, "arch": STOCK[model] if stock else model}
        return build_model(model.removeprefix("posenc_"), tiny_task, seed, stock, **options)

    return build


@pytest.fixture
def save(build, tmp_path):
    """A function that saves a tiny model as checkpoint_last.pt and returns what it saved."""

    def save(model, stock=False, **options):
        built = build(model, stock, seed=2, **options)
        state = {"args": None, "cfg": {"model": built.options}, "model": built.state_dict()}
        torch.save(state, tmp_path / "checkpoint_last.pt")
        return state

    return save
