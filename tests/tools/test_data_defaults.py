"""What depends on the data is taken from them, never from an option's default, by every command."""

import ast
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses import swap
from fairseq_posenc.tools.bert import squad
from fairseq_posenc.tools.scores import perplexity
from fairseq_posenc.tools.scores.data_folder import subwords_of_symbols
from fairseq_posenc.tools.scores.score import evaluate
from tests.tiny import binarise, dictionary_of

ROOT = Path(__file__).parents[2]
# how subwords are marked, where words end, which language
OPTIONS = {"--remove-bpe", "--language", "--source-language", "--length-unit", "--source-lang",
           "--target-lang", "--languages"}  # fmt: skip
# text in each kind of subwords, and the number of its words
KINDS = {
    "@@ ": ("das H@@ aus ist alt .", 5),
    "sentencepiece": ("\u2581das \u2581H aus \u2581ist \u2581alt .", 4),
    "wordpiece of BERT": ("das H ##aus ist alt .", 5),
    "plain words": ("das Haus ist alt .", 5),
}


def options(file):
    """Yield the names and keywords of the options that a file declares."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            names = {word.value for word in node.args if isinstance(word, ast.Constant)} & OPTIONS
            if names and all(isinstance(word, ast.Constant) for word in node.args):
                yield names.pop(), {word.arg: word.value for word in node.keywords}


@pytest.mark.parametrize("folder", ["fairseq_posenc/tools", "recipes"])
def test_no_such_option_has_a_default(folder):
    declared = set()
    for file in (ROOT / folder).rglob("*.py"):
        for name, keywords in options(file):
            declared.add(name)
            assert "default" not in keywords, f"{file}: {name}"
    assert "--language" in declared


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_language_models_are_those_of_their_data(tmp_path, kind):
    text, words = KINDS[kind]
    dictionary = dictionary_of(text.split())
    binarise(tmp_path / "test", [dictionary.encode_line(text, add_if_not_exist=False)])
    # the end of the line counts
    assert perplexity.read_text(str(tmp_path), "test", dictionary).words == words + 1


@pytest.mark.parametrize("kind", KINDS)
def test_swapped_sentences_are_compared_as_text(kind):
    text = KINDS[kind][0]
    dictionary = dictionary_of(text.split())
    symbol = subwords_of_symbols(dictionary.symbols)
    tokens = dictionary.encode_line(text, append_eos=False, add_if_not_exist=False).tolist()
    assert swap._texts([tokens], dictionary, symbol, "de") == ["das Haus ist alt."]


@pytest.mark.parametrize("joins", ["fairseq", "nobody"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_output_is_scored_by_the_dictionary_of_its_data(write, tmp_path, kind, joins):
    """Of a folder without a model of ours, as fairseq-preprocess makes one."""
    text = KINDS[kind][0]
    for side in "en", "de":
        write(f"bin/dict.{side}.txt", [f"{symbol} 1" for symbol in sorted({*text.split()})])
        binarise(tmp_path / "bin" / f"test.en-de.{side}", [[4, 2]])
    if joins == "fairseq":
        symbol = "sentencepiece" if kind == "sentencepiece" else "@@ "
        dictionary = dictionary_of(text.split())
        numbers = dictionary.encode_line(text, append_eos=False, add_if_not_exist=False)
        text = dictionary.string(numbers, symbol)
    lines = [f"{mark}-0\t{text}" for mark in "ST"] + [f"{mark}-0\t-1\t{text}" for mark in "HD"]
    output = write("out", lines)
    reference = write("raw", ["das Haus ist alt."])
    result = evaluate(generated=output, data=str(tmp_path / "bin"), reference=reference)
    assert result.all.metrics["sacrebleu"] == pytest.approx(100)


def test_mlqa_has_no_language_of_its_own(tmp_path):
    with pytest.raises(UsageError, match="mlqa has rules by language: give the --language"):
        squad.prepare("x.json", "valid", str(tmp_path), str(tmp_path / "bin"), metric="mlqa")
