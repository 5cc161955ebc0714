import json
import os
import random
import tracemalloc
from functools import partial

import numpy as np
import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores import score
from fairseq_posenc.tools.scores.intervals import bootstrap, drawn_score
from fairseq_posenc.tools.scores.metrics import SACREBLEU_METRICS
from fairseq_posenc.tools.scores.score import render
from fairseq_posenc.tools.scores.scorer import DEFAULT as METRICS
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.runs import read_runs
from tests.tools.scores.conftest import HYPOTHESES, REFERENCES, SOURCES

evaluate = partial(score.evaluate, language="de", source_language="en")


@pytest.mark.parametrize(
    ("options", "of", "unit", "sizes"),
    [
        ({"bins": [2, 5, 6]}, "source", "words", {"1-2": 1, "3-5": 1, "6-6": 0, "7+": 1}),
        ({"percentiles": True}, "reference", "words", {"short": 1, "medium": 1, "long": 1}),
        ({"bins": [5], "length_of": "reference"}, "reference", "words", {"1-5": 2, "6+": 1}),
        # subwords are counted before they are joined
        ({"bins": [5, 6, 7]}, "source", "words", {"1-5": 2, "6-6": 0, "7-7": 0, "8+": 1}),
        ({"bins": [5, 6, 7], "length_unit": "subwords"}, "source", "subwords",
         {"1-5": 1, "6-6": 0, "7-7": 1, "8+": 1}),
    ],
)  # fmt: skip
def test_bins_count_what_is_asked_for(generated, options, of, unit, sizes):
    result = evaluate(generated=generated, **options).by_length
    assert (result.of, result.unit) == (of, unit)
    assert {part.name: part.sentences for part in result.bins} == sizes


def test_bins_of_a_file_of_numbers_are_scored_from_their_own_sentences(files, tmp_path, write):
    path = write("test.clauses", ["3", "0", "3"])
    result = evaluate(**files, bins=[1, 2], group_by=path)
    sizes = {part.name: part.sentences for part in result.by_length.bins}
    assert sizes == {"0-1": 1, "2-2": 0, "3+": 2}
    assert "\nby clauses\n" in render(result)
    alone = {
        "hypothesis": write("h", HYPOTHESES[::2]),
        "reference": write("r", REFERENCES[::2]),
    }
    expected = evaluate(**alone).all.metrics
    both = result.by_length.bins[2].metrics
    assert {name: both[name] for name in METRICS} == {name: expected[name] for name in METRICS}
    (tmp_path / "score.json").write_text(json.dumps(result.to_json()), encoding="utf-8")
    assert by_length(read_runs([str(tmp_path / "score.json")])).title.endswith("by clauses")


@pytest.mark.parametrize(
    ("numbers", "options", "message"),
    [
        (["1", "2"], {}, "test.clauses has 2 lines, but there are 3 sentences"),
        (["1", "two", "3"], {}, "test.clauses, line 2: expected a whole number, not 'two'"),
        (["1", "2", "-3"], {}, "line 3: expected a whole number"),
        (["1", "2", "3"], {"length_of": "reference"}, "excludes --length-of"),
        (["1", "2", "3"], {"bins": None}, "--group-by need --bins"),
    ],
)
def test_numbers_that_cannot_be_bins_are_refused(files, numbers, options, message, write):
    path = write("test.clauses", numbers)
    with pytest.raises(UsageError, match=message):
        evaluate(**{**files, "bins": [1], "group_by": path, **options})


def test_generated_and_plain_give_equal_figures(files, generated):
    assert evaluate(generated=generated).all == evaluate(**files).all


def test_empty_lines_are_counted_and_remarked(write):
    result = evaluate(
        hypothesis=write("h", ["a", "", "c"]),
        reference=write("r", ["a", "b", " "]),
    )
    assert result.all.sentences == 3
    assert result.all.empty_hypotheses == [2]
    assert result.all.empty_references == [3]
    assert result.remarks == ["1 empty hypotheses: line 2", "1 empty references: line 3"]


