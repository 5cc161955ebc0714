"""Export to Hugging Face and back: transformers computes what ours does, or it is refused."""

import json

import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.load import import_model
from fairseq_posenc.tools.convert.huggingface.verify import inputs
from tests.tools.convert.conftest import NORMS_BEFORE, PRE_NORM

transformers = pytest.importorskip("transformers")
PAD, EOS = 1, 2
INPUT_SEGMENTS = {"position_segments": "input"}
TRANSLATION = [
    ("sinusoidal", {}, "FSMT"),
    ("sinusoidal", {"share_all_embeddings": True}, "FSMT"),
    ("cape", {"position_source_scale": 1.3, "prepend_source_bos": True}, "FSMT"),
    ("shape", {"position_eval_shift": 7, "no_scale_embedding": True}, "FSMT"),
    ("learned", {"encoder_layers": 3, "activation_fn": "gelu"}, "FSMT"),
    ("none", {"share_decoder_input_output_embed": True}, "FSMT"),
    ("sinusoidal", PRE_NORM, "M2M100"),
    ("cape", PRE_NORM, "M2M100"),
    ("shape", {**PRE_NORM, "position_eval_shift": 7}, "Blenderbot"),
    ("cape", {**PRE_NORM, "position_source_scale": 1.3}, "Blenderbot"),
    ("learned", PRE_NORM, "Blenderbot"),
    ("learned", {**PRE_NORM, "layernorm_embedding": True}, "MBart"),
    ("shape", {**PRE_NORM, "layernorm_embedding": True}, "MBart"),
]
BERT = [
    ("learned", INPUT_SEGMENTS, "Roberta"),
    ("sinusoidal", {}, "Roberta"),
    ("cape", {}, "Roberta"),
    ("none", INPUT_SEGMENTS, "Roberta"),
    ("rotary", INPUT_SEGMENTS, "RoFormer"),
    ("rotary", {}, "RoFormer"),
    ("t5", {}, "MPNet"),
    ("randomized", {"position_inner": "t5"}, "MPNet"),
    ("unifpe", {}, "Roberta"),
]
TIED = {"share_decoder_input_output_embed": True}
BLOOM = {"layernorm_embedding": True, "activation_fn": "gelu_accurate"}
ADAPTIVE = {"adaptive_input": True, "adaptive_input_cutoff": "10,20"}
NARROW = {**BLOOM, "decoder_ffn_embed_dim": 64}
LANGUAGE_MODELS = [
    ("sinusoidal", {}, "XGLM"),
    ("cape", {**TIED, "no_scale_embedding": True, "add_bos_token": True}, "XGLM"),
    ("shape", {}, "XGLM"),
    ("learned", TIED, "OPT"),
    ("shape", {**TIED, "position_eval_shift": 7, "no_scale_embedding": True}, "OPT"),
    ("none", {"activation_fn": "gelu"}, "OPT"),
    ("rotary", {}, "GPTNeoX"),
    ("rotary", {**TIED, "position_base": 500.0, "position_scale": 2.0}, "GPTNeoX"),
    ("rotary", {"position_scale": 2.0, "position_scale_method": "ntk"}, "GPTNeoX"),
    ("randomized", {"position_inner": "rotary"}, "GPTNeoX"),
    ("alibi", {**BLOOM, **TIED}, "Bloom"),
    ("alibi", {**BLOOM, "no_scale_embedding": True, "decoder_attention_heads": 4}, "Bloom"),
]


