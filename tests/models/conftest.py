"""Tiny models of ours and of fairseq, translation and BERT, and their checkpoints."""

from argparse import Namespace

import pytest
import torch
from fairseq.models.roberta.model import RobertaModel
from fairseq.models.roberta.model import base_architecture as roberta_architecture
from fairseq.models.transformer import TransformerModel, tiny_architecture

from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel

SIZES = dict(max_source_positions=32, max_target_positions=32, max_positions=32, dropout=0.0)
SIZES.update(encoder_layers=1, encoder_embed_dim=16, encoder_ffn_embed_dim=16)


@pytest.fixture
def build(tiny_task):
    """A function that builds a tiny model of ours, or a stock one, with options."""
    tiny_task.max_positions = lambda: 32

    def build(model, stock=False, seed=1, **options):
        is_bert = model == "posenc_bert"
        args = Namespace(**{**SIZES, "encoder_attention_heads": 2, **options})
        args.arch = {False: "transformer", True: "roberta"}[is_bert] if stock else model
        (roberta_architecture if is_bert else tiny_architecture)(args)
        torch.manual_seed(seed)
        kinds = {False: TransformerModel, True: RobertaModel}
        ours = {False: PosencTransformerModel, True: PosencBertModel}
        built = (kinds if stock else ours)[is_bert].build_model(args, tiny_task)
        built.options = args
        return built

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
