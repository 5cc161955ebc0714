"""The task ``posenc_question_answering``: SQuAD, XQuAD, MLQA and TyDiQA-GoldP."""

import json
import logging
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, TextIO, Tuple

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II, MISSING
from torch import Tensor

from fairseq_posenc.criterions.question_answering import (
    SPAN_HEAD,
    PosencQuestionAnsweringCriterion,
    logits_of,
)
from fairseq_posenc.data import subwords
from fairseq_posenc.data.questions import QuestionFolder
from fairseq_posenc.data.windows import WindowDataset, WindowLayout
from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics.answers import AnswerScorer
from fairseq_posenc.metrics.spans import best_spans, best_windows
from fairseq_posenc.options import option
from fairseq_posenc.tasks.fine_tuning import FineTuningTask

logger = logging.getLogger(__name__)

Candidate = Tuple[int, Tuple[int, int, float]]


@dataclass
class PosencQuestionAnsweringConfig(FairseqDataclass):
    """Options of the task; the defaults are those of XTREME."""

    data: str = option(MISSING, "folder of posenc prepare squad")
    max_positions: int = option(384, "max tokens per window")
    stride: int = option(128, "tokens of the context from one window to the next")
    max_query_length: int = option(64, "tokens of a question that are kept, from its beginning")
    max_answer_length: int = option(
        30, "max tokens per answer; small vocabularies, which cut words to many tokens, need more"
    )
    n_best: int = option(20, "starts and ends per window that answers are made of")
    seed: int = II("common.seed")
    train_subset: str = II("dataset.train_subset")


@register_task("posenc_question_answering", dataclass=PosencQuestionAnsweringConfig)
class PosencQuestionAnsweringTask(FineTuningTask):
    """Answers that are spans of a context, which is read in windows.

    Every split is scored by the rules it was prepared for.
    """

    predictions_suffix = "json"
    criterion = PosencQuestionAnsweringCriterion
    metric_names = main_metrics = ("f1", "exact_match")
    benchmark = "SQuAD"
    labels: Sequence[str] = ()

    def __init__(self, cfg: PosencQuestionAnsweringConfig, dictionary: Dictionary):
        super().__init__(cfg, dictionary)
        self.layout = WindowLayout(cfg.max_positions, cfg.stride, cfg.max_query_length)
        self._scorers: Dict[str, AnswerScorer] = {}
        self._validated = ""  # the split of the last validation step, which metric() is about

    @classmethod
    def setup_task(cls, cfg: PosencQuestionAnsweringConfig, **kwargs):
        """Check the options, and read the dictionary."""
        WindowLayout(cfg.max_positions, cfg.stride, cfg.max_query_length).check()
        if min(cfg.max_answer_length, cfg.n_best) < 1:
            raise UsageError(
                f"--max-answer-length {cfg.max_answer_length} and --n-best {cfg.n_best} must be 1 "
                "or more"
            )
        return cls(cfg, subwords.load_dictionary(cfg.data))

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Load a split."""
        training = self.is_training_set(split, combine)
        questions = QuestionFolder(self.cfg.data, split)
        seed = self.cfg.seed if training else None
        windows = WindowDataset(questions, split, self.dictionary, self.layout, seed)
        if not len(windows):
            raise UsageError(f"no answer of split '{split}' in {self.cfg.data} is at its place")
        golds = {q.id: [answer.text for answer in q.answers] for q in questions.questions}
        self._scorers[split] = AnswerScorer(golds, questions.metric, questions.language)
        longest = self.cfg.max_query_length
        cut = int((questions.sizes("question") > longest).sum())
        remark = f"; {cut} questions are cut to --max-query-length {longest}" if cut else ""
        logger.info(f"{split}: {len(questions)} questions in {len(windows)} windows{remark}")
        self.datasets[split] = windows
        return windows

    def add_head(self, model) -> None:
        """Add a head that finds spans."""
        if not hasattr(model, "register_span_head"):
            raise UsageError("--task posenc_question_answering needs --arch posenc_bert…")
        model.register_span_head(SPAN_HEAD)

    def valid_step(self, sample, model, criterion):
        """Validate on a batch, and keep the predictions of all workers."""
        self._validated = sample["split"]
        return super().valid_step(sample, model, criterion)

    def metric(self, name: str, predictions: Dict[int, Any]) -> float:
        """Return F1 or exact match in percent, of the best span of each window."""
        split = self._validated
        return self._scorers[split].score(self.answers(split, predictions.items()))[name]

    def predict(self, model, sample: Dict[str, Any]) -> List[Candidate]:
        """Return the best span of each window of a batch, see :meth:`candidates`."""
        return self.candidates(logits_of(model, sample), sample)

    def candidates(self, logits: Tensor, sample: Dict[str, Any]) -> List[Candidate]:
        """Return the best span of each window of a batch.

        Args:
            logits: ``(B, T, 2)`` scores as start and as end.
            sample: the batch.

        Returns:
            Number of the window, and: first and last token, counted in the whole context, and
            score (-inf: the window has no span).
        """
        windows = self.datasets[sample["split"]]
        masks = sample["answerable"], sample["beginnings"]
        spans = best_spans(logits, *masks, self.cfg.max_answer_length, self.cfg.n_best)
        scored_spans = []
        for index, start, end, score in zip(sample["id"].tolist(), *(s.tolist() for s in spans)):
            window = windows.window(index)
            shift = window.first - window.before
            scored_spans.append((index, (start + shift, end + shift, score)))
        return scored_spans

    def answers(self, split: str, candidates: Iterable[Candidate]) -> Dict[str, str]:
        """Return the answer to each question, the best of its windows, by the question's id.

        It is empty where the context has no tokens.
        """
        windows = self.datasets[split]
        spans = [(windows.window(index).question, span) for index, span in candidates]
        best, questions = best_windows(spans), windows.split.questions
        return {
            questions[number].id: windows.split.span_text(number, *best[number])
            if number in best
            else ""
            for number in sorted({number for number, _ in spans})
        }

    def score(self, split: str, predictions: List[Candidate]) -> Dict[str, float]:
        """Return F1 and exact match of a whole split in percent; nothing if it has no answers."""
        self.check_whole(split, predictions)
        if not self.datasets[split].split.answered:
            return {}
        return self._scorers[split].score(self.answers(split, predictions))

    def per_example(self, split: str, predictions: List[Candidate]) -> Dict[str, List[float]]:
        """Return F1 and exact match of every answered question, 0 to 1."""
        return self._scorers[split].per_question(self.answers(split, predictions))

    def chance(self, split: str, predictions: List[Candidate]) -> Optional[float]:
        """Return F1 of the answers where other questions of the same context had been asked."""
        questions = self.datasets[split].split.questions
        contexts = {question.id: question.context for question in questions}
        return self._scorers[split].chance(self.answers(split, predictions), contexts)

    def gold(self, split: str) -> Mapping[str, Sequence[str]]:
        """Return the gold answers of a split by the questions' ids."""
        return self._scorers[split].golds

    def write(self, split: str, predictions: List[Candidate], stream: TextIO) -> None:
        """Write the answers as the official scripts take them: JSON, id -> text."""
        json.dump(self.answers(split, predictions), stream, ensure_ascii=False, indent=1)
        stream.write("\n")
