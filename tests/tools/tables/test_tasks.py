"""Results of posenc predict beside each other: intervals, learning rates, what learned nothing."""

import json

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score, matthews_corrcoef

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.intervals import bootstrap, interval, resampled, t_interval
from fairseq_posenc.tools.scores.task_score import TaskScore, frequency_bits, measure
from fairseq_posenc.tools.tables.tasks import by_task, read_task_runs

RANDOM = np.random.default_rng(1)
TARGET = RANDOM.integers(0, 2, 60)
ONE = {"valid": {"target": [0], "prediction": [0]}}


def classes(right, task="MNLI", metric="accuracy", predictions=None, **changes):
    """A result of a task of two classes, right for this share of the examples."""
    if predictions is None:
        wrong = RANDOM.random(60) > right
        predictions = np.where(wrong, 1 - TARGET, TARGET)
    columns = {"target": TARGET.tolist(), "prediction": np.array(predictions).tolist()}
    figure = measure(metric, {name: np.array(values) for name, values in columns.items()})
    return {
        "scores": {"valid": {metric: figure}, "test": {}}, "examples": {"valid": 60, "test": 9},
        "task": task, "main_metrics": [metric], "labels": ["no", "yes"],
        "per_example": {"valid": columns}, "gold": {"valid": "a"}, "chance": {},
        "notes": {"seed": "1"}, "command": ["posenc", "predict"], "versions": {}, **changes,
    }  # fmt: skip


def questions(right, **changes):
    exact = (RANDOM.random(40) < right).astype(float)
    columns = {"f1": ((1 + exact) / 2).tolist(), "exact_match": exact.tolist()}
    scores = {name: 100 * float(np.mean(values)) for name, values in columns.items()}
    about = {"task": "SQuAD", "main_metrics": ["f1", "exact_match"], "labels": []}
    subsets = {"valid": scores}
    return classes(1, scores=subsets, per_example={"valid": columns}, **about, **changes)


def hidden(bits, **changes):
    columns = {"bits": [bits * n for n in (3, 4, 5, 6)], "tokens": [3, 4, 5, 6]}
    scores = {"valid": {"bits_per_token": bits}}
    about = {"task": "masked_lm", "main_metrics": ["bits_per_token"], "chance": {"valid": 9.0}}
    return classes(1, scores=scores, per_example={"valid": columns}, labels=[], **about, **changes)


@pytest.fixture
def runs(write):
    """Files of results by name, a list of each, read."""

    def runs(**results):
        return [
            f"{name}={write(f'{name}/{number}.json', one)}"
            for name, several in results.items()
            for number, one in enumerate(several)
        ]

    return runs


def seeds(make, *rights, **changes):
    return [
        make(right, notes={"seed": str(seed)}, **changes) for seed, right in enumerate(rights, 1)
    ]


@pytest.mark.parametrize("metric", ["f1", "matthews", "pearson", "spearman"])
def test_metrics_of_resampled_examples_are_those_of_the_libraries(metric):
    columns = {"target": TARGET * 1.0, "prediction": RANDOM.integers(0, 2, 60) * 1.0}
    if metric in ("pearson", "spearman"):
        columns = {name: RANDOM.integers(0, 9, 60) * 1.0 for name in columns}
    theirs = {
        "f1": f1_score, "matthews": matthews_corrcoef,
        "pearson": lambda *pair: pearsonr(*pair)[0], "spearman": lambda *pair: spearmanr(*pair)[0],
    }[metric]  # fmt: skip
    for times in resampled(60, 5):
        drawn = np.repeat(np.arange(60), times.astype(int))
        expected = 100 * theirs(columns["target"][drawn], columns["prediction"][drawn])
        assert measure(metric, columns, times) == pytest.approx(expected)


def test_one_training_has_percentiles_and_several_students_interval(runs):
    one, many = seeds(classes, 0.8), seeds(classes, 0.6, 0.7, 0.9)
    table = by_task(read_task_runs(runs(shaw=one, cape=many)))
    assert table.columns == ["MNLI accuracy"] and table.sentences == [60]
    drawn = [
        [measure("accuracy", TaskScore(**score).columns("valid"), times)
         for times in resampled(60)]
        for score in (*one, *many)
    ]  # fmt: skip
    assert table.rows["shaw"][0][1:3] == pytest.approx(interval(np.array(drawn[0])))
    values = [score["scores"]["valid"]["accuracy"] for score in many]
    variance = np.mean(drawn[1:], axis=0).var(ddof=1)
    assert table.rows["cape"][0][1:3] == pytest.approx(t_interval(values, variance))
    assert table.differences["cape"][0].mean == pytest.approx(
        np.mean(values) - one[0]["scores"]["valid"]["accuracy"]
    )


