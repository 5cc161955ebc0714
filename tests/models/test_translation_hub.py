"""Trained translation models in Python: raw text becomes what the recipe made of it."""

import logging
import sys
from argparse import Namespace

import pytest
import torch

from fairseq_posenc.data.segmentation import (
    BytePairEncoder,
    Moses,
    SentencePieces,
    detokenise_lines,
    tokenise_lines,
)
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer import PosencTransformerModel
from fairseq_posenc.tasks.translation import PosencTranslationConfig, PosencTranslationTask
from fairseq_posenc.tools.translation import bpe, pieces
from fairseq_posenc.tools.translation.corpora import CORPORA
from fairseq_posenc.tools.translation.segmentation import keep, moses
from tests.tiny import checkpoint_of, dictionary_of

RAW = ["A man – “asleep” – isn’t well-known.", "Rock & roll, 5,300 <b>!", "", "Dr. No\nsleeps."]
CHOICES = "aggressive", "plain_quotes", "lowercase"
# a corpus for each way of tokenising
BY_WAY = {tuple(getattr(one, each) for each in CHOICES): name for name, one in CORPORA.items()}
TEXT = "the man is asleep . a dog isn 't well @-@ known & &apos;t , \" rock roll".split()


@pytest.fixture
def folders(tmp_path):
    """Folders of a model, and of data with codes; the dictionary knows all single letters."""
    model, data = tmp_path / "model", tmp_path / "bin"
    for folder in (model, data):
        folder.mkdir()
    (tmp_path / "text").write_text("".join(" ".join(TEXT) + "\n" for _ in range(3)))
    bpe.learn([str(tmp_path / "text")], str(tmp_path / "codes"), 30)
    bpe.apply(str(tmp_path / "codes"), str(tmp_path / "text"), str(tmp_path / "cut"))
    dictionary = dictionary_of(sorted({*(tmp_path / "cut").read_text().split()}))
    for language in ("en", "de"):
        dictionary.save(str(data / f"dict.{language}.txt"))
    keep(str(tmp_path / "codes"), str(data))
    return model, data


@pytest.fixture
def save(folders):
    """A function that writes a checkpoint of a new model, with further options."""
    model_folder, data = folders
    cfg = PosencTranslationConfig(data=str(data), source_lang="en", target_lang="de")
    cfg.left_pad_source, cfg.left_pad_target = True, False
    task = PosencTranslationTask.setup_task(cfg)

    def save(**options):
        args = Namespace(arch="posenc_transformer_tiny", encoder_layers=1, decoder_layers=1)
        args.position_encoding, args.share_all_embeddings = "shaw", True
        args.task, args.source_lang, args.target_lang = "posenc_translation", "en", "de"
        torch.manual_seed(1)
        model = task.build_model(args)
        vars(args).update(options)
        # as of old, when options were not in groups
        state = checkpoint_of(None, model.state_dict(), args=args)
        torch.save(state, str(model_folder / "model.pt"))

    save()
    return save


@pytest.fixture
def load(folders, save):
    """A function that loads the model with further options."""
    return lambda **options: PosencTransformerModel.from_pretrained(
        str(folders[0]), data_name_or_path=str(folders[1]), **options
    )


def recipes_tokens(folder, raw, how):
    """What tokeniser and BPE of a recipe make of sentences."""
    (folder / "tok").write_text("".join(f"{line}\n" for line in tokenise_lines(raw, how)))
    bpe.apply(str(folder / "codes"), str(folder / "tok"), str(folder / "bpe"))
    return (folder / "bpe").read_text().split("\n")[:-1]


@pytest.mark.parametrize("corpus", [None, *BY_WAY.values()])
def test_text_is_cut_as_the_recipes_cut_it(load, folders, corpus):
    data = folders[1]
    keep(str(data / "codes"), str(data), corpus and CORPORA[corpus])
    how = moses("en")
    if corpus:
        choices = {name: getattr(CORPORA[corpus], name) for name in CHOICES}
        how = how._replace(normalise=False, escape=True, **choices)
    hub = load()
    expected = recipes_tokens(data, [line.replace("\n", " ") for line in RAW], how)
    assert [hub.apply_bpe(hub.tokenize(line)) for line in RAW] == expected
    for line, tokens in zip(RAW, expected):
        assert hub.encode(line).tolist() == hub.binarize(tokens).tolist()
    tokens = hub.binarize(hub.apply_bpe("isn &apos;t well @-@ known"))
    assert hub.decode(tokens) == "isn 't well-known"  # as Moses detokenises German
    assert isinstance(hub.translate(RAW[0], beam=2, max_len_b=5), str)
    assert len(hub.translate(RAW, beam=2, max_len_b=5)) == len(RAW)


