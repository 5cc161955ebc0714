"""Trained BERT models in Python, from text to words, labels, scores and answers."""

import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import FairseqDataset, ListDataset
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.roberta.model import RobertaModel
from fairseq.tasks.masked_lm import MaskedLMTask
from torch import Tensor, nn

from fairseq_posenc.criterions.sentence_prediction import outputs_of
from fairseq_posenc.data import subwords
from fairseq_posenc.data.pairs import PairDataset
from fairseq_posenc.data.questions import InMemoryQuestions
from fairseq_posenc.data.sentence_folder import input_folders
from fairseq_posenc.data.windows import WindowDataset
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.loading import check_folder
from fairseq_posenc.metrics.spans import best_windows
from fairseq_posenc.tasks.question_answering import PosencQuestionAnsweringTask
from fairseq_posenc.tasks.sentence_prediction import PosencSentencePredictionTask

MASK = "<mask>"
MAX_TOKENS = 8192  # of a batch, with padding, as in posenc predict
_SPLIT = "in memory"
Example = Tuple[str, ...]  # one text, or the two of a pair


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

    Task and model are those of the checkpoint; the folder has the subword model of the training.
    """

    def __init__(self, task: Any, model: RobertaModel, folder: str):
        super().__init__()
        self.task = task
        self.model = model.eval()
        self.dictionary = task.source_dictionary
        self.subwords = subwords.load(folder)
        self._answers_questions = isinstance(task, PosencQuestionAnsweringTask)
        self._cutter: Any = self.subwords
        if self._answers_questions:  # answers may begin or end inside of subwords
            self._cutter = subwords.AnswerAlignedSubwords(self.subwords)

    @classmethod
    def load(cls, folder: str, file: str, data: str, options: Dict[str, Any]) -> "BertHub":
        """Load a checkpoint, see :meth:`PosencBertModel.from_pretrained`."""
        path = os.path.join(check_folder(folder), file)
        if not os.path.isfile(path):
            raise UsageError(f"there is no checkpoint {path}")
        if data.startswith("."):
            data = os.path.abspath(os.path.join(folder, data))
        check_folder(data, "the data of the training")
        options = {**options, "data": data}
        state = checkpoint_utils.load_checkpoint_to_cpu(path, options)
        arch = getattr((state.get("cfg") or {}).get("model"), "arch", None)
        if not issubclass(ARCH_MODEL_REGISTRY.get(arch, nn.Module), RobertaModel):
            raise UsageError(f"{path} is not a BERT model, but one of --arch {arch}")
        models, _, task = checkpoint_utils.load_model_ensemble_and_task(
            [path], arg_overrides=options, state=state
        )
        return cls(task, models[0], data)

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.model.parameters()).device

    def encode(self, text: str, second: Optional[str] = None) -> Tensor:
        """Return the tokens ``(length,)`` of ``<s> text </s>``, or ``<s> text </s> second </s>``.

        ``<mask>`` in a text is the token of that name.
        """
        texts = (text,) if second is None else (text, second)
        return torch.cat([torch.tensor([self.dictionary.bos()]), *map(self._sentence, texts)])

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
        # <s> a </s> b </s>: 0 up to the first </s>, 1 behind it, (batch, length)
        ends = tokens.eq(self.dictionary.eos()).long()
        segments = (ends.cumsum(dim=1) - ends).clamp(max=1)
        return self.model(tokens, features_only=True, segments=segments)[0]

    @torch.no_grad()
    def fill_mask(self, text: Union[str, Sequence[str]], topk: int = 5) -> Any:
        """Return the most probable tokens for ``<mask>``.

        Args:
            text: with one ``<mask>``; or a list of such texts.
            topk: how many proposals.

        Returns:
            A list, best first: the text with the proposal in it, its probability, and the token
            itself. One that continues a word is joined to what stands before.

        Raises:
            UsageError: a text does not have one ``<mask>``, or is too long; the model is not a
                masked language model.
        """
        if not isinstance(self.task, MaskedLMTask):
            raise UsageError(
                f"fill_mask needs a masked language model; this one was trained with --task "
                f"{self.task.cfg._name}"
            )
        if not 1 <= topk <= len(self.dictionary):
            raise UsageError(f"topk must be from 1 to {len(self.dictionary)}, not {topk}")
        texts: List[str] = [text] if isinstance(text, str) else list(text)
        for masked_text in texts:
            if masked_text.count(MASK) != 1:
                raise UsageError(
                    f"there must be one {MASK} in every text, not as in {masked_text!r}"
                )
        if not texts:
            return []
        proposals: Dict[int, List[Tuple[str, float, str]]] = {}
        for sample in self._batches(self._dataset([(masked_text,) for masked_text in texts])):
            masked = sample["net_input"]["src_tokens"].eq(self.task.mask_idx)
            scores = self.model(**sample["net_input"], masked_tokens=masked)[0].float()
            best = scores.softmax(dim=-1).topk(topk)
            rows = zip(sample["id"].tolist(), best.values.tolist(), best.indices.tolist())
            for number, chances, indices in rows:
                filled = (self._fill(texts[number], index) for index in indices)
                proposals[number] = [
                    (filled_text, p, token) for (filled_text, token), p in zip(filled, chances)
                ]
        return proposals[0] if isinstance(text, str) else [proposals[n] for n in range(len(texts))]

    def _fill(self, text: str, index: int) -> Tuple[str, str]:
        """Return a text with a token for ``<mask>``, and the token."""
        before, after = text.split(MASK)
        token = self.dictionary[index]
        # after other text, a piece shows whether it begins a word or continues one
        shown = self.subwords.decode(["a", token])[1:].strip()
        before = before if self.subwords.begins_word(token) else before.rstrip()
        return before + shown + after, token

    @torch.no_grad()
    def predict(
        self,
        first: Union[str, Sequence[Union[str, Tuple[str, str]]]],
        second: Optional[str] = None,
        cut: bool = False,
    ) -> Any:
        """Return a fine-tuned model's predictions for texts, pairs, or questions with contexts.

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
        if not self._answers_questions and not isinstance(self.task, PosencSentencePredictionTask):
            raise UsageError(
                f"this model was trained with --task {self.task.cfg._name}, which predicts "
                "nothing; use fill_mask, or fine-tune it first"
            )
        if isinstance(first, str):
            examples: List[Example] = [(first,) if second is None else (first, second)]
        elif second is not None:
            raise UsageError("a list is given alone; second sentences are in its pairs")
        else:
            examples = [(texts,) if isinstance(texts, str) else tuple(texts) for texts in first]
        number = 2 if self._answers_questions else len(input_folders(self.task.cfg.data))
        for example in examples:
            if len(example) != number:
                expected = "a pair of texts" if number == 2 else "one text"
                raise UsageError(f"the model takes {expected} at a time, not {len(example)}")
        predictions: List[Any] = []
        if not examples:
            return predictions
        if self._answers_questions:
            predictions = self._answer(examples)
        else:
            predictions = self._judge(examples, cut)
        return predictions[0] if isinstance(first, str) else predictions

    def _judge(self, examples: Sequence[Example], cut: bool) -> List[Any]:
        """Return labels or scores of sentences or pairs."""
        labels, head = self.task.description.labels, self.task.cfg.classification_head_name
        predictions: Dict[int, Union[Label, float]] = {}
        for sample in self._batches(self._dataset(examples, cut)):
            outputs = outputs_of(self.model, sample, head).float()
            for number, row in zip(sample["id"].tolist(), outputs):
                chances = dict(zip(labels, row.softmax(dim=0).tolist()))
                predictions[number] = Label(labels[row.argmax()], chances) if labels else float(row)
        return [predictions[number] for number in range(len(examples))]

    def _answer(self, examples: Sequence[Example]) -> List[Optional[Answer]]:
        """Return the answers to questions, each with its context, which is read in windows."""
        asked = InMemoryQuestions(examples, self._cut)
        windows = WindowDataset(asked, _SPLIT, self.dictionary, self.task.layout)
        self.task.datasets[_SPLIT] = windows
        spans = []
        for sample in self._batches(windows):
            for index, span in self.task.predict(self.model, sample):
                spans.append((windows.window(index).question, span))
        scores = {(question, *span[:2]): span[2] for question, span in spans}
        answers: List[Optional[Answer]] = [None] * len(examples)
        for question, (first, last) in best_windows(spans).items():
            start, end = asked.offsets(question)[first, 0], asked.offsets(question)[last, 1]
            text = asked.span_text(question, first, last)
            answers[question] = Answer(text, int(start), int(end), scores[question, first, last])
        return answers

    def _cut(self, text: str) -> Tuple[Tensor, List[Tuple[int, int]]]:
        """Return the tokens ``(length,)`` of a text and the characters that each stands for."""
        subwords, offsets = self._cutter.encode_with_offsets(text)
        return torch.tensor([self.dictionary.index(p) for p in subwords], dtype=torch.long), offsets

    def _sentence(self, text: str) -> Tensor:
        """Return the tokens ``(length,)`` of a text, where ``<mask>`` is one, and ``</s>``."""
        first, *following = text.split(MASK)
        parts = [self._cut(first)[0]]
        for part in following:
            subwords = [MASK, *self.subwords.encode(part, after_special=True)]
            parts.append(torch.tensor([self.dictionary.index(piece) for piece in subwords]))
        return torch.cat([*parts, torch.tensor([self.dictionary.eos()])])

    def _dataset(self, examples: Sequence[Example], cut: bool = False) -> PairDataset:
        """Return examples, all of one text or all of two, as the tasks have them.

        Raises:
            UsageError: one is too long, and ``cut`` is not set.
        """
        limit = min(self.task.max_positions(), self.model.max_positions())
        columns = [[self._sentence(text) for text in column] for column in zip(*examples)]
        for number, tokens in enumerate(zip(*columns)):
            length = 1 + sum(map(len, tokens))
            if length > limit and not cut:
                raise UsageError(
                    f"input {number + 1} of {len(examples)} has {length} tokens, more than the "
                    f"{limit} that the model was trained for: {' '.join(examples[number])[:40]!r}…"
                )
        inputs = [ListDataset(column, [len(tokens) for tokens in column]) for column in columns]
        return PairDataset(inputs, None, self.dictionary, limit)

    def _batches(self, data: FairseqDataset) -> Iterator[Dict[str, Any]]:
        """Yield the batches of a data set, on the model's device."""
        most = max(MAX_TOKENS, int(max(data.sizes)))
        for indices in data.batch_by_size(data.ordered_indices(), max_tokens=most):
            sample = data.collater([data[int(index)] for index in indices])
            yield utils.apply_to_sample(lambda tensor: tensor.to(self.device), sample)