def test_the_command_compares_every_kind_of_result(runs, posenc, tmp_path):
    results = {
        name: [*seeds(classes, *rights), *seeds(questions, *rights), *seeds(hidden, *bits)]
        for name, rights, bits in (("learned", (0.5, 0.52), (8, 8.1)), ("shaw", (1, 1), (5, 5.1)))
    }
    paths = runs(**results)
    printed = posenc("compare", *paths, "--output", tmp_path / "report").out
    assert "MNLI accuracy, against learned: shaw +" in printed
    assert "masked_lm bits per hidden token, against learned: shaw -3.00 ± " in printed
    files = {file.name: file.read_text() for file in (tmp_path / "report").iterdir()}
    assert set(files) == {"report.html", "table.md", "table.csv", "table.tex", "by_task.svg"}
    tex, html = files["table.tex"], files["report.html"]
    assert r"SQuAD exact match ($n=40$)" in tex and r"$\mathbf{100.00}$" in tex
    assert "By task" in html and "60 examples" in html and "translations" not in html
    # fewer bits are better
    assert html.count('class="better"') == 4 and 'class="worse"' not in html
    table = tmp_path / "table.tex"
    out = posenc("table", "--results", *paths, "--output", table).out
    assert table.read_text() == tex and out == files["table.md"]
    posenc("plot", "--results", *paths, "--output", tmp_path / "by_task.svg")


def test_a_sample_is_drawn_once_for_all_trainings_and_columns(runs, monkeypatch):
    languages = [f"test-{name}" for name in ("de", "el", "zh")]
    [result] = seeds(classes, 0.8, task="XNLI")
    about = {"gold": dict.fromkeys(languages, "a")}
    for field in ("scores", "per_example"):
        about[field] = dict.fromkeys(languages, result[field]["valid"])
    results = [{**result, **about, "notes": {"seed": str(seed)}} for seed in range(4)]
    counts = []

    def counted(figures, count):
        counts.append(count)
        return bootstrap(figures, count, 2)

    monkeypatch.setattr("fairseq_posenc.tools.tables.tasks.bootstrap", counted)
    table = by_task(read_task_runs(runs(shaw=results[:2], cape=results[2:])))
    assert len(table.columns) == 4 and counts == [60] * 3
    assert table.columns[0] == "XNLI mean of 3 accuracy" and table.sentences == [180, 60, 60, 60]


def test_each_benchmark_of_questions_has_its_own_mean(runs):
    names = ["xquad-de", "xquad-el", "xquad-zh", "mlqa-de", "mlqa-en", "valid"]
    [result] = seeds(questions, 0.8)
    about = {"gold": dict.fromkeys(names, "a"), "main_metrics": ["f1"]}
    for field in ("scores", "per_example"):
        about[field] = dict.fromkeys(names, result[field]["valid"])
    table = by_task(read_task_runs(runs(shaw=[{**result, **about}])))
    assert table.columns[0] == "SQuAD xquad mean of 3 F1" and len(table.columns) == 7


def test_what_has_learned_nothing_is_said_first(runs, posenc, tmp_path):
    constant = classes(0, predictions=[1] * 60, notes={"seed": "2"})
    paths = runs(shaw=[*seeds(classes, 0.9), constant], cape=seeds(hidden, 9.5))
    tex = tmp_path / "table.tex"
    printed = posenc("table", "--results", *paths, "--output", tex).out
    about = "shaw, seed 2, predicts one class, 'yes', for every example of MNLI valid: it has"
    assert f"{about} learned nothing.\n" in printed
    assert f"\n% {about} learned nothing.\n" in tex.read_text()
    assert "cape, seed 1, predicts the hidden tokens of masked_lm valid no better than" in printed
    assert "shaw, seed 1" not in printed


@pytest.mark.parametrize("chance, learned", [(99.5, False), (50.0, True), (None, True)])
def test_answers_that_would_do_for_other_questions_are_said(runs, posenc, chance, learned):
    results = seeds(questions, 1.0, chance={} if chance is None else {"valid": chance})
    printed = posenc("table", "--results", *runs(shaw=results)).out
    told = "answers the questions of SQuAD valid no better than others about the same texts"
    assert (f"shaw, seed 1, {told} (100.00 F1, and 99.50): it has learned" in printed) != learned