def test_sentences_that_a_separator_joins_are_tokenised_each(load):
    hub, sentences = load(), ["The man isn't asleep.", "A dog."]
    joined = " <sep> ".join(sentences)
    assert "<sep>" not in hub.tokenize(joined).split()
    hub.task.source_dictionary.add_symbol("<sep>")
    assert hub.tokenize(joined) == " <sep> ".join(map(hub.tokenize, sentences))
    assert "<sep>" in hub.apply_bpe(hub.tokenize(joined)).split()


def test_a_sentencepiece_model_beside_the_data_is_used(load, folders, caplog):
    (folders[1] / "codes").unlink()
    (folders[1] / "tokeniser.json").unlink()
    path, text = folders[1] / "text", "a  man\xa0is…  “asleep”."
    path.write_text("\n".join([" ".join(TEXT), text] * 9), encoding="utf-8")
    pieces.learn([str(path)], str(folders[1]))
    model = SentencePieces(str(folders[1] / "sentencepiece.model"))
    hub, cut = load(), model.encode(text)
    assert "of the dictionary's types are no pieces of" in caplog.text  # it is of BPE
    assert not model.remarks(cut.split()) and model.remarks(["isn@@", *cut.split()[:8]])
    assert hub.apply_bpe(hub.tokenize(text)) == cut
    assert hub.remove_bpe(cut) == text
    (folders[1] / "sentencepiece.model").write_bytes(b"none")
    with pytest.raises(UsageError, match="sentencepiece.model is not a SentencePiece model"):
        load()


def test_a_text_may_be_longer_than_the_batches_of_the_training(load, save):
    save(max_tokens=20, prepend_source_bos=True)
    text = "man " * 25
    assert len(load().translate(["man", text], beam=1, max_len_b=2)) == 2
    assert load().translate([], beam=1) == []
    with pytest.raises(UsageError, match="has 1028 tokens, more than .*max_source_positions="):
        load().translate([text, "man " * 1026], beam=1, max_len_b=2)
    longer = load(max_source_positions=2000)
    assert len(longer.translate([text, "man " * 1026], beam=1, max_len_b=2)) == 2


def test_codes_that_are_none_are_reported_in_one_line(load, folders):
    (folders[1] / "codes").write_text("no BPE at all\n")
    with pytest.raises(UsageError, match=f"{folders[1]}/codes, line 1: no BPE operation"):
        load()


def test_what_lies_beside_the_model_comes_before_the_data_folder(load, folders):
    (folders[0] / "code").write_text("#version: 0.2\nz z\n")
    assert load().apply_bpe("man") == "m@@ a@@ n"


def test_the_callers_codes_come_first(load, folders, tmp_path):
    (folders[0] / "code").write_text("#version: 0.2\nz z\n")
    (tmp_path / "mine").write_text("#version: 0.2\nm a\n")
    assert load(bpe_codes=str(tmp_path / "mine")).apply_bpe("man") == "ma@@ n"
    chosen = load(bpe="subword_nmt", bpe_codes=str(tmp_path / "mine"), tokenizer="moses")
    assert chosen.apply_bpe(chosen.tokenize("man-made")).startswith("ma@@ n @@@ -@@ @ ")


def test_subwords_without_codes_are_refused_unless_text_is_cut_already(load, folders):
    (folders[1] / "codes").unlink()
    with pytest.raises(UsageError) as caught:
        load()
    assert "bpe=None" in str(caught.value) and str(folders[1]) in str(caught.value)
    with pytest.raises(UsageError, match="no codes in"):
        load(bpe="subword_nmt")
    for present in (False, True):
        if present:
            (folders[1] / "codes").write_text("#version: 0.2\nm a\n")
        hub = load(bpe=None)
        assert hub.bpe is None and hub.tokenizer is None
        assert hub.tokenize(hub.apply_bpe("m@@ an isn &apos;t")) == "m@@ an isn &apos;t"