def test_a_token_is_left_out_of_a_second_score_of_the_whole_set(write):
    def scored(*sides, **options):
        files = [write(name, [side] * 2) for name, side in zip("hr", sides)]
        return evaluate(hypothesis=files[0], reference=files[1], **options)

    texts = ("ein Haus . <sep> der Hund läuft heute", "ein Haus . <sep> die Katze läuft heute")
    result = scored(*texts, without_token="<sep>")
    plain = scored(*(text.replace("<sep> ", "") for text in texts)).all.metrics
    assert result.without_token.token == "<sep>"
    assert all(result.without_token.all.metrics[name] == plain[name] for name in METRICS)
    assert result.all.metrics["sacrebleu"] > plain["sacrebleu"]
    assert result.all == scored(*texts).all
    assert scored(*texts).without_token is None
    line = f"without <sep>: sacreBLEU {plain['sacrebleu']:.2f}, "
    assert line in render(result) and line not in render(scored(*texts))
    wrong = render(scored("a b c d <sep> e", "f g h i <sep> j", without_token="<sep>"))
    assert "without <sep>: sacreBLEU 0.00, " in wrong


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without_token": "<sep>"}, "no reference holds"),
        ({"source": None, "bins": [10]}, "--source"),
        ({"bins": [10], "percentiles": True}, "exclude"),
        ({"length_of": "source"}, "need --bins"),
        ({"length_unit": "subwords", "bins": [10]}, "--generated"),
        ({"reference": None}, "--reference"),
        ({"hypothesis": None}, "--generated"),
        ({"generated": "x"}, "either"),
    ],
)
def test_options_that_do_not_go_together_are_refused(files, options, message):
    with pytest.raises(UsageError, match=message):
        evaluate(**{**files, **options})


WORDS = "der die das Hund Katze Haus läuft schläft sieht heute schnell gern".split()
LINES = [" ".join(random.Random(i).choices(WORDS, k=6 + i % 9)) for i in range(40)]


@pytest.mark.parametrize(
    ("translate", "learned"),
    [
        (lambda i: LINES[i], True),
        (lambda i: LINES[i] if i % 3 else "xyz", True),
        # the same for every sentence, something for every length, another sentence's
        (lambda i: LINES[0], False),
        (lambda i: "Haus " * len(LINES[i].split()), False),
        (lambda i: LINES[(i * 7 + 1) % 40], False),
        # a single sentence: above chance by some points, and by luck
        (lambda i: LINES[i] if i == 7 else "xyz " * 9, False),
        # a word of each sentence: above chance for certain, and by less than a point
        (lambda i: LINES[i].split()[0] + " xyz" * 20, False),
    ],
)
def test_outputs_that_do_not_depend_on_their_source_are_reported(translate, learned, write):
    files = {"hypothesis": write("h", map(translate, range(40)))}
    result = evaluate(**files, reference=write("r", LINES))
    assert result.all.above_chance is learned
    said = f"hardly learned anything: its sacreBLEU is {result.all.metrics['sacrebleu']:.2f}, "
    assert (said in render(result)) != learned


def test_empty_bins_are_dashes_to_read_and_null_in_json(files):
    result = evaluate(**files, bins=[6, 7, 50])
    line = next(line for line in render(result).splitlines() if line.startswith("7-7"))
    assert line.split() == ["7-7", "0"] + ["-"] * 6 + ["?"]
    content = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert content["by_length"]["bins"][1]["chrf"] is None


def test_what_is_printed_is_what_was_computed(files):
    result = evaluate(**files, percentiles=True)
    text = render(result)
    figures = result.all.metrics
    row = next(line for line in text.splitlines() if line.startswith("all")).split()
    expected = [f"{figures[name]:.2f}" for name in [*METRICS, "bleu_without_penalty"]]
    assert [*row[:3], *row[5:-1]] == ["all", "3", *expected, f"{figures['length_ratio']:.3f}"]
    assert " ".join(row[3:5]) == "[{:.2f}, {:.2f}]".format(*result.all.interval["sacrebleu"])
    assert f"BLEU = {figures['tokenised_bleu']:.2f}, 84.6/" in text
    for signature in result.signatures.values():
        assert signature in text


def test_script_prints_and_writes_the_same_json(posenc, generated, tmp_path):
    output = tmp_path / "runs" / "score.json"
    words = f"--generated {generated} --language de --bins 3,6 --note seed=1 --note x=a=b"
    arguments = words.split()
    printed = posenc("score", *arguments, "--json", "--output", output)
    result = json.loads(printed.out)
    assert result == json.loads(output.read_text(encoding="utf-8"))
    assert result["notes"] == {"seed": "1", "x": "a=b"}
    assert result["command"] == ["posenc", "score", *arguments, "--json", "--output", str(output)]
    assert {"python", "torch", "fairseq", "sacrebleu"} <= set(result["versions"])
    assert os.listdir(output.parent) == ["score.json"]