def test_the_learning_rate_is_chosen_by_the_median_of_the_development_set(runs):
    def rate(lr, *rights):
        return [classes(right, notes={"seed": str(seed), "lr": lr})
                for seed, right in enumerate(rights)]  # fmt: skip

    other = questions(0.5, notes={"seed": "1", "lr": "3e-5"})
    paths = runs(shaw=[*rate("1e-5", 0.9, 0.9, 0.2), *rate("2e-5", 0.7, 0.7, 0.7), other])
    table = by_task(read_task_runs(paths))
    assert any("shaw on MNLI 1e-5" in note for note in table.notes)
    assert len(table.sampled["shaw"][0].values) == 3
    # of equals it is the smallest, as in tables of papers
    paths = runs(shaw=[*rate("2e-5", 0), *rate("1e-4", 0), *rate("0.00001", 0), *rate("first", 0)])
    table = by_task(read_task_runs(paths))
    assert any("shaw on MNLI 0.00001" in note for note in table.notes)


def test_runs_are_named_by_the_folder_of_the_row(write):
    paths = [
        write(f"{row}/MNLI/lr1e-5/seed{seed}/score.json", classes(0.9, notes={"seed": str(seed)}))
        for row in ("a", "b") for seed in (1, 2)
    ]  # fmt: skip
    assert {name: len(found) for name, found in read_task_runs(paths).items()} == {"a": 2, "b": 2}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (classes(0.9, gold={"valid": "b"}), "examples or what is right in MNLI differ"),
        (classes(1, gold={}, per_example=ONE), "examples or what is right in MNLI differ"),
        (classes(1, per_example=ONE), "numbers of examples of MNLI differ"),
        (classes(0.9, per_example={}), "has no results by example: an older version predicted"),
        (
            classes(0.9, scores={"valid": {}}, per_example={}),
            "has no labels of valid, so no scores: give posenc predict --subsets that have",
        ),
        ({"all": {}, "signatures": {}}, "from posenc predict, and .* is not: compare results"),
        ({"scores": {"valid": {"f1": "x"}}}, "damaged: scores.valid.f1 should be a number"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(runs, posenc, other, message):
    with pytest.raises(UsageError, match=message):
        posenc("table", "--results", *runs(a=[classes(0.9)], b=[other]))


def test_a_training_counts_once(runs):
    with pytest.raises(UsageError, match="has seed 1 of a on MNLI, as .*give each training once"):
        read_task_runs(runs(a=[classes(0.9), classes(0.9)]))
    with pytest.raises(UsageError, match="has seed 1 of a on MNLI, as .*give each training once"):
        read_task_runs(2 * runs(a=[classes(0.9)]))


@pytest.mark.parametrize(
    ("result", "is_told"),
    [(classes(0.9), True), (questions(0.5), True), (hidden(2), True), (classes(1), False),
     (classes(0, predictions=[0] * 60), False)],
)  # fmt: skip
def test_two_models_with_the_same_results_are_told(runs, posenc, result, is_told):
    printed = posenc("table", "--results", *runs(a=[result], b=[result]))
    assert ("a, seed 1, and b, seed 1, have the same results" in printed.out) == is_told


def test_frequencies_predict_frequent_tokens_better():
    assert frequency_bits([1] * 99 + [2], 10) < 1 < 3 < frequency_bits([*range(10)], 10)
    assert json.dumps(TaskScore(**classes(1)).to_dict())


@pytest.mark.parametrize("make, name", [(classes, "accuracy"), (questions, "F1"), (hidden, "bits")])
def test_examples_of_another_result_are_refused(runs, posenc, make, name):
    result = make(0.6)
    columns = result["per_example"]["valid"]
    half = {column: values[len(values) // 2 :] for column, values in columns.items()}
    half[[*half][-1]][0] += 1
    for others in (half, {"target": half.popitem()[1]}):
        paths = runs(a=[{**result, "per_example": {"valid": others}}])
        with pytest.raises(UsageError, match=f"has examples of valid that do not give its {name}"):
            posenc("table", "--results", *paths)


def test_a_result_that_is_a_link_is_named_by_the_folder_of_the_link(write, posenc, tmp_path):
    paths = []
    for name, right in (("a", 0.9), ("b", 0.5)):
        write(f"store/{name}.json", classes(right))
        (tmp_path / name / "seed1").mkdir(parents=True)
        link = tmp_path / name / "seed1" / "score.json"
        link.symlink_to(tmp_path / "store" / f"{name}.json")
        paths.append(str(link))
    printed = posenc("table", "--results", *paths).out
    assert "\n| a " in printed and "\n| b " in printed and "store" not in printed
