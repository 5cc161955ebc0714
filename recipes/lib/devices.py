"""Cores and GPUs: how many there are, and which of them a training has."""

import os
import random
import shutil
import socket
from typing import Dict, List, NamedTuple, Sequence, Tuple

from fairseq_posenc.errors import UsageError
from recipes.lib.processes import printed

_HALF = "--fp16", "--bf16", "--amp"
FLOAT32 = (
    "note: in float32, without '-- --bf16' or '-- --fp16', this takes an H100 about 5 to 10 times "
    "the "
    "hours, computed from its data sheet: docs/bigger_machines.md"
)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def ask_python(code: str) -> str:
    """Return what the environment's Python prints, or nothing where it fails."""
    text, status = printed(["python", "-c", code])
    return "" if status else text.strip()


def has_gpu() -> bool:
    """Return whether torch sees a GPU."""
    return ask_python("import torch; print(torch.cuda.is_available())") == "True"


def is_half(extra: Sequence[str]) -> bool:
    """Return whether fairseq's options make the model work in 16 bits."""
    return any(o in _HALF or o.startswith("--memory-efficient-") for o in extra)


class Devices(NamedTuple):
    """What trainings run on.

    Attributes:
        type: cpu or cuda.
        jobs: trainings at a time.
        node: the GPUs of a node that are used; none on a CPU.
        num_gpus: GPUs of a training, of all its nodes.
        memory: GiB of the smallest GPU.
    """

    type: str
    jobs: int
    node: Tuple[str, ...] = ()
    num_gpus: int = 1
    memory: int = 0

    @property
    def options(self) -> List[str]:
        """For fairseq's programs and ours."""
        return ["--cpu"] if self.type == "cpu" else []

    @property
    def trainings_per_gpu(self) -> int:
        """How many trainings share a GPU."""
        gpus = len(self.node) or 1
        return -(-self.jobs // gpus) if self.jobs > gpus else 1

    def gpus_of(self, number: int) -> str:
        """Those of the training of that number, of all that run at a time; empty on a CPU."""
        if not self.node:
            return ""
        count = self.num_gpus // nodes()
        first = number * count % len(self.node)
        return ",".join(self.node[first : first + count])

    def environment(self, slot: int) -> Dict[str, str]:
        """The environment of a training: its GPUs, and its share of the cores."""
        processes = self.jobs * self.num_gpus // nodes()
        share = {"OMP_NUM_THREADS": str(max(cores() // max(processes, 1), 1)), **os.environ}
        return {**share, **({"CUDA_VISIBLE_DEVICES": self.gpus_of(slot)} if self.node else {})}

    def launch(self) -> List[str]:
        """The program that trains: fairseq-train, or with several GPUs what starts it on each.

        That is torchrun, or with several nodes of a SLURM job srun, for which fairseq finds the
        other nodes itself, and would take all GPUs that it sees.
        """
        if self.type == "cuda" and nodes() > 1:
            return [
                "srun", "--nodes", str(nodes()), "--ntasks-per-node", "1", "--kill-on-bad-exit",
                "env", f"CUDA_VISIBLE_DEVICES={self.gpus_of(0)}", "fairseq-train",
                "--distributed-port", str(free_port()),
                "--distributed-world-size", str(self.num_gpus),
            ]  # fmt: skip
        if self.type == "cuda" and self.num_gpus > 1:
            # on a free port: the one of `--standalone` is always the same before torch 2.1
            program = shutil.which("fairseq-train") or "fairseq-train"
            return ["torchrun", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0",
                    "--nproc-per-node", str(self.num_gpus), program]  # fmt: skip
        # fairseq would take all GPUs on its own, whatever --gpus says
        return ["fairseq-train", "--distributed-world-size", "1"]


def nodes() -> int:
    """Return how many nodes a training has."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or 1)


def list_gpus(requested: int, is_plan: bool = False) -> Tuple[str, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names, or all; no more than are requested.

    A plan may be for another machine, which has as many as are requested.

    Raises:
        UsageError: there are none, or not as many.
    """
    visible = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    if not visible:
        program = "import torch; print(torch.cuda.device_count())"
        count = requested if is_plan and requested else int(ask_python(program) or 0)
        visible = [str(number) for number in range(count)]
    if not visible:
        raise UsageError("there is no GPU; give --device cpu")
    if len(visible) < requested and is_plan:
        visible = [str(number) for number in range(requested)]
    if len(visible) < requested:
        names = "CUDA_VISIBLE_DEVICES names" if os.environ.get("CUDA_VISIBLE_DEVICES") else ""
        raise UsageError(f"--gpus is {requested}, but {names or 'there are'} {len(visible)}")
    return tuple(visible[: requested or len(visible)])


def smallest_memory() -> int:
    """Return GiB of the smallest GPU."""
    gibibytes = ask_python(
        "import torch; c = torch.cuda; print(min((c.get_device_properties(i).total_memory "
        "for i in range(c.device_count())), default=0) >> 30)"
    )
    if gibibytes in ("", "0"):
        raise UsageError("there is no GPU to look at: give --gpu-memory")
    return int(gibibytes)


def free_port() -> int:
    """Return a port that nothing listens on."""
    while True:
        port = random.randrange(20000, 40000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def divide_gpus(jobs: int, gpus: Tuple[str, ...], memory: int) -> Devices:
    """Return trainings at a time with equal parts of the GPUs of each node.

    Raises:
        UsageError: several at a time on several nodes.
    """
    if nodes() > 1 and jobs > 1:
        raise UsageError("on several nodes trainings run one at a time: leave out --jobs")
    per_job = 1 if jobs > len(gpus) else len(gpus) // jobs
    return Devices("cuda", jobs, gpus, per_job * nodes(), memory)
