"""What people do next with an exported folder: pairs of sentences, texts too long, CTranslate2."""

import json
import sys

import numpy
import pytest
import torch

from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from tests.tools.convert.conftest import PRE_NORM

transformers = pytest.importorskip("transformers")
SEGMENTS = {"position_segments": "input"}


@pytest.mark.parametrize(
    "encoding, options",
    [
        ("learned", {}),
        ("learned", SEGMENTS),
        ("rotary", {}),
        ("rotary", SEGMENTS),
        ("t5", {}),
    ],
)
def test_a_bert_takes_the_pairs_that_its_tokenizer_makes(
    bert_checkpoint, data, tmp_path, encoding, options
):
    path, bert = bert_checkpoint(encoding, **options)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "hf")
    # as our tasks have a pair: <s> first </s> second </s>
    tokens = torch.tensor([[0, 5, 6, 7, 2, 8, 9, 2]])
    segments = torch.tensor([[0] * 5 + [1] * 3]) if options else None
    batch = tokenizer("w1 w2 w3", "w4 w5", return_tensors="pt")
    assert batch["input_ids"].tolist() == tokens.tolist()
    ours = bert(tokens, segments=segments)[0]
    scale = float(ours.abs().max())
    for types in ({}, {"return_token_type_ids": True}):
        if encoding == "t5" and types:
            continue  # MPNet has none
        batch = tokenizer("w1 w2 w3", "w4 w5", return_tensors="pt", **types)
        assert torch.allclose(model(**batch).logits, ours, atol=1e-5 * scale)


@pytest.mark.parametrize(
    "kind, encoding, options, is_cut",
    [
        ("checkpoint", "learned", {}, True),
        ("checkpoint", "cape", {"position_source_scale": 1.3}, True),
        ("checkpoint", "learned", PRE_NORM, True),
        ("checkpoint", "learned", {**PRE_NORM, "layernorm_embedding": True}, True),
        ("checkpoint", "sinusoidal", PRE_NORM, False),
        ("bert_checkpoint", "learned", {}, True),
        ("bert_checkpoint", "rotary", {}, True),
        ("bert_checkpoint", "t5", {}, True),
    ],
)
def test_the_card_cuts_texts_where_positions_end(
    request, data, tmp_path, monkeypatch, kind, encoding, options, is_cut
):
    path, _ = request.getfixturevalue(kind)(encoding, **options)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    [code] = card.split("```python\n")[1:]
    code = code.split("```")[0].replace("A text of your own.", "w1 " * 60)
    code = code.replace("A text <mask> your own.", "w1 " * 60)
    names = {}
    monkeypatch.chdir(tmp_path / "hf")
    exec(code, names)
    rows = names["batch"]["input_ids"].size(1)
    limit = names["tokenizer"].model_max_length
    assert rows == limit if is_cut else rows > 60
    if encoding == "cape":  # FSMT's table is still the one of the folder
        table = names["model"].model.encoder.embed_positions.weight
        assert len(table) == limit + 2


def test_the_card_asks_for_the_version_that_reads_the_folder(
    lm_checkpoint, data, tmp_path, monkeypatch
):
    """Older ones give GPT-NeoX a random output layer, and say nothing."""
    path, _ = lm_checkpoint("rotary")
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    code = card.split("```python\n")[1].split("```")[0]
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "4.57.6")
    with pytest.raises(SystemExit, match="needs transformers 5.23 or later"):
        exec(code, {})


def converted(folder, output):
    ctranslate2 = pytest.importorskip("ctranslate2")
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(output))
    return ctranslate2


def test_an_mbart_goes_on_to_ctranslate2(checkpoint, data, sources, translate, tmp_path):
    path, model = checkpoint("learned", layernorm_embedding=True, **PRE_NORM)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["model_type"] == "mbart"
    ctranslate2 = converted(tmp_path / "hf", tmp_path / "ct2")
    translator = ctranslate2.Translator(str(tmp_path / "ct2"))
    text = [[f"w{n - 4}" for n in source] + ["</s>"] for source in sources]
    found = translator.translate_batch(
        text, beam_size=1, max_decoding_length=8, min_decoding_length=0, return_scores=True
    )
    expected = translate(model, sources, beam=1, longest=8)
    for result, [(tokens, score)] in zip(found, expected):
        assert result.hypotheses[0] == [f"w{n - 4}" for n in tokens if n != 2]
        # the mean of the tokens' log-probabilities; at the limit fairseq adds an end
        assert result.scores[0] == pytest.approx(score, abs=1e-4) or len(tokens) == 9


def test_a_roberta_goes_on_to_ctranslate2(bert_checkpoint, data, tmp_path):
    path, bert = bert_checkpoint("learned")
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    ctranslate2 = converted(tmp_path / "hf", tmp_path / "ct2")
    encoder = ctranslate2.Encoder(str(tmp_path / "ct2"))
    tokens = torch.tensor([[0, 5, 6, 7, 2]])
    states = encoder.forward_batch(tokens.tolist()).last_hidden_state
    found = torch.tensor(numpy.array(states))
    assert torch.allclose(found, bert(tokens, features_only=True)[0], atol=1e-4)
