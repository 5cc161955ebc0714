"""NLLB-200, M2M-100 and mBART-50 of transformers compute the same here, and go out again."""

import json
import random
import re
import shutil
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import get_lang_tok

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tools.analyses.models import load_models
from fairseq_posenc.tools.analyses.tokens import score_references
from fairseq_posenc.tools.convert.checkpoint import read_checkpoint
from fairseq_posenc.tools.convert.ctranslate2.model import to_ctranslate2
from fairseq_posenc.tools.convert.huggingface import language_codes
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.load import import_model

transformers = pytest.importorskip("transformers")
sentencepiece = pytest.importorskip("sentencepiece")

SIZES = dict(
    d_model=32, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=48, decoder_ffn_dim=64,
    encoder_attention_heads=4, decoder_attention_heads=2, max_position_embeddings=64,
    decoder_start_token_id=2,
)  # fmt: skip
# the classes of configuration, model and tokenizer, the kind of subwords, languages and their codes
KINDS = {
    "nllb": ("M2M100", "Nllb", "bpe", ("eng_Latn", "deu_Latn"), language_codes.NLLB),
    "m2m": ("M2M100", "M2M100", "bpe", ("en", "de"), language_codes.M2M100),
    "mbart": ("MBart", "MBart50", "unigram", ("en_XX", "de_DE"), language_codes.MBART50),
}


@pytest.fixture(scope="module")
def text():
    """Sentences of 80 words."""
    draw = random.Random(3)
    letters = "abcdefghiklmnoprstu"
    words = ["".join(draw.choices(letters, k=draw.randint(1, 6))) for _ in range(80)]
    return [" ".join(draw.choices(words, k=draw.randint(3, 12))) for _ in range(600)]