def test_whole_words_need_no_codes(load, save, folders):
    for name in ("codes", "tokeniser.json"):
        (folders[1] / name).unlink()
    for language in ("en", "de"):
        path = folders[1] / f"dict.{language}.txt"
        path.write_text(path.read_text().replace("@@ ", "## "))
    save(dictionary_hash=None)  # as older versions did
    hub = load()
    assert hub.bpe is None and hub.tokenizer is None


def test_without_a_description_text_is_taken_as_tokenised_with_a_warning(load, folders, caplog):
    (folders[1] / "tokeniser.json").unlink()
    with caplog.at_level(logging.WARNING):
        hub = load()
    assert "sentences are taken as tokenised" in caplog.text
    assert hub.tokenizer is None and hub.apply_bpe("man") == "man"
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert load(tokenizer="moses").tokenize("Rock&roll.") == "Rock &amp; roll ."
    assert "taken as" not in caplog.text


def test_files_that_a_checkpoint_names_are_not_read(load, save, folders, tmp_path):
    (tmp_path / "theirs").write_text("not BPE\n")
    save(
        bpe="subword_nmt",
        bpe_codes=str(tmp_path / "theirs"),
        tokenizer="nltk",
        replace_unk=str(tmp_path / "theirs"),
    )
    hub = load()
    assert hub.apply_bpe("man") == "man" and not hub.align_dict
    (folders[1] / "codes").unlink()
    with pytest.raises(UsageError, match="there are no codes"):
        load()


@pytest.mark.parametrize(
    "model, options, told",
    [
        ("none", {}, "there is no folder none"),
        (".", {"checkpoint_file": "none.pt"}, "there is no checkpoint"),
        (".", {"checkpoint_file": "README.md", "data_name_or_path": "none"}, "no folder none with"),
        ("runs/last.pt", {}, r"from_pretrained\('runs', 'last.pt', …\)"),
    ],
)
def test_what_is_missing_is_reported_in_one_line(monkeypatch, tmp_path, model, options, told):
    (tmp_path / "runs").mkdir()
    for name in "runs/last.pt", "README.md":
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told):
        PosencTransformerModel.from_pretrained(model, **options)


def test_an_option_that_no_search_reads_is_refused(load):
    hub = load(bpe=None)
    hub.translate("m m", beam=1, lenpen=2, skip_invalid_size_inputs=True)
    with pytest.raises(UsageError, match="length_penalty= is no option of the search"):
        hub.translate("m m", length_penalty=2)
    with pytest.raises(UsageError, match=r"beam= belongs to translate\(\)"):
        load(bpe=None, beam=2)


def test_long_translations_are_whole_and_a_limit_that_cuts_is_told(load, caplog):
    """fairseq's limit is 200 tokens, whatever the source."""
    hub = load(bpe=None)
    source = " ".join(["m"] * 300)
    with torch.no_grad():  # it never ends by itself
        hub.models[0].decoder.embed_tokens.weight[hub.tgt_dict.eos()] = 0
        hub.models[0].decoder.embed_tokens.weight[4] = 50 * torch.ones(1)
    tokens = [hub.encode(source), hub.encode("m m")]
    for options, lengths in ({}, [461, 461]), ({"max_len_b": 30}, [30, 30]):
        caplog.clear()
        found = hub.generate(tokens, beam=1, **options)
        assert [len(beam[0]["tokens"]) - 1 for beam in found] == lengths
        assert "2 of 2 translations end at the limit" in caplog.text


@pytest.mark.parametrize(
    "library, call",
    [
        ("sacremoses", lambda: tokenise_lines(["a"], Moses("ga"))),
        ("sacremoses", lambda: tokenise_lines(["a"], Moses("ga", normalise=False))),
        ("sacremoses", lambda: detokenise_lines(["a"], "ga")),
        ("subword_nmt.apply_bpe", lambda: BytePairEncoder("codes")),
    ],
)
def test_a_library_of_text_that_is_missing_is_named_in_one_line(monkeypatch, library, call):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=f"needs the library .*pip install {library[:10]}"):
        call()
