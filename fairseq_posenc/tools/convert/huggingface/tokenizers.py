"""How text becomes the numbers of a model's types, as a file of the library ``tokenizers``.

A dictionary may lack what the subword model can make, and our models then read ``<unk>``. In
``tokenizer.json`` such pieces have numbers beyond the dictionary's, which must be replaced: the
model card says so where there are any.
"""

import json
import math
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from fairseq.data import Dictionary

from fairseq_posenc.checkpoints.folders import save_json
from fairseq_posenc.data.segmentation import CODES, SEPARATOR, BytePairEncoder
from fairseq_posenc.data.subwords import MASK, UNKNOWN, SentencePiece, WordPiece, library
from fairseq_posenc.data.wordpiece_file import read_wordpiece
from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.convert.checkpoint import LANGUAGE_MODEL, ExportSource

_END = "</w>"  # what BPE puts behind the last piece of a word, as subword-nmt does
_CONTINUES = "@@"
# SentencePiece deletes it, and no character is in one grapheme with it
_BREAK = "\x01"


# how the unigram model of the library tokenizers cuts: what SentencePiece's model is learnt by, and
# how it normalises
_UNIGRAM: Tuple[Dict[str, Any], ...] = (
    {"model_type": 1, "byte_fallback": False, "treat_whitespace_as_suffix": False},
    {"add_dummy_prefix": True, "escape_whitespaces": True},
)


class TokenizerPair(NamedTuple):
    """A tokenizer of the library, what it takes, and ours: it encodes such a text, and decodes.

    ``scores`` are those of the pieces, if text is cut into those of the largest sum.
    """

    tokenizer: Any
    takes: str
    encode: Any
    decode: Any
    scores: Mapping[str, float] = {}


def write_tokenizers(
    source: ExportSource,
    dictionaries: Mapping[str, Dictionary],
    sentences: Mapping[str, List[List[int]]],
    data: str,
    folder: str,
) -> List[str]:
    """Write the files of a tokenizer, and in ``target`` those of the target if it is another.

    Args:
        sentences: of the data by its stacks, as ``read_sentences`` returns them.
    """
    first, *further = dictionaries
    folders = {first: folder}
    for stack in further:
        if dictionaries[stack].symbols != dictionaries[first].symbols:
            folders[stack] = os.path.join(folder, "target")
            os.makedirs(folders[stack])
    notes = {
        stack: _write(source, dictionaries[stack], sentences[stack], data, own_folder)
        for stack, own_folder in folders.items()
    }
    if len(folders) > 1:
        notes[first].append("translations are decoded with the tokenizer in the folder target")
    return notes[first]


def _write(
    source: ExportSource,
    dictionary: Dictionary,
    sentences: List[List[int]],
    data: str,
    folder: str,
) -> List[str]:
    """Write the tokenizer of one dictionary, and return what to know of it."""
    pair, is_bert = read_tokenizer(dictionary, data), source.model_name == "posenc_bert"
    ties = compare_tokenizers(pair, dictionary, sentences, data)
    tokenizer, notes = pair.tokenizer, [f"tokenizer.json takes {pair.takes}"]
    if ties:
        notes.append(f"{ties} of {len(sentences)} sentences are cut otherwise, with equal scores")
    if not sentences:
        notes.append("0 sentences compared with it: there is no binarised test, valid or train")
    bos, eos = "<s> " if is_bert or source.source_bos else "", " </s>"
    if source.model_name == LANGUAGE_MODEL:
        bos, eos = f"{dictionary[source.first_token]} ", ""  # the text goes on
    second = int(source.has_segments)  # a model without segments has no vector for a second one
    tokenizer.post_processor = library("tokenizers").processors.TemplateProcessing(
        single=f"{bos}$A{eos}",
        pair=f"{bos}$A </s> $B:{second} </s>:{second}",
        special_tokens=[("<s>", dictionary.bos()), ("</s>", dictionary.eos())],
    )
    tokenizer.add_special_tokens([UNKNOWN, MASK] if is_bert else [UNKNOWN])
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": source.max_positions,
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        "model_input_names": names if second else names[:2],
        "bos_token": bos.strip() or "<s>",
        "eos_token": "</s>",
        "unk_token": UNKNOWN,
        "pad_token": "<pad>",
        **({"mask_token": MASK, "cls_token": "<s>", "sep_token": "</s>"} if is_bert else {}),
    }
    save_json(config, folder, "tokenizer_config.json")
    beyond = tokenizer.get_vocab_size() - len(dictionary)
    if beyond:
        notes.append(
            f"{beyond} of its pieces are not in the dictionary: replace numbers from "
            f"{len(dictionary)} on by {dictionary.unk()} (<unk>)"
        )
    return notes


