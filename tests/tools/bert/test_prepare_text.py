"""From raw documents to a text folder, with the options of posenc prepare text."""

import collections
import os
import random
import threading
import time

import pytest
from fairseq.data import data_utils

from fairseq_posenc.data import subwords
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import vocabulary
from fairseq_posenc.tools.bert.preparation import Options, prepare
from fairseq_posenc.tools.locks import locked

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

SYLLABLES = {"english": "the cat do gs hou se ing ed ly un".split()}
SYLLABLES["german"] = "die kat ze hau ßü ung en ge schl äft".split()


def text(language, pairs, seed):
    dice, lines = random.Random(f"{language} {seed}"), []
    for number in range(pairs):
        lines += [""] if number % 4 == 0 else []
        words = ("".join(dice.choices(SYLLABLES[language], k=dice.randint(1, 3)))
                 for _ in range(dice.randint(4, 12)))  # fmt: skip
        lines.append(" ".join(words).capitalize() + " , " + next(words, "so") + ".")
    return "\n".join(lines) + "\n"


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "en").write_text(text("english", 96, 1), encoding="utf-8")
    (tmp_path / "de").write_text(text("german", 32, 2), encoding="utf-8")
    (tmp_path / "valid").write_text(text("english", 16, 3), encoding="utf-8")
    return tmp_path


def options(raw, **changed):
    defaults = {"train": [str(raw / "en")], "valid": [str(raw / "valid")], "vocabulary_size": 150}
    return Options(**{"output": str(raw / "out"), **defaults, **changed})


