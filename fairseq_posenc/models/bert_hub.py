"""Trained BERT models in Python, from text to words, labels, scores and answers."""

import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import FairseqDataset
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.roberta.model import RobertaModel
from fairseq.tasks.masked_lm import MaskedLMTask
from torch import Tensor, nn

from fairseq_posenc.criterions.question_answering import logits_of
from fairseq_posenc.criterions.sentence_prediction import outputs_of
from fairseq_posenc.data import sentence_folder
from fairseq_posenc.data.questions import InMemoryQuestions
from fairseq_posenc.data.windows import WindowDataset
from fairseq_posenc.errors import UsageError
from fairseq_posenc.metrics.spans import best_windows
from fairseq_posenc.models.hub_texts import MASK, Example, HubTexts, check_examples
from fairseq_posenc.tasks.question_answering import PosencQuestionAnsweringTask
from fairseq_posenc.tasks.sentence_prediction import PosencSentencePredictionTask

# of a batch, with padding, as posenc predict has it
MAX_TOKENS = 8192
_ASKED = "asked"


class Label(NamedTuple):
    """The most probable label, and the probabilities of all."""

    label: str
    probabilities: Dict[str, float]


class Answer(NamedTuple):
    """An answer: the characters ``start`` to ``end`` of the context, and the span's score."""

    text: str
    start: int
    end: int
    score: float


