"""BERT models: exchange with stock RoBERTa, segments, heads, and every encoding in them."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_posenc.encodings import names
from fairseq_posenc.encodings import segments as kinds
from fairseq_posenc.errors import UsageError

TOKENS = torch.tensor([[0, 7, 8, 9, 2, 10, 11, 2], [0, 12, 13, 14, 2, 1, 1, 1]])
SEGMENTS = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]])


@pytest.fixture
def build_bert(build):
    """A function that builds a small model: `encoding` names ours, None stock RoBERTa."""

    def build_bert(encoding="learned", seed=1, **options):
        options = {"position_encoding": encoding, "encoder_layers": 2, **options}
        return build("posenc_bert", encoding is None, seed, **options).eval()

    return build_bert


@pytest.mark.parametrize(
    "name, sizes", [("base", (12, 768, 3072, 12)), ("large", (24, 1024, 4096, 16))]
)
def test_models_have_the_sizes_of_bert(name, sizes):
    args = Namespace()
    ARCH_CONFIG_REGISTRY[f"posenc_bert_{name}"](args)
    names_of = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    assert tuple(getattr(args, f"encoder_{kind}") for kind in names_of) == sizes


def enlarge_segments(model):
    for weights in model.encoder.sentence_encoder.segments.parameters():
        weights.data.uniform_(1, 2, generator=torch.Generator().manual_seed(1))


def logits(model, tokens=TOKENS, **others):
    with torch.no_grad():
        return model(tokens, **others)[0]


@pytest.mark.parametrize("there, back", [(None, "learned"), ("learned", None)])
def test_weights_are_exchanged_with_stock_roberta(there, back, build_bert):
    first, second = build_bert(there, seed=1), build_bert(back, seed=2)
    assert float((logits(first) - logits(second)).abs().max()) > 1e-2
    second.load_state_dict(first.state_dict())
    assert float((logits(first) - logits(second)).abs().max()) <= 1e-5


def test_new_models_are_drawn_as_roberta_is(build_bert):
    sizes = {"encoder_embed_dim": 64, "max_positions": 200}
    ours = build_bert("learned", position_segments="input", **sizes)
    stock = build_bert(None, **sizes).state_dict()
    for key, weights in ours.state_dict().items():
        if key in stock and weights.numel() > 2000:
            assert abs(float(weights.std() - stock[key].std())) < 1e-3, key
    assert 0.01 < float(ours.encoder.sentence_encoder.segments.weight.detach().std()) < 0.03


@pytest.mark.parametrize("kind", kinds.SEGMENT_MODULES)
@pytest.mark.parametrize("name", names())
def test_every_parameter_learns_and_padding_changes_nothing(name, kind, build_bert):
    model = build_bert(name, position_segments=kind, dropout=0.0)
    together = logits(model, segments=SEGMENTS)
    alone = logits(model, TOKENS[1:, :5], segments=SEGMENTS[1:, :5])
    assert float((together[1:, :5] - alone).abs().max()) <= 1e-5
    moved = logits(model, TOKENS[1:].roll(3, 1), segments=SEGMENTS[1:].roll(3, 1))
    assert float((together[1:, :5] - moved[:, 3:]).abs().max()) <= 1e-5
    model.train()(TOKENS, segments=SEGMENTS)[0].pow(2).sum().backward()
    assert not [key for key, p in model.named_parameters() if p.grad is None]


@pytest.mark.parametrize("kind", kinds.SEGMENT_MODULES)
def test_segments_are_reported_apart_if_asked_for(kind, build_bert):
    model = build_bert("rel_scalar", position_segments=kind)
    enlarge_segments(model)
    changed = float((logits(model) - logits(model, segments=SEGMENTS))[0].abs().max())
    assert changed == 0 if kind == "none" else changed > 1e-5
    none = logits(model, segments=torch.zeros_like(SEGMENTS))
    assert torch.equal(none, logits(model))


@pytest.mark.parametrize("kind", ["input", "per_head"])
def test_a_checkpoint_without_segments_gains_zeros(kind, build_bert, caplog):
    before, after = build_bert("shaw"), build_bert("shaw", seed=2, position_segments=kind)
    with caplog.at_level("INFO", "fairseq_posenc"):
        after.load_state_dict(before.state_dict())
    assert "start at zero: encoder.sentence_encoder.segments." in caplog.text
    assert not any(p.abs().any() for p in after.encoder.sentence_encoder.segments.parameters())
    expected = logits(before)
    assert float((logits(after, segments=SEGMENTS) - expected).abs().max()) <= 1e-6
    enlarge_segments(after)
    assert float((logits(after, segments=SEGMENTS) - expected).abs().max()) > 1e-4


def test_per_head_segments_have_four_scalars_per_head_and_layer(build_bert):
    few, many = (build_bert("t5", position_segments=kind) for kind in ("none", "per_head"))
    count = [sum(p.numel() for p in model.parameters()) for model in (few, many)]
    assert count[1] - count[0] == 2 * 2 * 2**2


@pytest.mark.parametrize("kind, labels", [("classification", [3]), ("span", [])])
def test_heads_may_be_trained_alone(build_bert, tiny_task, kind, labels):
    tiny_task.add_head = None  # as of the tasks that add one to the model
    model = build_bert("alibi", train_only="*_heads*")
    getattr(model, f"register_{kind}_head")("own", *labels)
    trained = {name.split(".")[0] for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {f"{kind}_heads"}


def test_heads_come_and_go_with_checkpoints(build_bert):
    plain, first, second = (build_bert("alibi", seed=seed) for seed in (1, 2, 3))
    for seed, model in enumerate((first, second)):
        torch.manual_seed(seed)
        model.register_span_head("span")
        model.register_classification_head("sentence", num_classes=3)
    own = logits(second, span_head_name="span")
    assert own.shape == (2, 8, 2)
    assert logits(second, classification_head_name="sentence").shape == (2, 3)
    second.load_state_dict(first.state_dict())
    expected = logits(first, span_head_name="span", segments=SEGMENTS)
    assert torch.equal(logits(second, span_head_name="span", segments=SEGMENTS), expected)
    kept = second.span_heads["span"].out_proj.weight.clone()
    second.load_state_dict(plain.state_dict())
    assert torch.equal(second.span_heads["span"].out_proj.weight, kept)
    plain.load_state_dict(first.state_dict())
    assert torch.equal(logits(plain), logits(first))


def test_only_masked_tokens_are_projected_if_told(build_bert):
    model, masked = build_bert("cape"), TOKENS.eq(9)
    assert torch.allclose(logits(model, masked_tokens=masked), logits(model)[masked], atol=1e-6)


def cut(state, key):
    return {**state, key: state[key][:-1]}


def test_a_checkpoint_of_another_model_is_refused_in_a_line(build_bert):
    learned, shaw = build_bert("learned"), build_bert("shaw")
    name = "encoder.sentence_encoder.embed_tokens.weight"
    with pytest.raises(
        UsageError, match=r"embed_tokens.weight is 39 x 16 there, 40 x 16 here.*dict"
    ):
        learned.load_state_dict(cut(learned.state_dict(), name))
    with pytest.raises(UsageError, match=r"embed_positions.weight.*--max-positions"):
        learned.load_state_dict(build_bert("learned", max_positions=16).state_dict())
    with pytest.raises(UsageError, match=r"--position-… options"):
        learned.load_state_dict(shaw.state_dict())
    with pytest.raises(UsageError, match=r"segments.*--position-… options"):
        shaw.load_state_dict(build_bert("shaw", position_segments="input").state_dict())


def test_a_source_scale_of_the_data_is_refused(build_bert):
    with pytest.raises(UsageError, match="source-scale auto compares .*; give a number"):
        build_bert("cape", position_source_scale="auto")


def test_all_choices_are_in_the_signature(build_bert):
    args = build_bert("rel_scalar", position_segments="per_head").args
    assert args.position_signature.startswith(
        "position:rel_scalar|sharing:none|max-distance:0|segments:per_head|version:"
    )
