"""A paper's batch on whatever GPUs there are: sequences or tokens per GPU × steps × GPUs.

Memory is in MiB, options are fairseq's. Bytes are counted as Korthikanti et al. 2022 do: per token,
layer and channel 34 + 5 heads·length/channels at 16 bits; beside them 1 GiB and 20 bytes a weight.
Four tenths of the memory stay in reserve, as encodings differ, and larger steps are hardly faster.
"""

from typing import NamedTuple, Sequence

# layers, channels, heads
BERT = {"tiny": (2, 128, 2), "small": (4, 512, 8), "base": (12, 768, 12), "large": (24, 1024, 16)}
MIB = 1 << 20


class Division(NamedTuple):
    """How a batch is divided among GPUs.

    Attributes:
        per_gpu: pieces per GPU and step.
        steps: per update.
        made: what they make: the batch that was wanted, or nearly.
        named: by which a run is known on whatever GPUs: what was wanted, unless it is missed by
            more than 1 %.
        note: what to tell where it is missed.
    """

    per_gpu: int
    steps: int
    made: int
    named: int
    note: str


def divide(requested: int, gpus: int, most: int, unit: str) -> Division:
    """Divide a batch of pieces of a unit among GPUs, at most ``most`` on each in a step.

    Where ``gpus`` and ``most`` do not allow it, unless in pieces below a quarter of ``most``, the
    nearest number is made.
    """
    fewest = -(-requested // (gpus * most))
    choices = []
    for steps in range(fewest, 4 * fewest + 1):
        size = min(max((requested + gpus * steps // 2) // (gpus * steps), 1), most)
        choices.append((size, steps, size * steps * gpus))
    per_gpu, steps, made = min(choices, key=lambda choice: abs(choice[2] - requested))
    note = f"note: {requested} {unit} do not divide among {gpus} GPUs: {made} are taken instead"
    named = made if abs(made - requested) * 100 > requested else requested
    return Division(per_gpu, steps, made, named, note if made != requested else "")


def bytes_each(options: Sequence[str]) -> int:
    """Return 1 if fairseq's options make the model work in 16 bits, 2 for 32."""
    half = any(o in ("--fp16", "--bf16") or o.startswith("--memory-efficient") for o in options)
    return 1 if half else 2


def sequences(memory: int, length: int, vocabulary: int, arch: str, options: Sequence[str]) -> int:
    """Return how many sequences of a masked language model a GPU is likely to hold in training.

    Beside the layers there are 5 bytes for each type at the 15 % of tokens to be predicted.
    """
    layers, channels, heads = BERT.get(arch.rpartition("_")[2], BERT["base"])
    fixed = 1024 + (12 * layers * channels + vocabulary) * channels * 20 // MIB
    token = layers * channels * (34 + 5 * heads * length // channels) + vocabulary * 75 // 100
    sequence_size = 1 + bytes_each(options) * length * token // MIB
    return max((memory * 6 // 10 - fixed) // sequence_size, 1)


def tokens(
    memory: int, vocabulary: int, layers: int, channels: int, heads: int, options: Sequence[str]
) -> int:
    """Return how many tokens of either side of a translation model a GPU is likely to hold.

    There are ``layers`` on either side, sentences of 32 tokens, 20 bytes more per channel of the
    decoder's attention to the encoder, and 12 for each type.
    """
    fixed = 1024 + (28 * layers * channels + vocabulary) * channels * 20 // MIB
    token = layers * channels * (88 + 15 * heads * 32 // channels) + vocabulary * 12
    token_bytes = bytes_each(options) * token
    return max((memory * 6 // 10 - fixed) * 1024 // (token_bytes // 1024), 256)