def sentences(types, count=5, longest=20, seed=1):
    """Random tokens ``(count, longest)``, padded on the right, with EOS."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, types, (count, longest), generator=generator)
    for row, length in enumerate(torch.linspace(longest, 2, count).int()):
        tokens[row, length - 1] = EOS
        tokens[row, length:] = PAD
    return tokens


@torch.no_grad()
def difference(model, hf_model, segments=None):
    """The largest difference of the scores of real tokens between our model and transformers'."""
    model, hf_model = model.eval(), hf_model.eval()
    if not hasattr(model, "encoder"):
        tokens = sentences(model.decoder.embed_tokens.num_embeddings).roll(1, 1)
        tokens[:, 0] = EOS
        expected, scores = model(tokens)[0], hf_model(**inputs(tokens)).logits
    elif hasattr(model, "decoder"):
        sources = sentences(model.encoder.embed_tokens.num_embeddings)
        tokens = sentences(model.decoder.embed_tokens.num_embeddings, seed=2).roll(1, 1)
        tokens[:, 0] = EOS
        expected = model(sources, None, tokens)[0]
        scores = hf_model(**inputs(sources), decoder_input_ids=tokens).logits
    else:
        tokens = sentences(model.encoder.sentence_encoder.embed_tokens.num_embeddings)
        types = (torch.arange(20) > 9).expand(5, -1) * 1
        expected = model(tokens, **({"segments": types} if segments else {}))[0]
        hf_types = {"token_type_ids": types} if segments else {}
        scores = hf_model(**inputs(tokens), **hf_types).logits
    real = tokens.ne(PAD)
    scale = expected[real].abs().max().clamp(min=1)
    return float((expected[real] - scores[real]).abs().max() / scale)


def train(model, all_of_it=False):
    """Three steps of AdamW on random text, without tables that ours has no place for."""
    frozen = {
        "mpnet": "mpnet.embeddings.position_embeddings",
        "roformer": "roformer.encoder.embed_positions",  # trained from transformers 5.24 on
    }.get(model.config.model_type)
    if frozen and not all_of_it:
        model.get_submodule(frozen).requires_grad_(False)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    vocabulary = getattr(model.config, "tgt_vocab_size", model.config.vocab_size)
    source = getattr(model.config, "src_vocab_size", vocabulary)
    for seed in (1, 2, 3):
        sources, labels = sentences(source, seed=seed), sentences(vocabulary, seed=seed)
        more = {}
        if model.config.is_encoder_decoder:  # FSMT would take the source's
            more["decoder_input_ids"] = labels.roll(1, 1)
        loss = model(sources, attention_mask=sources.ne(1), labels=labels, **more).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    moved = [n for n, w in model.named_parameters() if not torch.equal(w, before[n])]
    assert len(moved) > len(before) // 2
    return model.eval()


@pytest.mark.parametrize(
    "kind, encoding, options, name",
    [("checkpoint", *row) for row in TRANSLATION]
    + [("bert_checkpoint", *row) for row in BERT]
    + [("lm_checkpoint", *row) for row in LANGUAGE_MODELS],
)
def test_every_row_of_the_table_computes_the_same_saved_again_and_back_after_training(
    request, data, tmp_path, kind, encoding, options, name
):
    path, model = request.getfixturevalue(kind)(encoding, **options)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    segments = options.get("position_segments")
    [class_name] = json.loads((tmp_path / "hf" / "config.json").read_text())["architectures"]
    assert class_name.startswith(f"{name}For")
    hf_class = getattr(transformers, class_name)
    loaded, report = hf_class.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert difference(model, loaded, segments) < 1e-5
    loaded.save_pretrained(tmp_path / "saved")
    again = hf_class.from_pretrained(tmp_path / "saved")
    assert difference(model, again, segments) < 1e-5
    train(again).save_pretrained(tmp_path / "trained")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    tokenizer.save_pretrained(tmp_path / "trained")
    import_model(str(tmp_path / "trained"), str(tmp_path / "back" / "model.pt"))
    back = read_checkpoint(str(tmp_path / "back" / "model.pt"), ALL)
    assert difference(back.model, again, segments) < 1e-5


def test_angles_that_transformers_has_trained_are_refused(bert_checkpoint, data, tmp_path):
    """As 5.24 does: RoFormer's table of sines and cosines gets gradients there."""
    path, _ = bert_checkpoint("rotary")
    notes = to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    assert any("model.roformer.encoder.embed_positions.requires_grad_(False)" in n for n in notes)
    model = transformers.RoFormerForMaskedLM.from_pretrained(tmp_path / "hf")
    for dtype, moved, fits in (
        (torch.float32, 0, True),
        (torch.bfloat16, 0, True),
        (torch.float32, 1e-5, False),
    ):
        model.to(dtype).roformer.encoder.embed_positions.weight.data += moved
        model.save_pretrained(tmp_path / "trained")
        back = str(tmp_path / f"back{dtype}{moved}" / "model.pt")
        if fits:
            import_model(str(tmp_path / "trained"), back)
            model = transformers.RoFormerForMaskedLM.from_pretrained(tmp_path / "hf")
        else:
            with pytest.raises(UsageError, match="embed_positions was trained, and our encoding"):
                import_model(str(tmp_path / "trained"), back)


