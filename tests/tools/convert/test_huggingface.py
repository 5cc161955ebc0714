"""Export to Hugging Face and back: transformers computes what ours does, or it is refused."""

import json

import pytest
import torch

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.load import import_model

transformers = pytest.importorskip("transformers")
PAD, EOS = 1, 2
PRE_NORM = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "share_all_embeddings": True,
}
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


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Nothing is fetched."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def sentences(types, count=5, longest=20, seed=1):
    """Random tokens ``(count, longest)``, padded on the right, with EOS."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, types, (count, longest), generator=generator)
    for row, length in enumerate(torch.linspace(longest, 2, count).int()):
        tokens[row, length - 1] = EOS
        tokens[row, length:] = PAD
    return tokens


@torch.no_grad()
def difference(ours, theirs, segments=None):
    """The largest difference of the scores of real tokens between our model and transformers'."""
    model, loaded = ours.eval(), theirs.eval()
    if not hasattr(model, "encoder"):
        tokens = sentences(model.decoder.embed_tokens.num_embeddings).roll(1, 1)
        tokens[:, 0] = EOS
        real = tokens.ne(PAD)
        expected, found = model(tokens)[0], loaded(tokens, attention_mask=real).logits
    elif hasattr(model, "decoder"):
        sources = sentences(model.encoder.embed_tokens.num_embeddings)
        targets = sentences(model.decoder.embed_tokens.num_embeddings, seed=2).roll(1, 1)
        targets[:, 0] = EOS
        real = targets.ne(PAD)
        expected = model(sources, None, targets)[0]
        found = loaded(
            input_ids=sources, attention_mask=sources.ne(PAD), decoder_input_ids=targets,
            use_cache=False,
        ).logits  # fmt: skip
    else:
        sources = sentences(model.encoder.sentence_encoder.embed_tokens.num_embeddings)
        numbers = {} if segments is None else {"segments": (torch.arange(20) > 9).expand(5, -1) * 1}
        real = sources.ne(PAD)
        expected = model(sources, **numbers)[0]
        types = {"token_type_ids": numbers["segments"]} if numbers else {}
        found = loaded(input_ids=sources, attention_mask=real, **types).logits
    scale = expected[real].abs().max().clamp(min=1)
    return float((expected[real] - found[real]).abs().max() / scale)


@pytest.mark.parametrize(
    "kind, encoding, options, name",
    [("checkpoint", *row) for row in TRANSLATION]
    + [("bert_checkpoint", *row) for row in BERT]
    + [("lm_checkpoint", *row) for row in LANGUAGE_MODELS],
)
def test_every_row_of_the_table_computes_the_same_before_and_after_saving(
    request, data, tmp_path, kind, encoding, options, name
):
    path, model = request.getfixturevalue(kind)(encoding, **options)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    wanted, segments = name, options.get("position_segments")
    name = json.loads((tmp_path / "hf" / "config.json").read_text())["architectures"][0]
    assert name.startswith(f"{wanted}For")
    loaded, report = getattr(transformers, name).from_pretrained(
        tmp_path / "hf", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert difference(model, loaded, segments) < 1e-5
    loaded.save_pretrained(tmp_path / "saved")
    again = getattr(transformers, name).from_pretrained(tmp_path / "saved")
    assert difference(model, again, segments) < 1e-5


def train(model, all_of_it=False):
    """Three steps of AdamW on random text; our t5 has no place for MPNet's table."""
    if model.config.model_type == "mpnet" and not all_of_it:
        model.mpnet.embeddings.position_embeddings.requires_grad_(False)
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
    "kind, encoding, options",
    [("checkpoint", *row[:2]) for row in TRANSLATION]
    + [("bert_checkpoint", *row[:2]) for row in BERT]
    + [("lm_checkpoint", *row[:2]) for row in LANGUAGE_MODELS],
)
def test_every_exported_class_comes_back_after_training(
    request, data, tmp_path, kind, encoding, options
):
    path, _ = request.getfixturevalue(kind)(encoding, **options)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    name = json.loads((tmp_path / "hf" / "config.json").read_text())["architectures"][0]
    model = train(getattr(transformers, name).from_pretrained(tmp_path / "hf"))
    model.save_pretrained(tmp_path / "trained")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    tokenizer.save_pretrained(tmp_path / "trained")
    import_model(str(tmp_path / "trained"), str(tmp_path / "back" / "model.pt"))
    back = read_checkpoint(str(tmp_path / "back" / "model.pt"), ALL)
    assert difference(back.model, model, options.get("position_segments")) < 1e-5


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
        ("checkpoint", "sinusoidal", {"encoder_normalize_before": True}, "no class for"),
        ("checkpoint", "none", {"layernorm_embedding": True}, "no place for .*layernorm_embedding"),
        ("lm_checkpoint", "shaw", {}, "no class for .*shaw and LayerNorm before"),
        (
            "lm_checkpoint",
            "alibi",
            {},
            "Bloom.* with --layernorm-embedding, --activation-fn gelu_a",
        ),
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