def contents(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def sentences(folder, split):
    """What the binary data say, as text; documents are lists of sentences."""
    model, dictionary = subwords.load(folder), subwords.load_dictionary(folder)
    found = [[]]
    for item in data_utils.load_indexed_dataset(str(folder / split), dictionary):
        pieces = [dictionary[int(index)] for index in item[:-1]]
        if pieces:
            found[-1].append(model.decode(pieces))
        else:
            found.append([])
    assert found.pop() == []
    return found


def given(path):
    whole = path.read_text(encoding="utf-8").strip()
    return [part.split("\n") for part in whole.split("\n\n")]


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_a_text_folder_holds_the_text(raw, kind):
    other = {"cased": True} if kind == "wordpiece" else {"character_coverage": 1.0}
    totals = prepare(options(raw, kind=kind, **other))
    files = {"dict.txt", "prepare.json", subwords.SUBWORD_MODELS[kind].name}
    files |= {f"{split}.{end}" for split in ("train", "valid") for end in ("bin", "idx")}
    files |= {"sentencepiece.version"} if kind == "sentencepiece" else set()
    assert set(os.listdir(raw / "out")) == files
    assert len((raw / "out" / "dict.txt").read_text(encoding="utf-8").splitlines()) == 145
    for split, path in (("train", raw / "en"), ("valid", raw / "valid")):
        # words come back, spaces around punctuation may differ
        expected = [["".join(line.split()) for line in document] for document in given(path)]
        found = sentences(raw / "out", split)
        assert [["".join(line.split()) for line in document] for document in found] == expected
        assert totals[split].documents == len(expected)


@pytest.mark.parametrize("languages, coverage", [(["en"], 0.9995), (["en", "de"], 0.99995)])
def test_many_languages_have_a_larger_coverage_and_their_unknown_pieces_are_reported(
    raw, monkeypatch, languages, coverage
):
    given, said = [], []
    learn = vocabulary.learn_sentencepiece
    monkeypatch.setattr(
        vocabulary, "learn_sentencepiece", lambda *args: given.append(args[3]) or learn(*args)
    )
    texts = [",".join(f"{language}={raw / language}" for language in languages)]
    texts = texts if len(languages) > 1 else [str(raw / "en")]
    prepare(options(raw, kind="sentencepiece", train=texts, valid=texts), said.append)
    assert given == [coverage]
    told = [line for line in said if line.endswith("unknown") and " of " in line]
    assert len(told) == (4 if len(languages) > 1 else 0)


def counts(folder):
    lines = (folder / "dict.txt").read_text(encoding="utf-8").splitlines()
    return {piece: int(count) for piece, count in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_the_dictionary_counts_the_training_text_in_the_order_of_the_vocabulary(raw, kind):
    prepare(options(raw, kind=kind))
    model = subwords.load(raw / "out")
    expected = collections.Counter(
        piece for document in given(raw / "en") for line in document for piece in model.encode(line)
    )
    found = counts(raw / "out")
    assert list(found) == model.vocabulary()
    assert found == {piece: expected[piece] for piece in found}
    assert len(set(found.values())) > 10


def test_counts_come_with_the_subwords_of_another_folder_and_are_added_where_none_are(raw):
    prepare(options(raw))
    known = counts(raw / "out")
    os.rename(raw / "out", raw / "first")
    taken = options(raw, subwords=str(raw / "first"), vocabulary_size=None, train=[str(raw / "de")])
    prepare(taken)
    assert counts(raw / "out") == known
    first, second = contents(raw / "first"), contents(raw / "out")
    assert first["wordpiece.json"] == second["wordpiece.json"]
    assert first["valid.bin"] == second["valid.bin"] and first["train.bin"] != second["train.bin"]
    # as earlier versions wrote it, or a run that was killed
    uncounted = "".join(f"{piece} 1\n" for piece in known)
    (raw / "out" / "dict.txt").write_text(uncounted, encoding="utf-8")
    assert prepare(taken) == {}
    assert list(counts(raw / "out")) == list(known) and counts(raw / "out") != known


def test_every_nth_document_is_held_out_and_not_trained_on(raw):
    said = []
    prepare(options(raw, valid=(), hold_out=5, vocabulary_size=500), said.append)
    [note] = [line for line in said if line.startswith("note: ")]
    assert note.startswith("note: --hold-out 5 leaves 4 documents to validate on; a smaller")
    train, valid = sentences(raw / "out", "train"), sentences(raw / "out", "valid")
    count = len(given(raw / "en"))
    assert (len(train), len(valid)) == (count - count // 5, count // 5)
    assert not {tuple(part) for part in train} & {tuple(part) for part in valid}
    said = []
    prepare(options(raw, valid=(), hold_out=2, output=str(raw / "half")), said.append)
    assert not any(line.startswith("note: ") for line in said)


@pytest.mark.parametrize("exponent, times", [(0.0, 3.0), (0.5, 3**0.5), (1.0, 1.0)])
def test_small_languages_are_repeated_in_training_and_not_in_validation(raw, exponent, times):
    both = [f"en={raw / 'en'}", f"de={raw / 'de'}"]
    chosen = options(raw, train=both, valid=both, kind="sentencepiece", sampling_exponent=exponent)
    prepare(chosen)
    count = collections.Counter(map(tuple, sentences(raw / "out", "train")))
    valid = list(map(tuple, sentences(raw / "out", "valid")))
    english, german = valid[:24], valid[24:]
    assert len(german) == 8 and all(count[part] == 1 for part in english)
    repeated = [count[part] for part in german]
    assert set(repeated) <= {int(times), -int(-times // 1)}
    assert sum(count.values()) == 24 + sum(repeated)


def test_the_vocabulary_is_learnt_from_a_part_if_asked_for(raw):
    prepare(options(raw, vocabulary_size=30000, vocabulary_lines=10))
    few = len((raw / "out" / "dict.txt").read_text(encoding="utf-8").splitlines())
    everything = options(raw, vocabulary_size=30000, vocabulary_lines=0)
    prepare(Options(**{**vars(everything), "output": str(raw / "all")}))
    assert few < len((raw / "all" / "dict.txt").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("lost", ["train.idx", "valid.bin", "dict.txt", "train.bin"])
def test_a_run_that_was_broken_off_goes_on_to_the_same_result(raw, lost):
    prepare(options(raw))
    before = contents(raw / "out")
    (raw / "out" / lost).unlink()
    made = prepare(options(raw))
    assert contents(raw / "out") == before
    assert set(made) == ({lost[:5]} if lost != "dict.txt" else set())


def test_a_complete_folder_is_left_alone(raw):
    prepare(options(raw))
    said = []
    assert prepare(options(raw, workers=2), said.append) == {}
    assert said == [f"{raw / 'out'} is complete"]


def test_a_second_run_waits_for_the_first(raw):
    said = []
    (raw / "out").mkdir()
    with locked(str(raw / "out")):
        second = threading.Thread(target=prepare, args=(options(raw), said.append))
        second.start()
        while not said:
            time.sleep(0.01)
        time.sleep(0.2)
        assert said == [f"waiting for another run in {raw / 'out'} to end"]
        assert not os.listdir(raw / "out")
    second.join()
    assert (raw / "out" / "train.idx").exists()


def test_a_folder_of_other_options_or_texts_is_refused(raw):
    prepare(options(raw))
    before = contents(raw / "out")
    with pytest.raises(UsageError, match=r"made with other options or texts \(documents, seed\)"):
        prepare(options(raw, documents="title", seed=2))
    cut = {"vocabulary_size": None, "subwords": str(raw / "out"), "output": str(raw / "cut")}
    prepare(options(raw, **cut))
    for path, other, changed, named in (
        (raw / "en", bytes.swapcase, {}, "texts"),  # of the same size
        (raw / "valid", bytes.swapcase, cut, "texts"),
        (raw / "out" / "wordpiece.json", lambda content: content + b"\n", cut, "subwords"),
    ):
        good = path.read_bytes()
        path.write_bytes(other(good))
        with pytest.raises(UsageError, match=rf"\({named}\)"):
            prepare(options(raw, **changed))
        path.write_bytes(good)
    assert contents(raw / "out") == before
    (raw / "out" / "prepare.json").unlink()
    with pytest.raises(UsageError, match="holds other data"):
        prepare(options(raw))


def test_a_text_that_was_bad_can_be_mended(raw):
    good = (raw / "en").read_bytes()
    (raw / "en").write_bytes(good + b"\xff\n")
    line = good.count(b"\n") + 1
    with pytest.raises(UsageError, match=f"en, line {line}: invalid UTF-8"):
        prepare(options(raw))
    assert os.listdir(raw / "out") == ["prepare.json"]
    (raw / "en").write_bytes(good)
    assert set(prepare(options(raw))) == {"valid", "train"}


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"train": ["nope"]}, "no file or folder nope"),
        ({"valid": ()}, "either --valid or --hold-out"),
        ({"hold_out": 5}, "either --valid or --hold-out"),
        ({"valid": (), "hold_out": 1}, "--hold-out must be at least 2"),
        ({"valid": (), "hold_out": 99}, "no text for 'valid'"),
        ({"workers": 0}, "--workers must be at least 1"),
        ({"vocabulary_lines": -1}, "--vocabulary-lines must be at least 0"),
        ({"vocabulary_size": 20}, "a vocabulary of 20 is too small"),
        ({"cased": True, "kind": "sentencepiece"}, "sentencepiece has no --cased"),
        ({"character_coverage": 0.99}, "wordpiece has no --character-coverage"),
        ({"character_coverage": 2.0, "kind": "sentencepiece"}, "coverage must be within"),
        ({"subwords": "nope"}, "--vocabulary-size and --subwords exclude each other"),
        (
            {"subwords": "nope", "vocabulary_size": None, "vocabulary_lines": 0},
            "--vocabulary-lines and --subwords exclude each other",
        ),
        ({"subwords": "nope", "vocabulary_size": None}, "nope must hold one of"),
        ({"sampling_exponent": 1.5}, "exponent must be within"),
        ({"output": "/dev/null/out"}, "cannot write /dev/null/out"),
    ],
)
def test_bad_options_are_reported(raw, changed, told):
    with pytest.raises(UsageError, match=told):
        prepare(Options(**{**vars(options(raw)), **changed}))