class BertHub(nn.Module):
    """A trained BERT model, its task, and the subwords of its data.

    What is given as one text or pair is answered by one result, a list by a list. Texts of all
    lengths may stand in one list; every result is that of the text alone.

    Args:
        task: of the checkpoint.
        model: of the checkpoint.
        folder: with the subword model of the training.
    """

    def __init__(self, task: Any, model: RobertaModel, folder: str):
        super().__init__()
        self.task = task
        self.model = model.eval()
        self.asks = isinstance(task, PosencQuestionAnsweringTask)
        self.texts = HubTexts(folder, task.source_dictionary, finer=self.asks)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def encode(self, text: str, second: Optional[str] = None) -> Tensor:
        """Return the tokens ``(length,)`` of ``<s> text </s>``, or ``<s> text </s> second </s>``.

        ``<mask>`` in a text is the token of that name.
        """
        return self.texts.sequence((text,) if second is None else (text, second))

    @torch.no_grad()
    def extract_features(self, tokens: Tensor) -> Tensor:
        """Return the last layer's states ``(batch, length, channels)``.

        Args:
            tokens: ``(length,)`` or ``(batch, length)``, as :meth:`encode` returns them, padded on
                the right.

        Raises:
            UsageError: there are more than the model has positions for.
        """
        tokens = tokens.reshape(-1, tokens.size(-1)).to(self.device)
        if tokens.size(1) > self.model.max_positions():
            raise UsageError(
                f"{tokens.size(1)} tokens are more than the model's {self.model.max_positions()}"
            )
        ends = tokens.eq(self.texts.dictionary.eos()).long()
        segments = (ends.cumsum(dim=1) - ends).clamp(max=1)
        return self.model(tokens, features_only=True, segments=segments)[0]

    @torch.no_grad()
    def fill_mask(self, text: Union[str, Sequence[str]], topk: int = 5) -> Any:
        """Return what ``<mask>`` may stand for.

        Args:
            text: with one ``<mask>``; or a list of such texts.
            topk: how many proposals.

        Returns:
            A list, best first: the text with the proposal in it, its probability, and the token
            itself. One that continues a word is joined to what stands before.

        Raises:
            UsageError: a text does not have one ``<mask>``, or is too long; the checkpoint is of no
                masked language model.
        """
        if not isinstance(self.task, MaskedLMTask):
            raise UsageError(
                f"fill_mask needs a masked language model; this one was trained with --task "
                f"{self.task.cfg._name}"
            )
        types = len(self.texts.dictionary)
        if not 1 <= topk <= types:
            raise UsageError(f"topk must be from 1 to {types}, not {topk}")
        single = isinstance(text, str)
        texts: List[str] = [text] if isinstance(text, str) else list(text)
        for one in texts:
            if one.count(MASK) != 1:
                raise UsageError(f"there must be one {MASK} in every text, not as in {one!r}")
        found: Dict[int, List[Tuple[str, float, str]]] = {}
        for sample in self._batches(self._examples([(one,) for one in texts])):
            masked = sample["net_input"]["src_tokens"].eq(self.task.mask_idx)
            scores = self.model(**sample["net_input"], masked_tokens=masked)[0].float()
            best = scores.softmax(dim=-1).topk(topk)
            rows = zip(sample["id"].tolist(), best.values.tolist(), best.indices.tolist())
            for number, chances, indices in rows:
                found[number] = self.texts.filled(texts[number], chances, indices)
        return found[0] if single else [found[number] for number in range(len(texts))]

    @torch.no_grad()
    def predict(
        self,
        first: Union[str, Sequence[Union[str, Tuple[str, str]]]],
        second: Optional[str] = None,
        cut: bool = False,
    ) -> Any:
        """Return what a fine-tuned model says of texts, pairs, or questions with their contexts.

        Args:
            first: a text or question, or a list: texts for tasks of one sentence, pairs for others.
            second: the second sentence, or the context, if ``first`` is a text.
            cut: cut what is too long, as in training. Contexts may have any length.

        Returns:
            A :class:`Label`, a score (regression), or an :class:`Answer`, ``None`` if there is
            none; a list of them for a list.

        Raises:
            UsageError: the checkpoint predicts nothing; sentences are too many, too few or too
                long.
        """
        single = isinstance(first, str)
        if not single and second is not None:
            raise UsageError("a list is given alone; second sentences are in its pairs")
        items: List[Any] = list(first)
        if single:
            items = [first if second is None else (first, second)]
        examples = [(item,) if isinstance(item, str) else tuple(item) for item in items]
        found: Sequence[Any]
        if self.asks:
            found = self._answers(examples)
        elif isinstance(self.task, PosencSentencePredictionTask):
            found = self._predictions(examples, cut)
        else:
            raise UsageError(
                f"this model was trained with --task {self.task.cfg._name}, which predicts "
                "nothing; use fill_mask, or fine-tune it first"
            )
        return found[0] if single else found

    def _predictions(self, examples: Sequence[Example], cut: bool) -> List[Union[Label, float]]:
        task = self.task
        check_examples(examples, len(sentence_folder.input_folders(task.cfg.data)))
        labels = task.description.labels
        found: Dict[int, Union[Label, float]] = {}
        for sample in self._batches(self._examples(examples, cut)):
            outputs = outputs_of(self.model, sample, task.cfg.classification_head_name).float()
            for number, row in zip(sample["id"].tolist(), outputs):
                chances = dict(zip(labels, row.softmax(dim=0).tolist()))
                best = int(row.argmax())
                found[number] = Label(labels[best], chances) if labels else float(row)
        return [found[number] for number in range(len(examples))]

    def _answers(self, examples: Sequence[Example]) -> List[Optional[Answer]]:
        check_examples(examples, 2)
        pairs = [(question, context) for question, context in examples]
        asked = InMemoryQuestions(pairs, self.texts.cut)
        windows = WindowDataset(asked, _ASKED, self.texts.dictionary, self.task.layout)
        self.task.datasets[_ASKED] = windows
        candidates = []
        for sample in self._batches(windows):
            candidates += self.task.candidates(logits_of(self.model, sample), sample)
        spans = [(windows.window(index).question, span) for index, span in candidates]
        scores = {(question, *span[:2]): span[2] for question, span in spans}
        found: List[Optional[Answer]] = [None] * len(pairs)
        for question, (first, last) in best_windows(spans).items():
            start, end = asked.offsets(question)[first, 0], asked.offsets(question)[last, 1]
            text = asked.span_text(question, first, last)
            found[question] = Answer(text, int(start), int(end), scores[question, first, last])
        return found

    def _examples(self, examples: Sequence[Example], cut: bool = False) -> FairseqDataset:
        limit = min(self.task.max_positions(), self.model.max_positions())
        return self.texts.examples(examples, limit, cut)

    def _batches(self, data: FairseqDataset) -> Iterator[Dict[str, Any]]:
        """Yield the batches of a data set, on the model's device."""
        most = max(MAX_TOKENS, int(max(data.sizes)))
        for indices in data.batch_by_size(data.ordered_indices(), max_tokens=most):
            sample = data.collater([data[int(index)] for index in indices])
            yield utils.apply_to_sample(lambda tensor: tensor.to(self.device), sample)


def load(folder: str, file: str, data: str, **overrides: Any) -> BertHub:
    """Load a checkpoint, see :meth:`fairseq_posenc.models.bert.PosencBertModel.from_pretrained`.

    Raises:
        UsageError: the checkpoint is missing, damaged or of no BERT model, or its data are.
    """
    path = os.path.join(folder, file)
    if not os.path.isfile(path):
        raise UsageError(f"there is no checkpoint {path}")
    if data.startswith("."):
        data = os.path.abspath(os.path.join(folder, data))
    if not os.path.isdir(data):
        raise UsageError(f"there is no folder {data} with the data of the training")
    overrides["data"] = data
    state = checkpoint_utils.load_checkpoint_to_cpu(path, overrides)
    arch = getattr((state.get("cfg") or {}).get("model"), "arch", None)
    if not issubclass(ARCH_MODEL_REGISTRY.get(arch, nn.Module), RobertaModel):
        raise UsageError(f"{path} is no BERT model, but one of --arch {arch}")
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [path], arg_overrides=overrides, state=state
    )
    return BertHub(task, models[0], data)
