"""posenc compare: what its report says, that nothing in it is run, and how a browser shows it."""

import base64
import html
import json
import random
import re
import shutil
from pathlib import Path

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.metrics import metric_of
from fairseq_posenc.tools.scores.score import evaluate
from fairseq_posenc.tools.scores.significance import paired_bootstrap
from fairseq_posenc.tools.tables.latex import best_rows, escaped, latex
from fairseq_posenc.tools.tables.length_table import by_length
from fairseq_posenc.tools.tables.report import write_report
from fairseq_posenc.tools.tables.report_content import read_report
from fairseq_posenc.tools.tables.runs import read_runs
from fairseq_posenc.tools.tables.sentences import differing, length_faults

STRANGE = "<script>alert(1)</script> & 50% {x}_y|z"
HEBREW = "הכלב רץ מהר היום בגן הגדול".split()
LOG = (
    "2026-01-01 00:00:00 | INFO | fairseq_cli.train | num. shared model params: 1,000 (num.\n"
    "2026-01-01 00:00:00 | INFO | fairseq_cli.train | training on 1 devices (GPUs/TPUs)\n"
    "2026-01-01 00:00:00 | INFO | train_inner | epoch 1: loss=9, wps=100, num_updates=10, wall=6\n"
    "2026-01-01 00:00:01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5 | "
    "nll_loss 4.5 | num_updates 10\n"
)


