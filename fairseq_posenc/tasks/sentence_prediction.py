"""The task ``posenc_sentence_prediction``: GLUE and XNLI, scored by their own metrics."""

import logging
from dataclasses import dataclass
from typing import Any, Dict, List, TextIO

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II, MISSING

from fairseq_posenc.criterions.sentence_prediction import (
    PosencSentencePredictionCriterion,
    decisions,
    outputs_of,
)
from fairseq_posenc.data import sentence_folder, subwords
from fairseq_posenc.data.pairs import PairDataset
from fairseq_posenc.data.sentence_folder import Description
from fairseq_posenc.errors import UsageError, printable
from fairseq_posenc.metrics import glue
from fairseq_posenc.options import option
from fairseq_posenc.tasks.fine_tuning import FineTuningTask, Predictions

logger = logging.getLogger(__name__)

_SHORTEST = 5


@dataclass
class PosencSentencePredictionConfig(FairseqDataclass):
    """Options of the task, of the names that fairseq's ``sentence_prediction`` has for them."""

    data: str = option(MISSING, "folder of posenc prepare glue")
    classification_head_name: str = option(
        "sentence_classification_head", "name of the classification head to use"
    )
    max_positions: int = option(512, "max tokens per example; longer ones are cut as in BERT")
    no_shuffle: bool = option(False, "keep the examples in the order of the files")
    seed: int = II("common.seed")
    train_subset: str = II("dataset.train_subset")


@register_task("posenc_sentence_prediction", dataclass=PosencSentencePredictionConfig)
class PosencSentencePredictionTask(FineTuningTask):
    """Classification or regression of sentences and sentence pairs.

    Labels, metrics and whether it is a regression come from the folder's ``task.json``.
    """

    predictions_suffix = "tsv"
    criterion = PosencSentencePredictionCriterion

    def __init__(
        self, cfg: PosencSentencePredictionConfig, dictionary: Dictionary, description: Description
    ):
        super().__init__(cfg, dictionary)
        self.description = description
        self.metric_names = description.metrics
        self.benchmark = description.name
        self.main_metrics = [description.best]
        self.labels = description.labels

    @classmethod
    def setup_task(cls, cfg: PosencSentencePredictionConfig, **kwargs):
        """Check the options, and read the description and the dictionary."""
        description = Description.read(cfg.data)
        dictionary = subwords.load_dictionary(cfg.data)
        for folder in sentence_folder.input_folders(cfg.data):
            if subwords.load_dictionary(folder).symbols != dictionary.symbols:
                raise UsageError(
                    f"the dictionaries of {folder} and {cfg.data} differ; prepare the folder again "
                    "with posenc prepare glue"
                )
        if cfg.max_positions < _SHORTEST:
            raise UsageError(
                f"--max-positions {cfg.max_positions} leaves no room for words; give at least "
                f"{_SHORTEST}"
            )
        task = cls(cfg, dictionary, description)
        logger.info(f"{description.name}: {description.kind}, {len(dictionary)} types")
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Load a split."""
        splits = self.description.splits
        if split not in splits:
            raise UsageError(
                f"{self.cfg.data} has no split '{split}'; there are {', '.join(splits)}"
            )
        training = self.is_training_set(split, combine)
        inputs = sentence_folder.inputs(self.cfg.data, split)
        targets = sentence_folder.targets(self.cfg.data, split, len(self.description.labels))
        lengths = {len(part) for part in inputs + ([] if targets is None else [targets])}
        if len(lengths) != 1 or not inputs:
            raise UsageError(f"{self.cfg.data} is incomplete ('{split}'); prepare the folder again")
        self.datasets[split] = pairs = PairDataset(
            inputs,
            targets,
            self.dictionary,
            limit=self.cfg.max_positions,
            seed=self.cfg.seed if training else None,
            in_order=self.cfg.no_shuffle,
        )
        if pairs.cut:
            logger.info(
                f"{split}: {pairs.cut} of {len(pairs)} examples have more tokens than "
                f"--max-positions {self.cfg.max_positions}, and are cut"
            )
        return pairs

    def add_head(self, model) -> None:
        """Add a classification head with an output per label, or a single one for scores."""
        model.register_classification_head(
            self.cfg.classification_head_name, num_classes=len(self.description.labels) or 1
        )

    def metric(self, name: str, predictions: Dict[int, Any]) -> float:
        """Return a metric in percent, of pairs of a prediction and its target."""
        predicted, targets = zip(*predictions.values())
        return glue.score([name], targets, predicted)[name]

    def predict(self, model, sample: Dict[str, Any]) -> Predictions:
        """Return (example's number, number of its label or its score) for a batch."""
        outputs = outputs_of(model, sample, self.cfg.classification_head_name)
        decided = decisions(outputs, self.description.regression)
        return list(zip(sample["id"].tolist(), decided.tolist()))

    def score(self, split: str, predictions: Predictions) -> Dict[str, float]:
        """Return the metrics of a whole split in percent; nothing if it has no labels."""
        self.check_whole(split, predictions)
        targets = self.datasets[split].targets
        if targets is None:
            return {}
        ordered = [prediction for _, prediction in sorted(predictions)]
        return glue.score(self.description.metrics, targets.numpy(), ordered)

    def per_example(self, split: str, predictions: Predictions) -> Dict[str, List[float]]:
        """Return target and prediction of every example, in their order."""
        ordered = [prediction for _, prediction in sorted(predictions)]
        return {"target": self.gold(split), "prediction": ordered}

    def gold(self, split: str) -> List[float]:
        """Return the targets of a split: numbers of labels, or scores."""
        return self.datasets[split].targets.tolist()

    def write(self, split: str, predictions: Predictions, stream: TextIO) -> None:
        """Write predictions as GLUE takes them: row of the file, from 0, and label or score."""
        labels, skipped = self.description.labels, set(self.description.skipped.get(split, ()))
        rows = range(len(predictions) + len(skipped))
        stream.write("index\tprediction\n")
        for row, (_, prediction) in zip((r for r in rows if r not in skipped), sorted(predictions)):
            stream.write(f"{row}\t{labels[prediction] if labels else prediction}\n")

    def state_dict(self) -> Dict[str, Any]:
        """Return the properties of a folder that a checkpoint's folder must share."""
        labels = {"labels": self.description.labels, "benchmark": self.benchmark}
        return {**labels, **super().state_dict()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Refuse as the base does, and warn of a model that was trained for another task."""
        trained_for = str(state_dict.get("benchmark", self.benchmark))
        super().load_state_dict({**state_dict, "benchmark": self.benchmark})
        # what is for tests alone, as XNLI, is for models of another
        if trained_for != self.benchmark and "train" in self.description.splits:
            names = printable(trained_for), self.cfg.data, self.benchmark
            logger.warning("the model was fine-tuned for %s, and %s is of %s", *names)
