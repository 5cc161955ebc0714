"""Text and search: tokenizer.json cuts as ours, generate finds what fairseq-generate finds."""

import random
from types import SimpleNamespace

import pytest
import sentencepiece
import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.data.segmentation import BytePairEncoder, Moses, tokenise_lines
from fairseq_posenc.data.subwords import MASK, SentencePiece, WordPiece, library
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert.vocabulary import learn_sentencepiece, learn_wordpiece
from fairseq_posenc.tools.convert.huggingface.export import to_huggingface
from fairseq_posenc.tools.convert.huggingface.tokenizers import (
    TokenizerPair,
    compare_tokenizers,
    read_tokenizer,
)
from fairseq_posenc.tools.convert.huggingface.verify import inputs, padded
from fairseq_posenc.tools.translation import bpe, pieces
from tests.tiny import dictionary_of
from tests.tools.convert.conftest import teach

LINES = 10_000
WORDS = "the small house of an old man isn't red but Größe naive café 1,500 co-operate".split()
ODD = [
    "  ", "\t", "\u3000", "\xa0", "½", "ﬁ", "e\u0301", "\u200b", "\u200d", "😀", "👩\u200d👧",
    "<unk>", "ß", "İ", "Å", "\u0301", "한", "중", "\u1112\u1161\u11ab", "中文", "…", "—", "\xad",
    "\ufeff", "Ⅷ", "①", "ｶﾞ", "a\u0300\u0301\u0302", "▁", "ـ", "क्षि", "\u2028", "\x07",
]  # fmt: skip


def odd_lines():
    """Lines of words with odd characters in odd places."""
    draw = random.Random(1)
    for _ in range(LINES):
        line = list(" ".join(draw.choices(WORDS, k=draw.randint(1, 6))))
        for _ in range(draw.randint(0, 4)):
            other = chr(draw.choice([draw.randrange(32, 0x3000), draw.randrange(0x1F000, 0x1FA00)]))
            line.insert(draw.randint(0, len(line)), draw.choice([*ODD, other]))
        yield "".join(line)


def learnt(kind, folder):
    """Learn subwords of a kind, and return their dictionary and what to cut."""
    text, lines = [" ".join(WORDS), *WORDS] * 4, list(odd_lines())
    if kind == "bpe":
        (folder / "text").write_text("\n".join(text) + "\n", encoding="utf-8")
        bpe.learn([str(folder / "text")], str(folder / "codes"), 40, 1)
        cut = BytePairEncoder(str(folder / "codes")).encode(" ".join(WORDS))
        return dictionary_of(cut.split()), tokenise_lines(lines, Moses("en"))
    if kind == "wordpiece":
        learn_wordpiece(lambda: iter(text), str(folder), 120)
        return WordPiece(str(folder / WordPiece.name)).dictionary(), lines
    if kind == "raw":  # which keeps every space
        (folder / "text").write_text("\n".join(text) + "\n", encoding="utf-8")
        pieces.learn([str(folder / "text")], str(folder), 60)
    else:
        learn_sentencepiece(lambda: iter(text), str(folder), 60, 1.0)
    return SentencePiece(str(folder / SentencePiece.name)).dictionary(), lines


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece", "raw", "bpe"])
def test_ids_of_the_tokenizer_are_ours_on_odd_lines(tmp_path, kind):
    dictionary, lines = learnt(kind, tmp_path)
    pair = read_tokenizer(dictionary, str(tmp_path))
    pair.tokenizer.add_special_tokens(["<unk>"])
    found = pair.tokenizer.encode_batch(lines, add_special_tokens=False)
    for line, encoding in zip(lines, found):
        # what is beyond the dictionary is replaced, as the model card says
        theirs = [n if n < len(dictionary) else dictionary.unk() for n in encoding.ids]
        assert theirs == [dictionary.index(piece) for piece in pair.encode(line)], ascii(line)


