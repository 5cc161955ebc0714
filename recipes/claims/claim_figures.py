"""What the trainings of recipes/claims.sh have measured: figures of a row, by seed."""

import csv
import os
import re
import statistics
from typing import Callable, Dict, List, Optional, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import Each, OrNull, load_json
from fairseq_posenc.tools.scores.training_log import validation_losses

_NUMBERS = [[OrNull(float)]]


def figures_by_seed(runs: str, part: str, row: str, figure: str) -> Dict[int, float]:
    """Return a figure of each training of a row, by seed; empty where it was not run.

    A row ``a less b`` has the differences of two rows.
    """
    if " less " in row:
        a, b = (figures_by_seed(runs, part, name, figure) for name in row.split(" less "))
        return {seed: a[seed] - b[seed] for seed in a.keys() & b.keys()}
    metric, _, name = figure.partition(":")
    if metric not in FIGURES:
        raise UsageError(f"no figure is called {metric}; known: {', '.join(FIGURES)}")
    read, file, _ = FIGURES[metric]
    file = file.format(name.partition(" ")[2])
    by_seed = {}
    for seed, folder in seed_folders(f"{runs}/{part}/{row}"):
        if os.path.exists(f"{folder}/{file}"):
            value = read(folder, name)
            if value is None:
                raise UsageError(f"{folder}/{file} has no {figure}")
            by_seed[seed] = float(value)
    return by_seed


def seed_folders(folder: str) -> List[Tuple[int, str]]:
    """Return the seeds of a row's folder, and the folder of each."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = sorted(int(name[4:]) for name in names if re.fullmatch(r"seed\d{1,9}", name))
    return [(number, f"{folder}/seed{number}") for number in numbers]


# Each a function of a seed's folder, and of what stands behind the colon of the figure's name; None
# where it was not measured.


def _bits(folder: str, name: str) -> float:
    losses = validation_losses(f"{folder}/train.log")
    return losses[max(losses)]


def _bleu(folder: str, name: str, file: str = "score.json") -> Optional[float]:
    """Of the sentences of a range of lengths, or of ``all``."""
    shape = {"sacrebleu": OrNull(float)}
    bins = {"all": shape, "by_length": {"bins": [{"name": str, **shape}]}}
    scores = load_json(f"{folder}/{file}", bins, "posenc score")
    parts = {part["name"]: part["sacrebleu"] for part in scores["by_length"]["bins"]}
    return {"all": scores["all"]["sacrebleu"], **parts}.get(name)


def _bits_of(folder: str, name: str) -> Optional[float]:
    """Of the test set's references, in a range of lengths, or of ``all``."""
    content = load_json(f"{folder}/bits.json", {"bits": Each(float)}, "recipes.claims.bits")
    return content["bits"].get(name)


def _stock(folder: str, name: str) -> Optional[float]:
    """Of the same model, exported to stock fairseq and translated there."""
    return _bleu(folder, name, "stock.json")


def _similarity(folder: str, name: str) -> Optional[float]:
    """Of encoder states at the first and the last offset."""
    content = load_json(f"{folder}/shift.json", {"similarities": Each(_NUMBERS)}, "posenc analyse")
    [matrix] = content["similarities"].values()
    return matrix[0][-1]


def _drop(folder: str, name: str) -> float:
    content = load_json(f"{folder}/swap.json", {"models": Each({"drop": float})}, "posenc analyse")
    [model] = content["models"].values()
    return model["drop"]


def _share(folder: str, name: str) -> Optional[float]:
    """Of the tokens of ``ranks positions``."""
    shape = {"frequency_ranks": [str], "positions": [str], "shares": _NUMBERS}
    content = load_json(f"{folder}/tokens.json", shape, "posenc analyse")
    rank, position = name.split()
    if rank not in content["frequency_ranks"] or position not in content["positions"]:
        return None
    row = content["shares"][content["frequency_ranks"].index(rank)]
    share = row[content["positions"].index(position)]
    return None if share is None else 100 * share


def _rank(folder: str, name: str) -> float:
    """Mean over the heads of layer 1: of ``matrix threshold``."""
    matrix, threshold = name.split()
    layers = {"layers": [{"ranks": {matrix: [float]}}]}
    file = f"{folder}/attention_{threshold}.json"
    content = load_json(file, {"models": Each(layers)}, "posenc analyse")
    [model] = content["models"].values()
    return statistics.mean(model["layers"][0]["ranks"][matrix])


def _probe(folder: str, name: str) -> Optional[float]:
    shape = {name: OrNull(float)}
    return load_json(f"{folder}/probes.json", shape, "recipes/claims/bert.sh")[name]


def _time(folder: str, name: str) -> float:
    """Of ``benchmark row``."""
    benchmark, row = name.split()
    path = f"{folder}/{benchmark}.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    try:
        ratios = [float(line["base"]) for line in lines if line["encoding"] == row]
        return 100 * statistics.mean(ratios)
    except (KeyError, TypeError, ValueError):
        message = f"{path} has no times of {row}, as recipes.benchmark writes them"
        raise UsageError(message) from None


def _plain(folder: str, name: str) -> Optional[float]:
    """At the end, of the validation set or of a range of lengths of the test set."""
    shape = {"curve": Each(float), "test": Each(float)}
    content = load_json(f"{folder}/plain.json", shape, "plain_transformer.py")
    return content["test"].get(name) if name else content["curve"][max(content["curve"], key=int)]


FIGURES: Dict[str, Tuple[Callable[[str, str], Optional[float]], str, str]] = {
    "BLEU": (_bleu, "score.json", "BLEU at {} words"),
    "stock": (_stock, "stock.json", "BLEU at {} words"),
    "bits": (_bits, "train.done", "validation loss"),
    "bits_of": (_bits_of, "bits.json", "bits per token at {} words"),
    "similarity": (_similarity, "shift.json", "similarity of encoder states"),
    "drop": (_drop, "swap.json", "BLEU lost at the end of the input"),
    "share": (_share, "tokens.json", "% of tokens scored above sinusoids{}"),
    "rank": (_rank, "attention_{}.json", "rank at threshold {}"),
    "probe": (_probe, "probes.json", "{}"),
    "time": (_time, "bert.csv", "time of a step, % ({})"),
    "plain": (_plain, "plain.json", "bits per token at {} words"),
}


def title(figure: str) -> str:
    """Return what a figure is called on the page."""
    metric, _, name = figure.partition(":")
    words = name.replace("_", " ")
    if metric == "share":
        # what a row's name tells already is left out
        words = " at positions {1}".format(*name.split()) if name.startswith("all ") else " "
    if metric == "rank":
        words = name.split()[1]
    if name.startswith("two_sentence"):  # with what segments, a row's name tells
        words = "accuracy on two sentences" + ", 5,000 updates" * name.endswith("5000")
    text = FIGURES[metric][2].format(words or "all")
    return (
        text.replace("at all words", "of all sentences").replace("masked lm", "masked-LM").strip()
    )