def test_script_writes_nothing_for_incomplete_output(posenc, tmp_path, write):
    path = write("out", ["H-1\t-1\tx", "D-1\t-1\tx"])
    output = tmp_path / "score.json"
    with pytest.raises(UsageError, match="--required-batch-size-multiple 1"):
        posenc("score", "--generated", path, "--language", "de", "--output", output)
    assert not output.exists()


COMET = {"out.txt": [{"src": "s", "mt": f" {line} ", "COMET": 0.5 * i}
                     for i, line in enumerate(HYPOTHESES)]}  # fmt: skip


@pytest.mark.parametrize("content", [["0", "0.5", "1"], COMET], ids=["lines", "comet"])
def test_scores_of_sentences_from_elsewhere_are_averaged_by_length_too(files, write, content):
    path = write("scores", content)
    result = evaluate(**files, bins=[2], segment_scores={"COMET": path}, metrics=["chrf++"])
    assert list(result.signatures) == ["sacrebleu", "tokenised_bleu", "chrf++", "COMET"]
    parts = [result.all, *result.by_length.bins]
    assert [part.metrics["COMET"] for part in parts] == [0.5, 0.0, 0.75]
    assert result.all.interval["COMET"] == (0.0, 1.0)
    assert " COMET " in render(result) and "COMET: mean of the scores" in render(result)
    score = write("runs/score.json", result.to_json())
    assert by_length(read_runs([score]), "COMET").rows["runs"][2].mean == 0.75


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("COMET", ["1", "2"], "has 2 scores, but there are 3 sentences"),
        ("COMET", ["1", "two", "3"], "line 2: expected a number, not 'two'"),
        ("COMET", ["1", "nan", "3"], "line 2: expected a number, not 'nan'"),
        ("COMET", ["1", "0_2", "3"], "line 2: expected a number, not '0_2'"),
        ("COMET", {"a": [], "b": []}, "one system: it has 2 systems"),
        ("COMET", ['{"COMET": 1}', "2", "3"], "sentence 2: expected an object of JSON"),
        ("COMET", {"a": [{"mt": "x"}]}, "no number called COMET or prediction"),
        ("COMET", {"a": [{"mt": "x", "COMET": 1}]}, "scores other translations: sentence 1 is 'x'"),
        ("chrf", ["1", "2", "3"], "chrf is computed here"),
        ("a b", ["1", "2", "3"], "is not a name"),
    ],
)
def test_scores_of_other_sentences_are_refused(files, write, name, content, message):
    with pytest.raises(UsageError, match=message):
        evaluate(**files, segment_scores={name: write("scores", content)})


def test_an_unknown_metric_is_refused(files):
    with pytest.raises(UsageError, match="no metric is called 'bleu'; known: sacrebleu, "):
        evaluate(**files, metrics=["bleu"])


def test_hypotheses_are_written_as_plain_text(files, generated, tmp_path):
    output = tmp_path / "plain.txt"
    result = evaluate(generated=generated, write_hypotheses=str(output), bins=[2])
    plain, references = ([line.replace(" .", ".") for line in side]
                         for side in (HYPOTHESES, REFERENCES))  # fmt: skip
    assert output.read_text(encoding="utf-8").splitlines() == plain
    kept = result.sentences
    assert (kept.hypothesis, kept.reference) == (plain, references)
    assert kept.source == [line.replace(" .", ".") for line in SOURCES]  # text, not tokens


MORE = ["das Haus", "der Hund rennt heute schnell", "zwei Kinder spielen in dem Garten dort ."]


@pytest.mark.parametrize("form", ["files", "tabs"])
def test_several_references_are_scored_as_by_sacrebleu(write, run, tmp_path, form):
    paths = [write("a", REFERENCES), write("b", MORE)]
    given = [word for path in paths for word in ("--reference", path)]
    if form == "tabs":
        given = ["--reference", write("ab", ["\t".join(pair) for pair in zip(REFERENCES, MORE)])]
    output = tmp_path / "score.json"
    run("posenc", "score", "--hypothesis", write("h", HYPOTHESES), *given, "--language", "de",
        "--output", output, "--metrics", "chrf, ter", "--bins", 3, "--length-of", "reference",
        "--without-token", "Haus")  # fmt: skip
    result = json.loads(output.read_text(encoding="utf-8"))
    references = [REFERENCES, MORE]
    for name in SACREBLEU_METRICS:
        metric = SACREBLEU_METRICS[name]("de")
        if name in ("sacrebleu", "chrf", "ter"):
            expected = metric.corpus_score(HYPOTHESES, references).score
            assert result["all"][name] == pytest.approx(expected, abs=1e-9), name
            assert "nrefs:2" in result["signatures"][name]
    [[score]] = read_runs([str(output)]).values()
    assert list(score.texts.more_references) == [MORE]
    score.check_sentences("it", "sacrebleu")