@pytest.mark.parametrize(
    "option, value",
    [
        ("model_type", "bpe"),
        ("model_type", "char"),
        ("byte_fallback", True),
        ("add_dummy_prefix", False),
        ("treat_whitespace_as_suffix", True),
        ("split_by_whitespace", False),
    ],
)
def test_sentencepieces_of_another_kind_are_refused_without_any_text(tmp_path, option, value):
    options = {"model_type": "unigram", option: value, "hard_vocab_limit": False}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS), *["an old man"] * 9]), minloglevel=2,
        vocab_size=300, model_prefix=str(tmp_path / "sentencepiece"), **options,
    )  # fmt: skip
    reason = "pieces with spaces" if option == "split_by_whitespace" else option
    with pytest.raises(UsageError, match=f"unigram model of the library tokenizers.*{reason}"):
        read_tokenizer(Dictionary(), str(tmp_path))


@pytest.mark.parametrize(
    "theirs, scores, ties",
    [
        ("9|99|4", {}, 0),
        ("99|9|4", {"99": -3.0}, 1),
        ("99|9|4", {"99": -3.0, "4": -1.0}, 1),
        ("99|9|4", {}, None),
        ("999|4", {"999": -5.1}, None),
        ("9|99|5", {"5": -2.0}, None),
    ],
)
def test_of_two_ways_to_cut_with_equal_scores_either_counts(theirs, scores, ties):
    ours, dictionary = ["9", "99", "4"], Dictionary()
    numbers = [dictionary.add_symbol(piece) for piece in ["9", "99", "4", "999", "5"]][:3]
    found = theirs.split("|")
    encoding = SimpleNamespace(ids=[dictionary.index(piece) for piece in found], tokens=found)
    tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens: encoding)
    scores = {"9": -2.0, "4": -2.0, **scores} if scores else {}
    pair = TokenizerPair(tokenizer, "plain text", lambda text: ours, "".join, scores)
    if ties is None:
        with pytest.raises(UsageError, match="cuts otherwise than .*: 9994"):
            compare_tokenizers(pair, dictionary, [numbers], "bin")
    else:
        assert compare_tokenizers(pair, dictionary, [numbers], "bin") == ties


def last_words_thrice(_):
    """Three words, and the last two of them three times."""
    source = torch.randint(4, 40, (64, 4))
    source[:, -1] = 2
    return source, torch.cat([source[:, 1:3].repeat(1, 3), source[:, -1:]], 1)


@pytest.mark.parametrize(
    "scale, norms_before, name",
    [(1, False, "fsmt"), (1, True, "m2m_100"), (1.3, True, "blenderbot")],
)
def test_a_trained_model_translates_as_in_fairseq(
    checkpoint, data, tmp_path, scale, norms_before, name
):
    transformers = pytest.importorskip("transformers")
    before = {f"{side}_normalize_before": norms_before for side in ("encoder", "decoder")}
    before["position_source_scale"] = scale
    path, model = checkpoint("cape", share_all_embeddings=True, **before)
    state = load_checkpoint(path)
    state["model"] = teach(model, last_words_thrice, 0.003)
    torch.save(state, path)
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf").eval()
    assert theirs.config.model_type == name
    draw = random.Random(5)
    lengths = [draw.randint(1, 9) for _ in range(50)]
    sentences = [[draw.randrange(4, 40) for _ in range(length)] + [2] for length in lengths]
    sources = padded(sentences, 48)
    dictionary = Dictionary.load(str(data / "dict.de.txt"))
    sample = {"src_tokens": sources, "src_lengths": sources.ne(1).sum(1)}
    for beam in (1, 5):
        for penalty in (0.6, 1.0, 1.4):
            ours = SequenceGenerator([model], dictionary, beam_size=beam, len_penalty=penalty)
            found = ours.generate([model], {"net_input": sample})
            best = [hypotheses[0]["tokens"].tolist() for hypotheses in found]
            generated = theirs.generate(
                **inputs(sources), num_beams=beam, length_penalty=penalty, early_stopping=beam > 1
            )
            rows = [[n for n in row[1:] if n != 1] for row in generated.tolist()]
            assert rows == best
    assert len({tuple(row) for row in best}) > 25


