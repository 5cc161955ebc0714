"""A part of gpu_check.py: does fairseq-train give on a GPU, in every precision, the CPU's losses?

Run by itself it is one precision: ``gpu_programs.py DATA FLAGS…`` trains every encoding, and
prints a line of JSON for each: the losses of its updates, or the error.
"""

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq_cli import train

import fairseq_posenc.models.transformer  # noqa: F401
from fairseq_posenc.encodings import names

# The flags of each precision.
PRECISIONS = {
    "float32": "",
    "bf16": "--bf16",
    "memory-efficient bf16": "--memory-efficient-bf16",
    "fp16": "--fp16",
    "amp": "--amp",
    "amp, checkpointed": "--amp --checkpoint-activations --offload-activations",
}
# How far a loss may be from the CPU's in float32, ÷ that loss. Encodings that draw positions draw
# others on a GPU.
LIMIT = 0.02
COMMON = """--share-all-embeddings --optimizer adam --lr 0.001 --dropout 0 --max-tokens 1000
    --max-update 8 --update-freq 2 --task translation --user-dir fairseq_posenc --seed 1
    --fp16-init-scale 4 --num-workers 0 --no-progress-bar --no-save --disable-validation""".split()


class Trainer(train.Trainer):
    """fairseq's, which notes the loss of each update."""

    losses: List[float] = []

    def train_step(self, samples: Any, raise_oom: bool = False) -> Any:
        """Train as fairseq does, and note the loss."""
        output = super().train_step(samples, raise_oom)
        self.losses.append(float(metrics.get_meter("train_inner", "loss").avg))
        return output


def main(data: str, flags: List[str]) -> None:
    """Train every encoding with the flags of a precision."""
    train.Trainer = Trainer
    # parsed once for all encodings, as it takes longer than the training
    sys.argv[1:] = [data, "--arch", "posenc_transformer_tiny", *COMMON, *flags]
    args = options.parse_args_and_arch(options.get_training_parser())
    parsed = convert_namespace_to_omegaconf(args)
    for name in names():
        del Trainer.losses[:]
        cfg, found = copy.deepcopy(parsed), {"encoding": name, "losses": Trainer.losses}
        cfg.model.position_encoding = name
        try:
            train.main(cfg)
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(found), file=sys.__stdout__, flush=True)


def trained(data: Path, flags: Dict[str, str]) -> Dict[str, Dict[str, Any]]:
    """Train with all sets of flags at once; return what each printed, by name and encoding."""
    processes = {
        name: subprocess.Popen(
            [sys.executable, __file__, data, *words.split()],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for name, words in flags.items()
    }  # fmt: skip
    printed = {name: process.communicate()[0] for name, process in processes.items()}
    found = {
        name: [json.loads(line) for line in text.splitlines() if line.startswith('{"encoding"')]
        for name, text in printed.items()
    }
    return {name: {line["encoding"]: line for line in lines} for name, lines in found.items()}


def programs(results: Any, tiny: bool) -> None:
    """Part 3: losses of fairseq-train in every precision, beside those of the CPU in float32."""
    folder = results.path.parent / "programs"
    shutil.rmtree(folder, ignore_errors=True)  # cut before, it may be half written
    sizes = "--train 200 --valid 10 --test 2 --quiet".split()
    corpus = [sys.executable, "-m", "recipes.corpus", "--output", folder, *sizes]
    subprocess.run(corpus, check=True)
    words = "--source-lang en --target-lang de --joined-dictionary --trainpref"
    subprocess.run(
        ["fairseq-preprocess", *words.split(), folder / "train", "--destdir", folder / "bin"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    chosen = ["float32"] if tiny else list(PRECISIONS)
    flags = {name: "--cpu" if tiny else PRECISIONS[name] for name in chosen}
    found = trained(folder / "bin", {"cpu": "--cpu", **flags})
    results.content["parts"][results.part]["rows"] = []
    for encoding in names():
        expected, row = found["cpu"][encoding]["losses"], {"encoding": encoding}
        for name in chosen:
            line = found[name].get(encoding, {"error": "no output", "losses": []})
            pairs = list(zip(line["losses"], expected))
            row[name] = line.get("error") or max(abs(x - y) / y for x, y in pairs)
            right = len(line["losses"]) == len(expected) > 0 and not line.get("error")
            if not (right and row[name] <= LIMIT):
                row["verdict"] = "wrong"
        results.add({"verdict": "right", **row})


def verdict(results: Any) -> str:
    """Say how many encodings have the CPU's losses in every precision."""
    rows = results.rows("programs")
    right = sum(row["verdict"] == "right" for row in rows)
    return (
        f"fairseq-train: {right} of {len(rows)} encodings have the CPU's losses in all precisions"
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