def reported(paths, output, command=(), **options):
    """The table of a report that is written into a folder."""
    report = read_report(paths, **options)
    write_report(report, output, command)
    return report.table


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Results of unequal seeds: good and bad translations, and those that learned nothing."""
    folder, paths = tmp_path_factory.mktemp("scored"), []
    draw = random.Random(1)
    references = [" ".join(draw.choices(HEBREW, k=draw.randint(3, 14))) for _ in range(40)]
    (folder / "reference").write_text("\n".join(references) + "\n", encoding="utf-8")
    for name, right, seeds in (("none", 0, (1,)), ("bad", 0.5, (1, 2)), (STRANGE, 0.9, (1, 2, 3))):
        for seed in seeds:
            lines = [
                " ".join(word if draw.random() < right else "x" for word in line.split())
                for line in references
            ]
            if name == "bad":
                lines[7] = ""
            errors = "".join(f"{line.split().count('x')}\n" for line in lines)
            (folder / "errors").write_text(errors)
            (folder / "hypothesis").write_text("\n".join(lines) + "\n", encoding="utf-8")
            files = {
                "hypothesis": str(folder / "hypothesis"),
                "reference": str(folder / "reference"),
            }
            result = evaluate(
                **files, language="he", bins=[8], length_of="reference",
                command=["posenc", "score"], metrics=["chrf", "ter"], notes={"seed": str(seed)},
                segment_scores={"errors": str(folder / "errors")},
            ).to_json()  # fmt: skip
            for part in (result["all"], *result["by_length"]["bins"]):
                part["within"] = part["sentences"] // 3
            place = folder / f"run{len(paths)}"
            place.mkdir()
            (place / "score.json").write_text(json.dumps(result), encoding="utf-8")
            (place / "train.log").write_text(LOG)
            paths.append(f"{name.replace('/', '')}={place}/score.json")
    return paths


NAME = STRANGE.replace("/", "")


@pytest.fixture(scope="module")
def report(scored, tmp_path_factory):
    output = tmp_path_factory.mktemp("report")
    reported(scored, str(output), baseline="bad", command=["posenc", "compare"])
    return output


def text_of(path):
    """What a reader of a report sees."""
    page = re.sub("(?s)<style>.*</style>|<[^>]*>", " ", path.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", html.unescape(page))


def test_a_report_is_one_file_that_runs_nothing_and_its_parts_lie_beside_it(report):
    names = {path.name for path in report.iterdir()}
    pictures = {"by_length.svg", "curves.svg"}
    assert names == {"report.html", "table.md", "table.csv", "table.tex", "curves.md", *pictures}
    page = (report / "report.html").read_text(encoding="utf-8")
    assert len(page) < 1 << 20
    assert "<script" not in page and "alert(1)&lt;script&gt;" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page) and "default-src 'none'" in page
    for name in pictures:
        assert base64.b64encode((report / name).read_bytes()).decode() in page


def baseline_first(scored):
    runs = read_runs(scored)
    return {"bad": runs["bad"], **runs}


def test_every_figure_of_the_table_is_in_the_report_and_in_the_files_beside_it(report, scored):
    table, shown = by_length(baseline_first(scored)), text_of(report / "report.html")
    assert (report / "table.md").read_text(encoding="utf-8") == table.markdown()
    assert (report / "table.csv").read_text(encoding="utf-8") == table.csv()
    lines = (report / "table.tex").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.endswith(r" \\")][1:]
    for line, (name, row) in zip(rows, table.rows.items()):
        assert line.startswith(f"{escaped(name)} & ")
        figures = [f"{number:.2f}" for one in row for number in one[:3]]
        assert re.findall(r"-?\d+\.\d\d", line) == figures
    assert len(rows) == 3 and all(f"% {note}" in lines for note in table.notes)
    for name, row in table.rows.items():
        for one, other in zip(row, table.differences[name]):
            assert f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]" in shown
            if name != "bad":
                star = " *" if other.is_clear() else ""
                assert f"{other.mean:+.2f}{star} [{other.low:+.2f}, {other.high:+.2f}]" in shown
    counts = " ".join(f"{name} {n} sentences" for name, n in zip(table.columns, table.sentences))
    assert shown.count(counts) == 3
    assert f" within trained length {' '.join(map(str, table.within))} " in shown
    assert all(text in shown for text in (*table.words, *table.notes))
    outputs = [" ".join(map(str, row)) for row in table.outputs.values()]
    faults = [" ".join(line) for line in length_faults(baseline_first(scored), table.columns)[1:]]
    assert all(text in shown for text in (*outputs, *faults))


def test_remarks_come_first(scored, tmp_path):
    table = reported(scored, str(tmp_path), remarks=["5 <b> left out."])
    assert table.words[0] == "5 <b> left out."
    assert "5 &lt;b&gt; left out." in (tmp_path / "report.html").read_text()


def test_a_report_says_how_it_was_made_and_what_was_trained(report, scored):
    shown = text_of(report / "report.html")
    for name, signature in read_runs(scored)["bad"][0].signatures.items():
        assert f" {name} : {signature} " in shown
    for words in ("Versions: ", "sacrebleu 2.", "This report: posenc compare",
                  "bad , seed 2: posenc score"):  # fmt: skip
        assert words in shown
    # updates, minutes, parameters, hardware, encoding
    assert shown.count(" 10 0.1 1000 - - ") == len(scored) == 6
    curves = (report / "curves.md").read_text(encoding="utf-8")
    assert [line.split("|")[1].strip() for line in curves.splitlines()[2:4]] == ["bad", "none"]
    assert "validation loss in bits per token: mean over n seeds" in curves.lower()
    assert curves.splitlines()[-1] in shown and "bad 2 10 4.500 ± 0.000" in shown


def test_p_values_are_those_of_sacrebleus_test_for_each_seed_of_both(report, scored):
    shown, runs = text_of(report / "report.html"), read_runs(scored)
    for name in (NAME, "none"):
        values = []
        for one, other in zip(runs["bad"], runs[name]):
            rows = [score.texts.statistics["sacrebleu"] for score in (one, other)]
            value, signature = paired_bootstrap("sacrebleu", *rows)
            values.append("nothing learned" if name == "none" else value)
        assert f" {name} {' '.join(values)} " in shown and signature in shown


def test_sentences_that_differ_most_stand_beside_each_other_by_range(report, scored):
    runs = read_runs(scored)
    found = differing(runs["bad"], runs[NAME])
    assert list(found) == ["1-8", "9+"] and all(len(part) == 10 for part in found.values())
    for part in found.values():
        gaps = [abs(one.first_score - one.second_score) for one in part]
        assert gaps == sorted(gaps, reverse=True) and gaps[-1] > 0
    one = found["9+"][0]
    scores = [runs[name][0] for name in ("bad", NAME)]
    assert [one.first, one.second] == [score.texts.hypothesis[one.number - 1] for score in scores]
    assert one.reference == scores[0].texts.reference[one.number - 1]
    shown = text_of(report / "report.html")
    assert (
        f"Sentence {one.number} {one.reference} bad, chrF {one.first_score:.1f} {one.first} "
        f"{NAME}, chrF {one.second_score:.1f} {one.second} "
    ) in shown and "(empty)" in shown
    scores[1].texts.hypothesis[one.number - 1] = "x" * 100_000
    assert len(differing(runs["bad"], runs[NAME])["9+"][0].second) == 600


def test_empty_short_and_long_outputs_are_counted(scored):
    runs = read_runs(scored)
    whole = runs["bad"][0]
    for i, (own, other) in enumerate([(0, 4), (1, 4), (9, 4), (4, 4)]):
        whole.texts.statistics["tokenised_bleu"][i][:2] = own, other
    lines = length_faults({"bad": [whole]}, ["all"])
    # the eighth is empty as well
    assert lines == [["", "all"], ["bad", *lines[1][1:]]] and lines[1][1] == "5.0, 2.5, 2.5"


def test_the_best_is_bold_only_where_it_is_clear(scored):
    runs = read_runs(scored)
    table = by_length(runs)
    assert best_rows(table) == [NAME] * 3
    once = {name: runs[name][:1] for name in ("bad", NAME)}
    assert all(one.is_clear() for one in by_length(once).differences[NAME])
    assert best_rows(by_length(once)) == [None] * 3
    same = {"a": runs["bad"], "b": runs["bad"]}
    assert best_rows(by_length(same)) == [None] * 3
    text = latex(table, [NAME, None, None])
    assert text.count(r"\mathbf") == 1 and r"\& 50\% \{x\}\_y|z" in text
    assert text.count(r" \\") == 4 and text.count(r"\begin{tabular}{lrrr}") == 1


@pytest.mark.parametrize(
    ("options", "shown", "bold"),
    [
        ({"metric": "chrf"}, {"better"}, NAME),
        ({"metric": "ter"}, {"better"}, NAME),
        ({"metric": "ter", "lower_is_better": True}, {"better"}, NAME),
        ({"metric": "errors"}, {"worse"}, "bad"),
        ({"metric": "errors", "lower_is_better": True}, {"better"}, NAME),
        ({"metric": "length_ratio"}, set(), None),
    ],
)
def test_a_metric_says_whether_higher_or_lower_is_better(scored, tmp_path, options, shown, bold):
    pair = [path for path in scored if not path.startswith("none=")]
    reported(pair, str(tmp_path), **options)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r'<span class="(better|worse)">', page)) == shown
    picture = (tmp_path / "by_length.svg").read_text(encoding="utf-8")
    assert f"<!-- {metric_of(options['metric']).title} -->" in picture
    rows = (tmp_path / "table.tex").read_text(encoding="utf-8").splitlines()
    marked = [row.partition(" & $")[0] for row in rows if r"\mathbf" in row]
    assert marked == ([escaped(bold)] if bold else [])
    names = re.findall(r'dir="auto">(.*)</th>\n.*<b>', page)
    assert names == ([html.escape(bold)] if bold else [])
    assert page.count("<b>") == 3 * len(marked)
    assert ("lower figure is better" in page) == (bold == NAME and options["metric"] != "chrf")


def test_further_metrics_have_tables_pictures_and_words_of_their_own(scored, tmp_path):
    pair = [path for path in scored if not path.startswith("none=")]
    table = reported(pair, str(tmp_path), metric="sacrebleu,ter")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<img") == 3 and "<h3>TER by reference length" in page
    assert [line for line in table.words if line.startswith("TER, 9+ words, against bad: ")]
    assert "lower figure is better" in (tmp_path / "table_ter.md").read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.glob("table_*")} == {
        f"table_ter.{ending}" for ending in ("md", "csv", "tex", "svg")
    }
    (tmp_path / "table_of_mine.tex").touch()
    for ending in ("md", "csv", "tex", "svg"):  # of a metric that came from a file
        (tmp_path / f"table_COMET.{ending}").touch()
    reported(pair, str(tmp_path))  # once more without: what was another's stays
    assert [path.name for path in tmp_path.glob("table_*")] == ["table_of_mine.tex"]


def test_the_second_system_of_sentences_is_the_best_other_or_the_one_asked_for(scored, tmp_path):
    for first, other, options in (
        ("bad", NAME, {}), ("bad", NAME, {"metric": "ter"}), ("bad", "none", {"beside": "none"}),
        (NAME, "bad", {}),
    ):  # fmt: skip
        reported(scored, str(tmp_path), baseline=first, **options)
        assert f"between {first} and {other} , both of" in text_of(tmp_path / "report.html")


def test_a_log_that_cannot_be_read_does_not_keep_a_report_away(scored, tmp_path):
    reported(scored, str(tmp_path / "report"), baseline="bad")
    shutil.copytree(Path(scored[0].partition("=")[2]).parent, tmp_path / "cell")
    (tmp_path / "cell" / "train.log").write_text("no log")
    reported([f"a={tmp_path}/cell/score.json"], str(tmp_path / "report"))
    assert "train.log is not a log of fairseq-train" in text_of(tmp_path / "report" / "report.html")
    assert not list((tmp_path / "report").glob("curves.*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "chrf", "lower_is_better": True}, "lower figures of chrF are not better"),
        ({"baseline": "good"}, "no run is called 'good'; there are none, bad, "),
        ({"beside": "good"}, "no run is called 'good'"),
        ({"baseline": "bad", "beside": "bad"}, "is the baseline"),
        ({"metric": "COMET"}, "has no COMET, only sacrebleu"),
    ],
)
def test_runs_that_are_not_there_are_refused_and_nothing_is_written(
    scored, tmp_path, options, message
):
    with pytest.raises(UsageError, match=message):
        reported(scored, str(tmp_path / "report"), **options)
    assert not (tmp_path / "report").exists()


def test_old_results_and_single_trainings_are_reported_with_what_is_known(scored, write, tmp_path):
    paths = []
    for name, path in (("a", scored[1]), ("b", scored[2])):
        old = json.loads(Path(path.split("=")[1]).read_text(encoding="utf-8"))
        for kind in ("source", "reference", "hypothesis"):
            del old["sentences"][kind]
        paths.append(f"{name}={write(f'{name}/score.json', old)}")
    for given, output in ((paths, "two"), (paths[:1], "one")):
        reported(given, str(tmp_path / output))
        shown = text_of(tmp_path / output / "report.html")
        assert "No statement about seeds can be made" in shown and "No train.log lies" in shown
        assert ("score again" in shown) or output == "one"


def test_the_command_prints_what_the_report_says_in_words(posenc, scored, tmp_path):
    printed = posenc("compare", *scored, "--output", tmp_path, "--metric", "chrf").out
    *words, last = printed.splitlines()
    assert words == by_length(read_runs(scored), "chrf").words
    assert last == str(tmp_path / "report.html") and (tmp_path / "report.html").exists()
    # as it is typed
    assert "This report: posenc compare " in text_of(tmp_path / "report.html")


def test_the_same_results_give_the_same_bytes(scored, tmp_path):
    for folder in "ab":
        reported(scored, str(tmp_path / folder), metric="sacrebleu,ter")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
