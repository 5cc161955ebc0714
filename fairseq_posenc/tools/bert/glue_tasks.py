"""The sentence classification tasks of GLUE and XTREME, and the columns of their files."""

from dataclasses import dataclass, field
from typing import Dict, Tuple


@dataclass(frozen=True)
class GlueTask:
    """What tells one task from another.

    Args:
        name: as GLUE writes it, and its folder in the official download.
        sentences: names of the columns that hold the sentence or the two sentences.
        label: name of the column that holds the label or the score.
        labels: in the order of their numbers; none for a regression.
        metrics: see :data:`fairseq_posenc.metrics.glue.METRICS`.
        best: the one that chooses checkpoints.
        labelled: split -> file.
        unlabelled: split -> the places of a file, of which the first that is there is read.
        columns: names of the columns of labelled files that begin without a line of names.
        scores: lowest and highest score of a regression.
        language: name of the column of languages, each of which becomes a split of its own.
        may_be_empty: whether the official files hold empty sentences; those without labels may.
        original: what stands in for the files: labelled training and test text, and the places of
            a file with the numbers of the development pairs among the training text.
        xtreme: split -> files of XTREME's download, as a pattern whose group is the language;
            without a line of names, with the sentences and, where it is known, the label.
    """

    name: str
    sentences: Tuple[str, ...]
    label: str
    labels: Tuple[str, ...]
    metrics: Tuple[str, ...] = ("accuracy",)
    best: str = "accuracy"
    labelled: Dict[str, str] = field(
        default_factory=lambda: {"train": "train.tsv", "valid": "dev.tsv"}
    )
    unlabelled: Dict[str, Tuple[str, ...]] = field(default_factory=lambda: {"test": ("test.tsv",)})
    columns: Tuple[str, ...] = ()
    scores: Tuple[float, float] = (0.0, 5.0)
    language: str = ""
    may_be_empty: bool = False
    original: Tuple[str, ...] = ()
    xtreme: Dict[str, str] = field(default_factory=dict)


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("entailment", "neutral", "contradiction")
_ACCURACY_AND_F1 = ("accuracy", "f1", "accuracy_and_f1")

TASKS: Dict[str, GlueTask] = {
    task.name: task
    for task in (
        GlueTask(
            "CoLA", ("sentence",), "label", ("0", "1"),
            metrics=("matthews", "accuracy"), best="matthews",
            columns=("source", "label", "mark", "sentence"),
        ),
        GlueTask("SST-2", ("sentence",), "label", ("0", "1")),
        GlueTask(
            "MRPC", ("#1 String", "#2 String"), "Quality", ("0", "1"),
            metrics=_ACCURACY_AND_F1, best="f1",
            original=(
                "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "mrpc_dev_ids.tsv",
                "dev_ids.tsv",
            ),
        ),
        GlueTask(
            "QQP", ("question1", "question2"), "is_duplicate", ("0", "1"),
            metrics=_ACCURACY_AND_F1, may_be_empty=True,
        ),
        GlueTask(
            "STS-B", _PAIR, "score", (),
            metrics=("pearson", "spearman", "pearson_and_spearman"), best="spearman",
        ),
        GlueTask(
            "MNLI", _PAIR, "gold_label", _INFERENCE,
            labelled={
                "train": "train.tsv", "valid": "dev_matched.tsv", "valid1": "dev_mismatched.tsv",
            },
            unlabelled={
                "test": ("test_matched.tsv",),
                "test1": ("test_mismatched.tsv",),
                # the diagnostic set, where GLUE's own and older downloads have it
                "ax": ("AX.tsv", "../AX.tsv", "../diagnostic/diagnostic.tsv"),
            },
            xtreme={"train": r"train-(en)\.tsv", "valid": r"dev-(en)\.tsv"},
        ),
        GlueTask("QNLI", ("question", "sentence"), "label", _ENTAILMENT),
        GlueTask("RTE", _PAIR, "label", _ENTAILMENT),
        GlueTask("WNLI", _PAIR, "label", ("0", "1")),
        GlueTask(
            "XNLI", _PAIR, "gold_label", _INFERENCE,
            labelled={"valid": "xnli.dev.tsv", "test": "xnli.test.tsv"}, unlabelled={},
            language="language",
            # not test-de-en.tsv, which XTREME's translations into English are called
            xtreme={split: rf"{file}-([a-z]+(?:-[A-Z]\w+)?)\.tsv"
                    for split, file in (("valid", "dev"), ("test", "test"))},
        ),
    )
}  # fmt: skip
