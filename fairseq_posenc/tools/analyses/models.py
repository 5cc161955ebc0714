"""Trained models and the data they read, for the analyses."""

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np
import torch
from fairseq import utils
from fairseq.data import FairseqDataset
from fairseq.tasks.translation import TranslationTask
from torch import Tensor
from tqdm import tqdm

from fairseq_posenc.encodings.abs_scalar import AbsScalar
from fairseq_posenc.encodings.learned import Learned
from fairseq_posenc.encodings.tupe import Tupe
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.transformer_encoder import PosencTransformerEncoder
from fairseq_posenc.tasks.multilingual import PosencMultilingualTask
from fairseq_posenc.tools.bert.predict import load_any
from fairseq_posenc.tools.scores.texts import UNKNOWN, Languages


@dataclass
class LoadedModel:
    """A model in evaluation, on the device where it is run, and its task."""

    name: str
    model: Any
    task: Any

    @property
    def encoder(self) -> PosencTransformerEncoder:
        """The stack of layers that reads the source, of translation models and of BERT."""
        encoder = getattr(self.model, "encoder", None)  # a language model has a decoder alone
        encoder = getattr(encoder, "sentence_encoder", encoder)
        if not isinstance(encoder, PosencTransformerEncoder):
            raise UsageError(
                f"{self.name} is a {type(self.model).__name__}; this analysis needs the encoder of "
                "--arch posenc_transformer or posenc_bert"
            )
        return encoder

    @property
    def signature(self) -> Optional[str]:
        """The line ``position:…`` that names the encoding; None for a stock model."""
        encoder = getattr(self.model.encoder, "sentence_encoder", self.model.encoder)
        return getattr(encoder.cfg, "position_signature", None)

    @property
    def table_size(self) -> Optional[int]:
        """How many positions the encoder's encoding has rows for; None if it needs none."""
        encoding = self.encoder.embed_positions
        has_rows = isinstance(encoding, (AbsScalar, Learned, Tupe))
        return encoding.stack.max_length if has_rows else None

    def pairs(self, subset: str) -> FairseqDataset:
        """Return a split of the sentence pairs."""
        if not isinstance(self.task, (TranslationTask, PosencMultilingualTask)):
            raise UsageError(f"{self.name} is not a translation model, and this analysis needs one")
        try:
            self.task.load_dataset(subset)
        except FileNotFoundError as error:
            raise UsageError(f"there is no binarised '{subset}' set: {error}") from None
        return self.task.dataset(subset)

    def inputs(self, sources: Sequence[Tensor]) -> FairseqDataset:
        """Return a data set of sources alone, which end with EOS and have no BOS yet."""
        lengths = [len(source) for source in sources]
        return self.task.build_dataset_for_inference(list(sources), lengths)

    def batches(self, dataset: FairseqDataset, max_tokens: int) -> Iterator[Dict[str, Any]]:
        """Yield the batches of a data set on the model's device, behind a progress bar.

        A sentence of more than ``max_tokens`` is a batch of its own.
        """
        longest = max(dataset.num_tokens(index) for index in range(len(dataset)))
        try:
            batches = self.task.get_batch_iterator(
                dataset,
                max_tokens=max(max_tokens, longest),
                max_positions=self.model.max_positions(),
            ).next_epoch_itr(shuffle=False)
        except Exception as error:  # fairseq raises just that
            raise UsageError(f"{self.name}: {error}") from error
        on_gpu = next(self.model.parameters()).is_cuda
        for sample in tqdm(batches, desc=self.name, unit=" batches", leave=False):
            yield utils.move_to_cuda(sample) if on_gpu else sample


def load_models(
    models: Sequence[str], data: str, cpu: bool, languages: Languages = UNKNOWN
) -> Iterator[LoadedModel]:
    """Load models ``NAME=CHECKPOINT`` one after another, so that one at a time is in memory.

    Their tasks look at the binarised folder ``data``, and at its text of ``languages``.
    """
    paths: Dict[str, str] = {}
    for argument in models:
        name, _, path = argument.partition("=")
        if not (name and path):
            raise UsageError(f"expected NAME=FILE, not {argument}")
        if name in paths:
            raise UsageError(f"there are two of the name {name}; give each its own")
        paths[name] = path
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    for name, path in paths.items():
        model, task, _ = load_any(path, data, languages)
        yield LoadedModel(name, model.to(device).eval(), task)


def sample(count: int, limit: Optional[int], seed: int) -> List[int]:
    """Return ``limit`` of the numbers below ``count`` in random order, or all if None."""
    order = np.random.RandomState(seed).permutation(count)
    return [int(index) for index in (order if limit is None else order[:limit])]


def without_bos(source: Tensor, bos: int) -> Tensor:
    """Return a source as it was binarised: the task puts BOS before it again if need be."""
    return source[1:] if len(source) and int(source[0]) == bos else source