def teach(model, cuts, text, languages):
    """Train a model for seconds, so that its translations differ, and end."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and "embed_positions" not in name:
            torch.nn.init.xavier_uniform_(parameter)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    cuts.src_lang, cuts.tgt_lang = languages
    for step in range(150):
        lines = [line[:12] for line in text[step * 16 % 480 :][:16]]
        batch = cuts(lines, text_target=lines, return_tensors="pt", padding=True)
        labels = batch["labels"].masked_fill(batch["labels"].eq(1), -100)
        optimizer.zero_grad()
        model(**{**batch, "labels": labels}).loss.backward()
        optimizer.step()
    model.eval()


@pytest.fixture(scope="module", params=list(KINDS))
def public(request, text, tmp_path_factory):
    """A random model of each kind in a folder, as its class and its tokenizer save it."""
    model, tokenizer, subwords, languages, codes = KINDS[request.param]
    place = tmp_path_factory.mktemp(request.param)
    pieces = place / "theirs" / "sentencepiece.bpe.model"
    pieces.parent.mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=str(place / "spm"), vocab_size=90,
        model_type=subwords, minloglevel=2,
    )  # fmt: skip
    pieces.write_bytes((place / "spm.model").read_bytes())
    types = 90 + 1 + len(codes) + 1  # with padding, languages and the mask
    if request.param == "m2m":
        cut = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
        symbols = [cut.id_to_piece(n) for n in range(3, 90)]
        random.Random(4).shuffle(symbols)  # its order is its own
        numbers = {s: n for n, s in enumerate(["<s>", "<pad>", "</s>", "<unk>", *symbols])}
        (place / "theirs" / "vocab.json").write_text(json.dumps(numbers))
    more = {"extra_special_tokens": codes} if request.param == "nllb" else {}
    cuts = getattr(transformers, f"{tokenizer}Tokenizer").from_pretrained(pieces.parent, **more)
    cuts.save_pretrained(pieces.parent)
    torch.manual_seed(2)
    config = getattr(transformers, f"{model}Config")(vocab_size=types + 2, **SIZES)
    theirs = getattr(transformers, f"{model}ForConditionalGeneration")(config)
    teach(theirs, cuts, text, languages)
    theirs.save_pretrained(pieces.parent)
    notes = import_model(str(pieces.parent), str(place / "ours" / "model.pt"))
    return SimpleNamespace(
        place=place, theirs=theirs, cuts=cuts, languages=languages, notes=notes, unseen=codes[-1],
        sentences=[line[:20].strip() for line in text[:20]],
    )  # fmt: skip


def numbers(public, language, sentences):
    """Sentences as the tokenizer of transformers cuts them, of one language."""
    public.cuts.src_lang = language
    return public.cuts(sentences, return_tensors="pt", padding=True)


def test_the_scores_are_those_of_transformers(public):
    source, target = public.languages
    batch = numbers(public, source, public.sentences)
    begun = numbers(public, target, public.sentences[::-1])["input_ids"].roll(1, 1)
    begun[:, 0] = 2
    ours = read_checkpoint(str(public.place / "ours" / "model.pt")).model
    with torch.no_grad():
        found = ours(batch["input_ids"], None, begun)[0]
        expected = public.theirs(**batch, decoder_input_ids=begun, use_cache=False).logits
    real = begun.ne(1)
    assert torch.allclose(found[real], expected[real], atol=1e-5)


def test_check_compares_them(public, text):
    (public.place / "lines").write_text("\n".join(text[:60]) + "\n")
    again = str(public.place / "checked" / "model.pt")
    notes = import_model(str(public.place / "theirs"), again, text=str(public.place / "lines"))
    assert notes[-2] == "50 of 50 sentences are cut as by transformers"
    assert re.match(r"largest difference of scores \d\.\de-\d+ on 50 sentences", notes[-1])


@pytest.mark.parametrize("target", ["trained", "never seen"])
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("lenpen", [0, 1])
def test_translations_are_those_of_generate(public, beam, lenpen, target):
    """Also where the language, which is forced, is one that the model would hardly write."""
    source, trained = public.languages
    target = trained if target == "trained" else public.unseen
    folder = str(public.place / "ours")
    hub = PosencTransformerModel.from_pretrained(
        folder, data_name_or_path=folder, source_lang=source, target_lang=target
    )
    texts = [hub.encode(sentence) for sentence in public.sentences]
    found = hub.generate(texts, beam=beam, lenpen=lenpen, max_len_b=60)
    made = public.theirs.generate(
        **numbers(public, source, public.sentences), num_beams=beam, do_sample=False,
        length_penalty=float(lenpen), max_new_tokens=60, early_stopping=True,
        suppress_tokens=[1], forced_bos_token_id=hub.task.target_token,
    )  # fmt: skip
    ours = [best["tokens"].tolist() for best, *_ in found]
    assert ours == [tokens[1:][tokens[1:].ne(1)].tolist() for tokens in made]
    assert max(map(len, ours)) < 60
    # of a language that it never saw, a model may write one word whatever the source
    assert target != trained or len(set(map(tuple, ours))) > 2
    # without the language
    assert hub.decode(torch.tensor(ours[0])) == hub.decode(torch.tensor(ours[0][1:]))


def test_it_goes_back_as_it_came(public):
    """With its own tokenizer, which is copied; and the checkpoint again, bit for bit."""
    path, folder = public.place / "ours" / "model.pt", public.place / "back"
    agreement, *_ = to_huggingface(str(path), str(folder), str(path.parent), force=True, check=True)
    assert re.search(r"of scores \d\.\de-\d+ on 50 sentences of random tokens, ", agreement)
    model = type(public.theirs).from_pretrained(folder).eval()
    cuts = type(public.cuts).from_pretrained(folder, src_lang=public.languages[0])
    batch = numbers(public, public.languages[0], public.sentences)
    assert cuts(public.sentences, padding=True)["input_ids"] == batch["input_ids"].tolist()
    with torch.no_grad():
        found = model(**batch, decoder_input_ids=batch["input_ids"]).logits
        expected = public.theirs(**batch, decoder_input_ids=batch["input_ids"]).logits
    assert torch.allclose(found, expected, atol=1e-5)
    import_model(str(folder), str(public.place / "again" / "model.pt"), force=True)
    before, after = (
        load_checkpoint(str(public.place / name / "model.pt")) for name in ("ours", "again")
    )
    assert set(before["model"]) == set(after["model"])
    assert all(torch.equal(w, after["model"][name]) for name, w in before["model"].items())


def test_languages_may_be_told_by_the_pairs_of_training_alone(public):
    """As fairseq's own task leaves them, with --lang-dict."""
    folder, place = public.place / "ours", public.place / "by pairs.pt"
    state = torch.load(folder / "model.pt", weights_only=False)
    state["cfg"]["task"].update(langs=None, lang_pairs=["-".join(public.languages)])
    torch.save(state, place)
    to_huggingface(str(place), str(public.place / "paired"), str(folder))
    card = (public.place / "paired" / "README.md").read_text()
    assert f'tokenizer.src_lang = "{min(public.languages)}"' in card


