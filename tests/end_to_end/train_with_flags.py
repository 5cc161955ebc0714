"""Train with every encoding and set of flags, as one of two workers: fairseq-train many times over.

usage: train_with_flags.py RANK PORT DATA FLAGS.json

The file has sets of flags by name, and the models to be trained with each, ``stock`` among them.
For each set and model, prints a line of JSON: the set, the model, and the losses and norms of the
gradients of the updates or the error.
"""

import contextlib
import copy
import json
import sys

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics
from fairseq_cli import train

import fairseq_posenc.models.transformer  # noqa: F401

STOCK = "stock"
COMMON = """--share-all-embeddings --optimizer adam --lr 0.003 --dropout 0.1 --attention-dropout 0.1
    --max-tokens 200 --max-update 2 --update-freq 2 --task translation --user-dir fairseq_posenc
    --cpu --num-workers 0 --no-progress-bar --no-save --disable-validation --no-last-checkpoints
    --distributed-backend gloo --distributed-no-spawn --distributed-world-size 2""".split()


class Stream:
    """Stands in for the only stream of a GPU."""

    def wait_stream(self, other):
        pass


def pretend_gpus():
    """Let what fairseq has made for GPUs alone run on the CPU: pytorch_ddp and fairscale's FSDP."""
    ddp = torch.nn.parallel.DistributedDataParallel
    start = ddp.__init__

    def on_cpu(self, *args, device_ids=None, output_device=None, **others):
        start(self, *args, **others)

    ddp.__init__ = on_cpu
    try:
        from fairscale.nn.data_parallel import fully_sharded_data_parallel as fairscale
    except ImportError:
        return
    stream, scatter = Stream(), torch.distributed._reduce_scatter_base
    set_up = fairscale.FullyShardedDataParallel._setup_streams

    def set_up_streams(self):
        set_up(self)
        self._streams.update(dict.fromkeys(["fp32_to_fp16", "all_gather", "post_backward"], stream))

    fairscale.FullyShardedDataParallel._setup_streams = set_up_streams
    fairscale._get_default_cuda_device = lambda module: torch.device("cpu")
    torch.distributed._reduce_scatter_base = lambda output, whole, **others: scatter(
        output, whole.flatten(), **others
    )
    torch.cuda.current_stream, torch.cuda.synchronize = lambda: stream, lambda: None
    torch.cuda.stream = contextlib.nullcontext
    torch.Tensor.record_stream = lambda self, stream: None
    torch.Tensor.cuda = lambda self: self


class Trainer(train.Trainer):
    """fairseq's, which notes the loss and the norm of the gradients of each update."""

    def train_step(self, samples, raise_oom=False):
        output = super().train_step(samples, raise_oom)
        meters = (metrics.get_meter("train_inner", name) for name in ("loss", "gnorm"))
        updates.append([float(meter.avg) for meter in meters])
        return output


def main(rank, port, data, file):
    """Train with all sets of flags."""
    pretend_gpus()
    train.Trainer = Trainer
    worker = ["--distributed-init-method", f"tcp://127.0.0.1:{port}", "--distributed-rank", rank]
    with open(file, encoding="utf-8") as opened:
        sets = json.load(opened)
    for flags, (words, chosen) in sets.items():
        ours = [model for model in chosen if model != STOCK]
        for kind, models in (("transformer_tiny", [STOCK]), ("posenc_transformer_tiny", ours)):
            # parsed once for all encodings, as it takes longer than the training
            sys.argv[1:] = [data, "--arch", kind, *COMMON, *worker, *words.split()]
            args = options.parse_args_and_arch(options.get_training_parser())
            parsed = convert_namespace_to_omegaconf(args)
            for model in models:
                del updates[:]
                cfg, found = copy.deepcopy(parsed), {"flags": flags, "model": model}
                if model != STOCK:
                    cfg.model.position_encoding = model
                try:
                    distributed.call_main(cfg, train.main)
                except Exception as error:
                    found["error"] = f"{type(error).__name__}: {error}"
                print(json.dumps({**found, "updates": updates}), file=sys.__stdout__, flush=True)


updates = []
if __name__ == "__main__":
    main(*sys.argv[1:])