def read_tokenizer(dictionary: Dictionary, data: str) -> TokenizerPair:
    """Return a tokenizer that does what cut the training's text."""
    path = {name: os.path.join(data, name) for name in (WordPiece.name, SentencePiece.name, CODES)}
    if os.path.isfile(path[WordPiece.name]):
        words = WordPiece(path[WordPiece.name])
        return TokenizerPair(
            _wordpiece(words, dictionary), "plain text", words.encode, words.decode
        )
    if os.path.isfile(path[SentencePiece.name]):
        model = SentencePiece(path[SentencePiece.name])
        tokenizer = _sentencepiece(model, dictionary)
        return TokenizerPair(tokenizer, "plain text", model.encode, model.decode, model.scores())
    if os.path.isfile(path[CODES]):
        bpe = BytePairEncoder(path[CODES])
        return TokenizerPair(
            _bpe(path[CODES], dictionary),
            "text that is tokenised as by posenc prepare tokenise",
            lambda text: bpe.encode(text).split(),
            lambda subwords: (" ".join(subwords) + " ").replace(f"{_CONTINUES} ", "").rstrip(),
        )
    return TokenizerPair(_words(dictionary), "types separated by spaces", str.split, " ".join)


def _numbered(dictionary: Dictionary, subwords: Sequence[str]) -> Dict[str, int]:
    """Return the number of each of the dictionary's types, and further ones for other pieces."""
    numbers = {symbol: number for number, symbol in enumerate(dictionary.symbols)}
    for piece in subwords:
        numbers.setdefault(piece, len(numbers))
    return numbers


def _words(dictionary: Dictionary) -> Any:
    tokenizers = library("tokenizers")
    model = tokenizers.models.WordLevel(_numbered(dictionary, []), unk_token=UNKNOWN)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return tokenizer