def test_languages_and_tags_that_were_added(public, tmp_path):
    """Added codes are languages; the user is told of other tokens, which no text becomes."""
    codes = {"Nllb": "tyv_Cyrl", "MBart50": "qu_PE"}
    code = codes.get(type(public.cuts).__name__.removesuffix("Tokenizer"))
    if code is None:
        pytest.skip("M2M-100's tokenizer takes no further languages")
    cuts = type(public.cuts).from_pretrained(public.place / "theirs")
    assert cuts.add_tokens([code, "<formal>"], special_tokens=True) == 2
    model = type(public.theirs).from_pretrained(public.place / "theirs")
    model.resize_token_embeddings(len(cuts))
    for one in (cuts, model):
        one.save_pretrained(tmp_path / "hf")
    notes = import_model(str(tmp_path / "hf"), str(tmp_path / "ours" / "model.pt"))
    assert any("adds <formal>, which" in note for note in notes)
    languages = (tmp_path / "ours" / language_codes.LANGUAGES).read_text().split()
    assert languages[-1] == code
    symbol = get_lang_tok(code, "mbart" if "_P" in code else "multilingual")
    assert cuts.convert_tokens_to_ids(code) == _number(tmp_path / "ours" / "dict.txt", symbol)


def test_added_tokens_that_have_the_numbers_of_languages_are_named(public, tmp_path):
    """Transformers gives them to M2M-100's; so such a language is none any longer."""
    if type(public.cuts).__name__ != "M2M100Tokenizer":
        pytest.skip("other tokenizers count their languages")
    cuts = type(public.cuts).from_pretrained(public.place / "theirs")
    cuts.add_tokens(["<formal>", "<law>"], special_tokens=True)
    for saved in (cuts, public.theirs):
        saved.save_pretrained(tmp_path / "hf")
    notes = import_model(str(tmp_path / "hf"), str(tmp_path / "ours" / "model.pt"))
    places = "<formal> (in the place of __af__) <law> (in the place of __am__)"
    assert any(f"adds {places}, which" in note for note in notes)
    languages = (tmp_path / "ours" / language_codes.LANGUAGES).read_text().split()
    assert languages[0] == "ar" and len(languages) == len(public.cuts.lang_code_to_id) - 2


def _number(path, symbol):
    return Dictionary.load(str(path)).index(symbol)


def test_ctranslate2_translates_the_same(public):
    ctranslate2 = pytest.importorskip("ctranslate2")
    source, target = public.languages
    ours, folder = public.place / "ours", public.place / "ct2"
    to_ctranslate2(str(ours / "model.pt"), str(folder), str(ours), force=True)
    hub = PosencTransformerModel.from_pretrained(
        str(ours), data_name_or_path=str(ours), source_lang=source, target_lang=target
    )
    tags = [get_lang_tok(code, hub.task.args.lang_tok_style) for code in public.languages]
    made = ctranslate2.Translator(str(folder), device="cpu").translate_batch(
        [[tags[0], *hub.apply_bpe(line).split()] for line in public.sentences],
        target_prefix=[[tags[1]]] * len(public.sentences),
        beam_size=1,
        max_decoding_length=60,
    )
    assert all(result.hypotheses[0][0] == tags[1] for result in made)
    found = [" ".join(t for t in result.hypotheses[0] if t != tags[1]) for result in made]
    assert [hub.remove_bpe(line) for line in found] == hub.translate(public.sentences, beam=1)