def test_references_of_unequal_number_are_refused(write):
    ragged = write("r", ["a\tb", "a\tb\tc", "a\tb"])
    with pytest.raises(UsageError, match="r has up to 3 references on a line, separated by tabs"):
        evaluate(hypothesis=write("h", HYPOTHESES), reference=ragged)
    lacking = write("l", ["a\tb", "a", "a\tb"])
    with pytest.raises(UsageError, match="line 2 has 1: .* a tab at its end"):
        evaluate(hypothesis=write("h", HYPOTHESES), reference=lacking)
    few = write("f", ["a\tb", *REFERENCES[1:]])
    remarks = evaluate(hypothesis=write("h", HYPOTHESES), reference=few).remarks
    assert [line for line in remarks if line.startswith("1 references hold tabs, taken as blanks")]
    short = [write("one", REFERENCES), write("two", REFERENCES[:2])]
    with pytest.raises(UsageError, match="two has 2 lines, but there are 3"):
        evaluate(hypothesis=write("h", HYPOTHESES), reference=short)


def test_bleu_of_references_without_four_tokens_is_not_defined(write, tmp_path):
    """Perfect lines of two words are no failure; a part with longer ones has a figure."""
    lines = ["ein Haus", "der Hund", "", "zwei Kinder spielen im Garten dort"] * 5
    files = {"hypothesis": write("h", lines), "reference": write("r", lines)}
    options = {"bins": [1, 2], "length_of": "reference", "metrics": ["chrf++", "ter"]}
    result = evaluate(**files, **options)
    few, two, many = (part.metrics for part in result.by_length.bins)
    assert [two["sacrebleu"], two["tokenised_bleu"]] == [None] * 2
    assert result.by_length.bins[1].interval["sacrebleu"] is None
    assert two["chrf++"] == pytest.approx(100) and two["ter"] == 0
    assert [few["chrf++"], few["ter"]] == [None, None]
    assert many["sacrebleu"] == pytest.approx(100)
    assert result.all.interval["sacrebleu"] == pytest.approx([100, 100])
    shown = render(result)
    assert "sacreBLEU is not defined (-) where no reference has 4 tokens" in shown
    assert "TER is not defined (-) where all references are empty" in shown
    path = tmp_path / "score.json"
    path.write_text(json.dumps(result.to_json()), encoding="utf-8")
    table = by_length(read_runs([f"a={path}", f"b={path}"]))
    assert [one.mean is None for one in table.rows["a"]] == [False, True, True, False]
    assert "sacreBLEU is not defined (-) where no reference has 4 tokens" in table.notes
    ratios = by_length(read_runs([f"a={path}"]), "length_ratio")
    assert [one.mean for one in ratios.rows["a"]] == [1, None, 1, 1]
    only = evaluate(hypothesis=write("h", lines[:2]), reference=write("r", lines[:2]))
    assert only.all.metrics["sacrebleu"] is None and "not defined" in render(only)


def test_words_of_scripts_without_spaces_are_not_whole_lines(write):
    def scored(language, hypothesis, reference):
        files = {"hypothesis": write("h", hypothesis), "reference": write("r", reference)}
        result = score.evaluate(**files, language=language, metrics=["ter", "chrf++"])
        return result, "\n".join(result.remarks)

    result, told = scored("zh", ["我今天很高兴见到你"] * 3, ["我今天很开心见到你"] * 3)
    assert 20 < result.all.metrics["ter"] < 25 and "asian:yes" in result.signatures["ter"]
    assert "chrF++ counts words between spaces" in told and "TER" not in told
    _, told = scored("th", ["ฉันดีใจที่ได้พบคุณ"] * 3, ["ฉันดีใจที่ได้เจอคุณ"] * 3)
    assert "TER counts words between spaces, which th does not have, so whole lines" in told


def test_many_sentences_and_draws_take_little_memory():
    """Of 1,000 test sets, one is drawn at a time."""
    rows = np.ones((20_000, 10))
    tracemalloc.start()
    bootstrap([drawn_score("sacrebleu", rows)] * 3, len(rows), samples=50)
    assert tracemalloc.get_traced_memory()[1] < 3e6
    tracemalloc.stop()
