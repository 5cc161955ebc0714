"""Models without fairseq: what posenc export wrote computes the same in plain PyTorch."""

import json

import pytest
import torch

from fairseq_posenc import nn
from fairseq_posenc.attention.admin import unit_profile
from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface, to_safetensors
from tests.programs import python
from tests.tools.convert.conftest import NORMS_BEFORE

pytest.importorskip("safetensors")
PAD, EOS = 1, 2
LAYERNORMED = {"layernorm_embedding": True, "activation_fn": "gelu", "no_scale_embedding": True}


def padded(types, lengths, seed):
    tokens = torch.randint(4, types, (len(lengths), max(lengths)), generator=_generator(seed))
    return tokens.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD)


def _generator(seed):
    return torch.Generator().manual_seed(seed)


SOURCES, TARGETS = padded(36, (9, 4, 17), seed=1), padded(36, (6, 13, 5), seed=2)
SEGMENTS = (torch.arange(17) > 5).long().expand(3, -1)


@torch.no_grad()
def both(ours, loaded, segmented=False):
    """States and scores of real tokens, of the fairseq model and of the loaded one."""
    if not hasattr(ours, "decoder"):
        segments = {"segments": SEGMENTS} if segmented else {}
        outputs = [ours(SOURCES, features_only=True, **segments)[0], ours(SOURCES, **segments)[0]]
        found = [loaded.encoder(SOURCES, **segments).states, loaded(SOURCES, **segments)]
        real = SOURCES.ne(PAD)
    elif not hasattr(ours, "encoder"):
        outputs = [ours(TARGETS, features_only=True)[0], ours(TARGETS)[0]]
        found = [loaded.decoder(TARGETS).states, loaded(TARGETS)]
        real = TARGETS.ne(PAD)
    else:
        outputs = [ours(SOURCES, None, TARGETS)[0]]
        found, real = [loaded(SOURCES, TARGETS)], TARGETS.ne(PAD)
        states = ours.encoder(SOURCES)["encoder_out"][0].transpose(0, 1)[SOURCES.ne(PAD)]
        outputs.append(states)
        found.append(loaded.encoder(SOURCES).states[SOURCES.ne(PAD)])
    shape = real.shape
    return [[y[real] if y.shape[:2] == shape else y for y in ys] for ys in (outputs, found)]


def assert_agreement(ours, loaded, segmented=False):
    for wanted, found in zip(*both(ours, loaded, segmented)):
        assert (wanted - found).abs().max() < 1e-5 * wanted.abs().max().clamp(min=1)


@pytest.mark.parametrize("encoding", names())
@pytest.mark.parametrize("kind", ["checkpoint", "bert_checkpoint", "lm_checkpoint"])
def test_every_encoding_computes_what_it_does_in_fairseq(request, data, tmp_path, kind, encoding):
    path, model = request.getfixturevalue(kind)(encoding)
    to_safetensors(str(path), str(tmp_path / "plain"), str(data))
    assert_agreement(model, nn.load(str(tmp_path / "plain")))


@pytest.mark.parametrize(
    "kind, write, encoding, options",
    [
        ("checkpoint", to_safetensors, "shaw", {**NORMS_BEFORE, "decoder_layers": 3}),
        ("checkpoint", to_safetensors, "cape", {"position_source_scale": 1.3, **LAYERNORMED}),
        ("checkpoint", to_safetensors, "tupe", {"decoder_embed_dim": 32}),
        ("checkpoint", to_safetensors, "t5", {"admin_profile": "unit"}),
        ("checkpoint", to_safetensors, "alibi", {**NORMS_BEFORE, "no_decoder_final_norm": True}),
        ("checkpoint", to_huggingface, "learned", {"share_all_embeddings": True}),
        ("bert_checkpoint", to_safetensors, "rel_scalar", {"position_segments": "per_head"}),
        ("bert_checkpoint", to_huggingface, "rotary", {"position_segments": "input"}),
        ("bert_checkpoint", to_safetensors, "conditional", {"layer_norm_eps": 0.1}),
        ("lm_checkpoint", to_huggingface, "rotary", {"share_decoder_input_output_embed": True}),
        ("lm_checkpoint", to_safetensors, "alibi", LAYERNORMED),
    ],
)
def test_every_option_is_kept(request, data, tmp_path, kind, write, encoding, options):
    if "admin_profile" in options:
        sizes = dict(encoder_layers=2, decoder_layers=2, encoder_embed_dim=64, decoder_embed_dim=64)
        options = {"admin_profile": unit_profile(type("Args", (), sizes)), **sizes}
    path, model = request.getfixturevalue(kind)(encoding, **options)
    write(str(path), str(tmp_path / "out"), str(data))
    assert_agreement(model, nn.load(str(tmp_path / "out")), "position_segments" in options)


PROGRAM = """
import sys
sys.modules["fairseq"] = sys.modules["omegaconf"] = None
import torch
from fairseq_posenc.nn import load
torch.manual_seed(1)
for folder in sys.argv[1:]:
    model = load(folder)
    print(model(*[torch.arange(4, 12).view(1, 8)] * (2 if model.encoder else 1)).double().sum())
"""


def test_models_are_loaded_where_fairseq_is_missing(checkpoint, lm_checkpoint, data, tmp_path):
    made = {"translation": checkpoint("cape"), "lm": lm_checkpoint("shaw")}
    for name, (path, _) in made.items():
        to_safetensors(str(path), str(tmp_path / name), str(data))
    lines = python(PROGRAM, *(str(tmp_path / name) for name in made)).splitlines()
    tokens = torch.arange(4, 12).view(1, 8)
    wanted = [made["translation"][1](tokens, None, tokens)[0], made["lm"][1](tokens)[0]]
    found = [float(line.split("(")[1].split(",")[0]) for line in lines]
    assert found == pytest.approx([float(x.detach().double().sum()) for x in wanted], rel=1e-3)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"encoder_attention_heads": 0}, "its encoder has no heads"),
        ({"encoder_attention_heads": -2}, "its encoder has no heads"),
        ({"encoder_attention_heads": 7}, "7 heads do not divide"),
        ({"activation_fn": "swish"}, "--activation-fn swish"),
        ({"cross_self_attention": True}, "--cross-self-attention"),
        ({"no_source_eos": True}, "--no-source-eos"),
        ({"position_encoding": "shaw"}, "Missing key"),
        ({"position_encoding": "sinusoid"}, "unknown position encoding"),
        ({"max_source_positions": 7}, "size mismatch"),
        ({"dropout": None, "activation_fn": None}, "--activation-fn None"),
    ],
)
def test_what_cannot_be_made_is_told_in_one_line(checkpoint, data, tmp_path, changed, words):
    path, _ = checkpoint("learned")
    to_safetensors(str(path), str(tmp_path / "plain"), str(data))
    file = tmp_path / "plain" / "posenc.json"
    description = json.loads(file.read_text(encoding="utf-8"))
    description["model"].update(changed)
    file.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        nn.load(str(tmp_path / "plain"))