@pytest.mark.parametrize(
    "encoding, options",
    [
        ("sinusoidal", {"add_bos_token": True}),
        ("learned", {"share_decoder_input_output_embed": True}),
        ("rotary", {}),
        ("alibi", {"layernorm_embedding": True, "activation_fn": "gelu_accurate"}),
    ],
)
def test_a_language_model_goes_on_as_in_fairseq(lm_checkpoint, data, tmp_path, encoding, options):
    transformers = pytest.importorskip("transformers")
    path, model = lm_checkpoint(encoding, **options)
    begin = 0 if "add_bos_token" in options else 2
    to_huggingface(str(path), str(tmp_path / "hf"), str(data))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    dictionary = Dictionary.load(str(data / "dict.txt"))
    ours, draw = SequenceGenerator([model], dictionary, beam_size=1), random.Random(5)
    texts = [" ".join(f"w{draw.randrange(36)}" for _ in range(n)) for n in (7, 1, 12, 3, 3, 9)]
    batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left")
    batch.pop("token_type_ids", None)
    generated = theirs.generate(**batch, max_new_tokens=20).tolist()
    assert all(row[row.count(1)] == begin for row in batch["input_ids"].tolist())
    # theirs begin with padding and what is before a text
    found = [[n for n in row if n != 1][1:] for row in generated]
    for text, row in zip(texts, found):
        prefix = dictionary.encode_line(text, append_eos=False).long().unsqueeze(0)
        lengths = torch.tensor([prefix.size(1)])
        sample = {"net_input": {"src_tokens": prefix, "src_lengths": lengths}}
        [[best]] = ours.generate([model], sample, prefix_tokens=prefix, bos_token=begin)
        assert row == best["tokens"].tolist()[: prefix.size(1) + 20]
    assert len({tuple(row[-20:]) for row in found}) > 2


TEXTS = ["the<mask>house", "the <mask> house", "<mask>house", "<mask> house.", "<mask>",
         "我<mask>北京", "a <unk>house", "the<unk>", "  the  small"]  # fmt: skip


def test_no_word_begins_behind_a_mask_where_the_text_has_no_space(tmp_path):
    """Neither with us nor in the exported tokenizer; also behind ``<unk>``."""
    lines = [" ".join(WORDS), *WORDS, "我爱北京", "house"] * 4
    learn_sentencepiece(lambda: iter(lines), str(tmp_path), 80)
    model = SentencePiece(str(tmp_path / "sentencepiece.model"))
    dictionary = model.dictionary()
    tokenizer = read_tokenizer(dictionary, str(tmp_path)).tokenizer
    tokenizer.add_special_tokens(["<unk>", "<mask>"])
    for text in TEXTS:
        first, *others = text.split("<mask>")
        pieces = model.encode(first)
        for part in others:
            pieces += ["<mask>", *model.encode(part, after_special=True)]
        encoded = tokenizer.encode(text, add_special_tokens=False)
        assert pieces == [
            t if t in dictionary or t == "<mask>" else "<unk>" for t in encoded.tokens
        ]
    assert model.encode("北京") == ["▁", "北", "京"]
    assert model.encode("北京", after_special=True) == ["北", "京"]
    pieces, spans = model.encode_with_offsets("<unk>house")
    assert "▁" not in "".join(pieces) and spans[:2] == [(0, 5), (5, 5 + len(pieces[1]))]


def test_a_mask_in_the_dictionary_makes_no_bert_of_a_translation_model(checkpoint, tmp_path):
    """Whose sources do not begin with ``<s>``."""
    prepared = tmp_path / "masked"
    prepared.mkdir()
    for language in ("en", "de"):
        dictionary = dictionary_of(20)
        dictionary.add_symbol(MASK)
        dictionary.save(str(prepared / f"dict.{language}.txt"))
    path, _ = checkpoint("sinusoidal", prepared=prepared)
    to_huggingface(str(path), str(tmp_path / "hf"), str(prepared))
    tokenizer = library("tokenizers").Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    assert tokenizer.encode("w1 <mask>").tokens == ["w1", MASK, "</s>"]
    for name in ("dict.en.txt", "dict.de.txt"):
        assert (tmp_path / "hf" / name).read_bytes() == (prepared / name).read_bytes()
