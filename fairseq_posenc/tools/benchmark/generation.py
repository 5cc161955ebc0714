"""Beam search with random weights, all hypotheses of one length."""

from typing import Callable

import torch
from fairseq.models.transformer import TransformerModel
from fairseq.sequence_generator import SequenceGenerator

from fairseq_posenc.tools.benchmark.models import build_model
from fairseq_posenc.tools.benchmark.setting import PADDING, Setting
from fairseq_posenc.tools.benchmark.timing import Steps
from fairseq_posenc.tools.benchmark.weights import built

BEAM = 4


def prepare(setting: Setting) -> Steps:
    """Translate a batch of sources into hypotheses of the sources' length."""
    source = setting.draw_tokens(left=True)
    sample = {
        "net_input": {"src_tokens": source, "src_lengths": source.ne(PADDING).sum(dim=1)},
        "ntokens": source.numel(),
    }

    def contestant(model: TransformerModel) -> Callable[[], object]:
        model.eval()
        generator = SequenceGenerator(
            [model],
            model.decoder.dictionary,
            beam_size=BEAM,
            max_len_a=0,
            max_len_b=setting.length,
            min_len=setting.length,
        )
        return torch.no_grad()(lambda: generator.generate([model], sample))

    models = built(setting, lambda name: build_model(name, setting))
    return {name: contestant(model) for name, model in models.items()}
