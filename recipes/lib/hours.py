"""GPU-hours of the papers' trainings, by the steps that one H100 took.

    python -m recipes.lib.hours

docs/speed.md ("On a GPU") has the measured steps: of stock fairseq for 32,768 tokens, and each
encoding's ratio to it. A training's hours are its tokens by these. Not in them: dropout, 3 to 8
GPUs' communication, reading, validation and generation. A test holds the pages to this.
"""

import re
from pathlib import Path
from typing import Dict, Sequence, Tuple

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
TOKENS = 32768  # of a measured step
# a step of 4,096 tokens waits for the host: the least and most that speed.md tells
HOST_SECONDS = 0.035, 0.062
# examples of GLUE's training files and epochs of glue/run.sh; SQuAD's windows are about as many as
# its questions
GLUE = {
    "MNLI": (392702, 5), "QQP": (363846, 5), "QNLI": (104743, 5), "SST-2": (67349, 5),
    "CoLA": (8551, 10), "STS-B": (5749, 10),
}  # fmt: skip
XTREME = {"XNLI": (392702, 3), "SQuAD": (87599, 3)}
BATCH, RUNS = 32, 20  # of a fine-tuning, and of a model on each task: 4 learning rates, 5 seeds


def measured() -> Tuple[Dict[str, float], Dict[str, Dict[str, float]]]:
    """Return a stock step's seconds by column, and the ratios to it by encoding and column."""
    section = PAGE.read_text(encoding="utf-8").partition("## On a GPU")[2].partition("\n## ")[0]
    taken = re.search(r"Stock fairseq takes (\d+), (\d+) and (\d+) ms", section)
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    if taken is None or not table:
        raise ValueError(f"{PAGE}: no steps of a GPU")
    columns = table[0][1:4]
    seconds = {column: int(ms) / 1000 for column, ms in zip(columns, taken.groups())}
    ratios = {row[0]: dict(zip(columns, map(float, row[1:4]))) for row in table[2:]}
    return seconds, ratios


def hours(encodings: Sequence[str], column: str, updates: int, tokens: int) -> float:
    """Return the H100-hours of a training of each encoding.

    Args:
        encodings: of the trainings; one that stands twice is trained twice.
        column: whose steps are taken: ``training, 32``, ``training, 512`` or ``BERT, 128``.
        updates, tokens: updates of a training, and tokens per update.
    """
    seconds, ratios = measured()
    step = seconds[column] * tokens / TOKENS
    return sum(ratios[encoding][column] for encoding in encodings) * step * updates / 3600


def fine_tuning(tasks: Dict[str, Tuple[int, int]]) -> Tuple[float, float]:
    """Return the hours of a model's fine-tunings at the least and the most time of a step.

    Args:
        tasks: examples and epochs by task.
    """
    updates = RUNS * sum(examples * epochs / BATCH for examples, epochs in tasks.values())
    low, high = (updates * seconds / 3600 for seconds in HOST_SECONDS)
    return low, high


def figures() -> Dict[str, str]:
    """Return what the pages print, by what it is of."""
    short, long, bert = "training, 32", "training, 512", "BERT, 128"
    first_try = {
        name: f"{hours([name], short, 30600, TOKENS):.2f}" for name in ("sinusoidal", "shaw")
    }
    shape = hours(
        ["sinusoidal", "shaw", "shape"] * 5 + ["sinusoidal", "shaw", "shape", "shape"],
        short, 200000, 112000,
    ) + hours(["sinusoidal", "shape"], long, 200000, 112000)  # fmt: skip
    four = ["learned", "shaw", "tupe", "rel_scalar"]
    english = {name: hours([name], bert, 500000, 4096 * 128) for name in four}
    glue, xtreme = fine_tuning(GLUE), fine_tuning(XTREME)
    return {
        "first try of a translation: sinusoids": first_try["sinusoidal"],
        "first try of a translation: shaw": first_try["shaw"],
        "SHAPE's 21 trainings": f"{shape:.0f}",
        "SHAPE's 21 trainings on eight GPUs, days": f"{shape / 8 / 24:.1f}",
        "Chen et al., a translation": " to ".join(
            f"{hours([name], short, 100000, 25000):.1f}" for name in ("sinusoidal", "shaw")
        ),
        "Chen et al., Table 4's pre-trainings": f"{sum(english.values()):.0f}",
        "Chen et al., pre-training of shaw": f"{english['shaw']:.0f}",
        "Chen et al., pre-training of learned": f"{english['learned']:.0f}",
        "a row of pretrain_english.sh --preset gpu": " to ".join(
            f"{hours([name], bert, 30000, 512 * 128):.1f}" for name in ("learned", "shaw")
        ),
        "GLUE, a model's fine-tunings": f"{glue[0]:.0f} to {glue[1]:.0f}",
        "XTREME, a model's fine-tunings": f"{xtreme[0]:.0f} to {xtreme[1]:.0f}",
        "Chen et al., a multilingual pre-training": " to ".join(
            f"{hours([name], bert, 125000, 4096 * 512):.0f}" for name in ("learned", "shaw")
        ),
        "a row of pretrain_multilingual.sh --preset gpu": " to ".join(
            f"{hours([name], bert, 7600, 512 * 512):.1f}" for name in ("learned", "shaw")
        ),
    }


if __name__ == "__main__":
    for _label, _figure in figures().items():
        print(f"{_label}: {_figure} H100-hours" if "days" not in _label else f"{_label}: {_figure}")