def test_users_of_bloom_are_told_to_keep_float32(lm_checkpoint, data, tmp_path):
    """In half precision transformers rounds slope times position, not slope times distance."""
    path, _ = lm_checkpoint("alibi", **BLOOM)
    notes = to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    assert any(note.startswith("keep it in float32") for note in notes)
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert "- keep it in float32" in card
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["dtype"] == "float32"


def test_what_cannot_come_back_after_training_is_refused(bert_checkpoint, data, tmp_path):
    path, _ = bert_checkpoint("t5")
    notes = to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    assert any("position_embeddings.requires_grad_(False)" in note for note in notes)
    model = transformers.MPNetForMaskedLM.from_pretrained(tmp_path / "hf")
    train(model, all_of_it=True).save_pretrained(tmp_path / "trained")
    back = str(tmp_path / "back" / "model.pt")
    with pytest.raises(UsageError, match="position_embeddings was trained, and our encoding has"):
        import_model(str(tmp_path / "trained"), back)
    file = tmp_path / "trained" / "config.json"
    model.mpnet.embeddings.position_embeddings.weight.data.zero_()
    model.config.layer_norm_eps = 0.1
    model.save_pretrained(tmp_path / "trained")
    with pytest.raises(UsageError, match="layer_norm_eps is 0.1, and was 1e-05 in the exported"):
        import_model(str(tmp_path / "trained"), back)
    file.write_text(file.read_text().replace('"posenc_bert"', '"posenc_transformer"'))
    with pytest.raises(UsageError, match="trained"):
        import_model(str(tmp_path / "trained"), back)


@pytest.mark.parametrize(
    "kind, encoding, options, words",
    [
        ("checkpoint", "shaw", {}, "no class for .*shaw.*--to ctranslate2"),
        ("checkpoint", "rotary", {}, "no class for .*rotary.*--to ctranslate2"),
        ("bert_checkpoint", "rel_scalar", {}, "no class for .*rel_scalar"),
        ("bert_checkpoint", "learned", {"activation_fn": "relu"}, "needs --activation-fn gelu"),
        ("bert_checkpoint", "t5", {"activation_fn": "gelu_fast"}, "needs --activation-fn gelu"),
        ("checkpoint", "sinusoidal", {"encoder_normalize_before": True}, "one side alone, which"),
        ("checkpoint", "none", {"layernorm_embedding": True}, "no place for .*layernorm_embedding"),
        ("checkpoint", "learned", NORMS_BEFORE, "has one set of embeddings, as after --share-all"),
        ("lm_checkpoint", "shaw", {}, "class for .*shaw and LayerNorm before .*-layer; --to safe"),
        ("lm_checkpoint", "alibi", {}, "Bloom.* with --layernorm-embedding, --activation-fn gelu"),
        ("lm_checkpoint", "alibi", {"activation_fn": "gelu_fast"}, "with --layernorm-embedding$"),
        ("lm_checkpoint", "alibi", NARROW, "with --decoder-ffn-embed-dim 128$"),
        ("lm_checkpoint", "learned", {"layernorm_embedding": True}, "no place for .*layernorm_emb"),
        ("lm_checkpoint", "none", ADAPTIVE, "has adaptive or character embeddings"),
        ("lm_checkpoint", "none", {"scale_fc": True}, "no place for .*ffn_layernorm"),
        ("lm_checkpoint", "none", {"no_decoder_final_norm": True}, "needs a last LayerNorm"),
    ],
)
def test_what_does_not_fit_is_refused(request, data, tmp_path, kind, encoding, options, words):
    path, _ = request.getfixturevalue(kind)(encoding, **options)
    with pytest.raises(UsageError, match=words):
        to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    assert not (tmp_path / "hf").exists()


def test_a_tokenizer_that_was_compared_with_nothing_says_so(checkpoint, data, tmp_path):
    path, _ = checkpoint("sinusoidal")
    notes = to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    assert any(note.startswith("0 sentences compared") for note in notes)