def _wordpiece(model: WordPiece, dictionary: Dictionary) -> Any:
    tokenizers = library("tokenizers")
    content = json.loads(read_wordpiece(model.file))
    # added tokens get their numbers anew, from the dictionary's
    content.update(added_tokens=[])
    content["model"]["vocab"] = _numbered(dictionary, model.vocabulary())
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def _bpe(codes: str, dictionary: Dictionary) -> Any:
    """Return byte pair encoding; ``ab@@`` is written ``ab`` there, and ``ab`` is ``ab</w>``."""
    tokenizers = library("tokenizers")
    first, *lines = read_lines(codes)
    if first.strip() != "#version: 0.2":
        raise UsageError(f"{codes} is of an old version of subword-nmt, which transformers lacks")
    merges = [tuple(line.strip("\r\n ").split(" ")) for line in lines]
    vocabulary: Dict[str, int] = {}
    for number, symbol in enumerate(dictionary.symbols):
        if number >= dictionary.nspecial and symbol != SEPARATOR:
            goes_on = symbol.endswith(_CONTINUES)
            symbol = symbol[: -len(_CONTINUES)] if goes_on else symbol + _END
        vocabulary[symbol] = number
    for left, right in merges:
        for piece in (left, right, left + right):
            vocabulary.setdefault(piece, len(vocabulary))
    model = tokenizers.models.BPE(
        vocabulary, merges, unk_token=UNKNOWN, end_of_word_suffix=_END, fuse_unk=False
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = tokenizers.decoders.BPEDecoder(suffix=_END)
    if SEPARATOR in dictionary:  # which is never cut
        tokenizer.add_tokens([tokenizers.AddedToken(SEPARATOR, normalized=False)])
    return tokenizer


def _sentencepiece(model: SentencePiece, dictionary: Dictionary) -> Any:
    """Return a SentencePiece model, if it is of the kind unigram.

    The library's ``Precompiled`` looks at whole graphemes, where SentencePiece looks for the
    longest sequence that it knows. So, for the library's own rules, letters and marks are composed
    first (NFC), and those that are left are parted, so that each grapheme is one character.
    """
    settings = model.settings()
    differing = [
        name
        for part, usual in zip(settings, _UNIGRAM)
        for name, value in usual.items()
        if getattr(part, name) != value
    ]
    # the library tokenizers parts text at spaces before it cuts
    if differing or any("▁" in piece[1:] for piece in model.vocabulary()):
        raise UsageError(
            f"{model.file} does not cut as the unigram model of the library tokenizers does "
            f"({differing[0] if differing else 'it has pieces with spaces'}); export to "
            "ctranslate2 or safetensors"
        )
    tokenizers, scores = library("tokenizers"), model.scores()
    numbers = _numbered(dictionary, list(scores))
    vocabulary = [(piece, scores.get(piece, 0.0)) for piece in numbers]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(vocabulary, unk_id=dictionary.unk()))
    normalizers, regex, rules = tokenizers.normalizers, tokenizers.Regex, settings[1]
    parted = regex(r"(?=[\p{M}\u200c\u200d\uff9e\uff9f\u1100-\u11ff])")
    steps = []
    if "nfkc" in rules.name:
        steps += [normalizers.NFC(), normalizers.Replace(parted, _BREAK)]
    if rules.precompiled_charsmap:
        steps.append(normalizers.Precompiled(rules.precompiled_charsmap))
    if rules.remove_extra_whitespaces:
        steps += [normalizers.Replace(regex(" {2,}"), " "), normalizers.Strip(left=False)]
    else:  # where Metaspace would put none before a space
        steps.append(normalizers.Replace(regex(r"\A "), "  "))
    tokenizer.normalizer = normalizers.Sequence(steps)
    # not behind a special token, where a word may go on
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace("▁", "first")
    tokenizer.decoder = tokenizers.decoders.Metaspace("▁", "always")
    return tokenizer


def compare_tokenizers(
    pair: TokenizerPair, dictionary: Dictionary, sentences: List[List[int]], data: str
) -> int:
    """Cut sentences of the data both ways, and return how many differ by equal scores alone.

    Which of several ways to cut counts, if the sums of their scores are equal (``99|9`` and
    ``9|99``), is left to rounding.
    """
    ties = 0
    for sentence in sentences:
        text = pair.decode([dictionary[n] for n in sentence if n >= dictionary.nspecial])
        subwords = pair.encode(text)
        encoding = pair.tokenizer.encode(text, add_special_tokens=False)
        hf_ids = [n if n < len(dictionary) else dictionary.unk() for n in encoding.ids]
        if [dictionary.index(piece) for piece in subwords] == hf_ids:
            continue
        sums = [
            sum(pair.scores.get(piece, 0.0) for piece in segmentation)
            for segmentation in (subwords, encoding.tokens)
        ]
        if (
            "".join(subwords) != "".join(encoding.tokens)
            or not pair.scores
            or not math.isclose(*sums, rel_tol=1e-6)
        ):
            raise UsageError(
                f"the library tokenizers cuts otherwise than the subwords in {data}: {text:.100}"
            )
        ties += 1
    return ties