def test_text_is_prepared_by_the_dictionary_of_all_languages_and_scored(public, run, text):
    """Of the references no language is scored, also where the task is fairseq's own."""
    source, target = public.languages
    for language in public.languages:
        (public.place / f"lines.{language}").write_text("\n".join(text[:20]) + "\n")
    ours, bin_ = public.place / "ours", public.place / "bin"
    run("posenc", "prepare", "translation", "--source-lang", source, "--target-lang", target,
        "--test", public.place / "lines", "--subwords", ours, "--output", bin_)  # fmt: skip
    for language in public.languages:
        assert (bin_ / f"dict.{language}.txt").read_text() == (ours / "dict.txt").read_text()
    state = load_checkpoint(str(ours / "model.pt"))
    for name in ("posenc_multilingual", "translation_multi_simple_epoch"):
        # a training of fairseq's task keeps its pairs
        state["cfg"]["task"].update(_name=name, task=name, lang_pairs=f"{source}-{target}")
        torch.save(state, public.place / "scored.pt")
        [loaded] = load_models([f"a={public.place / 'scored.pt'}"], str(bin_), cpu=True)
        scored = score_references(loaded, "test", max_tokens=1000)
        assert loaded.task.target_token not in scored.tokens
        assert (scored.tokens[scored.positions == 1] >= 4).all()
        assert (scored.positions == 1).sum() == (scored.tokens == 2).sum() == 20


def test_languages_that_nobody_names_are_asked_for_in_one_line(public, fails):
    words = "--task posenc_multilingual --user-dir fairseq_posenc --optimizer adam".split()
    arch = ["--arch", "posenc_transformer_tiny", "--max-tokens", "100"]
    printed = fails("fairseq-train", public.place, *words, *arch)
    assert "name the languages with --lang-pairs" in printed


@pytest.mark.slow
@pytest.mark.parametrize("public", ["mbart"], indirect=True)
def test_the_recipe_of_longer_inputs_goes_on_from_a_folder(public, run, text):
    """Its rows begin with the encoding that the model has; tags are not counted as tokens."""
    given = ["--from", public.place / "theirs", "--run-dir", public.place / "run", "--seeds", "1"]
    given += ["--stage", "2"]  # with programs of this environment
    for name, lines in (("train", text), ("valid", text[:60]), ("test", text[60:200])):
        for language in public.languages:
            (public.place / f"{name}.{language}").write_text("\n".join(lines) + "\n")
        given += [f"--{name}", public.place / name]
    sizes = "--updates 5 --pairs 10 --edges 20,60 --neighbours 2 --device cpu".split()
    pair = ["--source-lang", public.languages[0], "--target-lang", public.languages[1]]
    printed = run("bash", "recipes/longer_inputs.sh", *given, *pair, *sizes)
    assert "is not there for CTranslate2" not in printed, printed[-4000:]
    rows = "before", "learned", "rotary"
    for row in rows:
        folder = public.place / "run" / row
        score = json.loads((folder / "seed1" / "score.json").read_text())
        bits = json.loads((folder / "seed1" / "bits.json").read_text())["sentences"]["all"]
        # with the end of each sentence
        assert [n for _, n in bits] == [n + 1 for n in score["sentences"]["length"]]
    assert "| rotary" in (public.place / "run" / "bits_tuned.md").read_text()
    # once more: a model that is there is not written again
    exported = [public.place / "run" / row / "ctranslate2" / "model.bin" for row in rows]
    times = [path.stat().st_mtime_ns for path in exported]
    shutil.rmtree(exported[0].parent)
    given[given.index("--stage") + 1] = "10"
    run("bash", "recipes/longer_inputs.sh", *given, *pair, *sizes)
    written = [path.stat().st_mtime_ns != time for path, time in zip(exported, times)]
    assert written == [True, False, False]
