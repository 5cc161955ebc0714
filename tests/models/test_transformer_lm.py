"""Promises of the language model, with every encoding."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_lm import PosencTransformerLanguageModel
from tests.tiny import build_model

each_encoding = pytest.mark.parametrize("encoding", names())
SIZES = dict(decoder_embed_dim=16, decoder_ffn_embed_dim=16, decoder_layers=2, dropout=0.0)
SIZES.update(decoder_attention_heads=2, max_target_positions=32, tokens_per_sample=32)


@pytest.fixture
def build_lm(tiny_task):
    """A function that builds a tiny language model: `encoding` names ours, None the stock one."""

    def build(encoding, seed=1, **options):
        options = {**SIZES, "position_encoding": encoding or None, **options}
        model = build_model("lm", tiny_task, seed, encoding is None, **options).eval()
        for parameter in model.decoder.embed_positions.parameters() if encoding else ():
            parameter.data += 0.3 * torch.randn(parameter.shape)
        return model

    return build


@pytest.fixture
def tokens():
    return torch.randint(4, 40, (3, 12), generator=torch.Generator().manual_seed(3))


@each_encoding
def test_step_by_step_gives_what_whole_sequences_give(build_lm, tokens, encoding):
    model, state = build_lm(encoding), {}
    whole, _ = model(tokens)
    for end in range(1, tokens.size(1) + 1):
        step, _ = model.decoder(tokens[:, :end], incremental_state=state)
        assert (step[:, -1] - whole[:, end - 1]).abs().max() < 1e-5


@pytest.mark.parametrize("encoding, learned", [("sinusoidal", False), ("learned", True)])
@pytest.mark.parametrize("tied", [False, True])
def test_weights_travel_to_the_stock_model_and_back(build_lm, tokens, encoding, learned, tied):
    options = {"share_decoder_input_output_embed": tied, "decoder_normalize_before": True}
    ours = build_lm(encoding, **options)
    stock = build_lm(None, seed=2, decoder_learned_pos=learned, **options)
    stock.load_state_dict(ours.state_dict())
    assert (stock(tokens)[0] - ours(tokens)[0]).abs().max() < 1e-5
    again = build_lm(encoding, seed=3, **options)
    again.load_state_dict(stock.state_dict())
    assert torch.equal(again(tokens)[0], ours(tokens)[0])


@pytest.mark.parametrize("encoding, learned", [("sinusoidal", False), ("learned", True)])
def test_a_stock_run_is_resumed_and_fine_tuned(build_lm, tmp_path, encoding, learned):
    stock = build_lm(None, decoder_learned_pos=learned)
    options = Namespace(**SIZES, decoder_learned_pos=learned, arch="transformer_lm")
    state = {"args": None, "cfg": {"model": options}, "model": stock.state_dict()}
    torch.save(state, tmp_path / "checkpoint_last.pt")
    run = {"restore_file": "checkpoint_last.pt", "save_dir": str(tmp_path)}
    build_lm(encoding, **run).load_state_dict(stock.state_dict())
    with pytest.raises(UsageError, match=f"trained with position:{encoding}.*has position:shaw"):
        build_lm("shaw", **run)
    run["save_dir"] = str(tmp_path / "new")
    run["finetune_from_model"] = str(tmp_path / "checkpoint_last.pt")
    # no encoding is named
    tuned = build_lm("", **run)
    assert tuned.signature.startswith(f"position:{encoding}|")


def test_post_norm_is_what_stock_fairseq_calls_transformer_lm(tokens, tiny_task):
    # its architecture is the defaults of its options, which no function changes
    options = vars(TransformerLanguageModelConfig(**SIZES, add_bos_token=False))
    stock = TransformerLanguageModel.build_model(Namespace(**options), tiny_task).eval()
    args = Namespace(**SIZES)
    ARCH_CONFIG_REGISTRY["posenc_transformer_lm_post_norm"](args)
    ours = PosencTransformerLanguageModel.build_model(args, tiny_task).eval()
    ours.load_state_dict(stock.state_dict())
    assert (stock(tokens)[0] - ours(tokens)[0]).abs().max() < 1e-5


def test_parameters_whose_names_do_not_match_are_frozen(build_lm):
    model = build_lm("shaw", train_only="*embed_positions*,*layers.0.fc?.bias")
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    tables = {f"decoder.embed_positions.{name}" for name in ("keys", "values")}
    assert trained == {*tables, "decoder.layers.0.fc1.bias", "decoder.layers.0.fc2.bias"}


@pytest.mark.parametrize("options, wanted", [
    ({"decoder_learned_pos": True}, "--decoder-learned-pos chooses fairseq's own positions"),
    ({"position_source_scale": "auto"}, "has no source"),
    ({"train_only": "*posit"}, "matches no parameter"),
    ({"train_only": "*self_attn*,*self_atn*"}, "--train-only \\*self_atn\\* matches no parameter"),
    ({"position_max_shift": 3}, "is not read by --position-encoding cape"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(build_lm, options, wanted):
    with pytest.raises(UsageError, match=wanted):
        build_lm("cape", **options)
