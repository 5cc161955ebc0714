"""A paper's batch on whatever GPUs there are: sequences or tokens per GPU × steps × GPUs.

For recipes; each command prints numbers:

    batch.py gpus                        GPUs, and GiB of the smallest
    batch.py divide BATCH GPUS MOST      per GPU and step, steps per update, and their product
    batch.py sequences MEMORY LENGTH VOCABULARY ARCH [OPTION…]        that a GPU is likely to hold
    batch.py tokens MEMORY VOCABULARY LAYERS CHANNELS HEADS [OPTION…]           of either side

MEMORY is in MiB, OPTIONs are fairseq's. Bytes are counted as Korthikanti et al. 2022 do: per token,
layer and channel 34 + 5 heads·length/channels at 16 bits; beside them 1 GiB and 20 bytes a weight.
Four tenths of the memory stay in reserve, as encodings differ, and larger steps are hardly faster.
"""

import sys
from typing import List, Tuple

# layers, channels, heads
BERT = {"tiny": (2, 128, 2), "small": (4, 512, 8), "base": (12, 768, 12), "large": (24, 1024, 16)}
MIB = 1 << 20


def divide(batch: int, gpus: int, most: int) -> Tuple[int, int, int]:
    """Divide a batch among GPUs, with at most ``most`` on each in a step.

    Returns:
        pieces per GPU and step, steps per update, and the batch they make: ``batch``, or where
        ``gpus`` and ``most`` do not allow it unless in pieces below a quarter of ``most``, the
        nearest number.
    """
    fewest = -(-batch // (gpus * most))
    choices = []
    for steps in range(fewest, 4 * fewest + 1):
        pieces = min(max((batch + gpus * steps // 2) // (gpus * steps), 1), most)
        choices.append((pieces, steps, pieces * steps * gpus))
    return min(choices, key=lambda choice: abs(choice[2] - batch))


def bytes_each(options: List[str]) -> int:
    """Return 1 if fairseq's options make the model work in 16 bits, 2 for 32."""
    half = any(o in ("--fp16", "--bf16") or o.startswith("--memory-efficient") for o in options)
    return 1 if half else 2


def sequences(memory: int, length: int, vocabulary: int, arch: str, options: List[str]) -> int:
    """Return how many sequences of a masked language model a GPU is likely to hold in training.

    Beside the layers there are 5 bytes for each type at the 15 % of tokens to be predicted.
    """
    layers, channels, heads = BERT.get(arch.rpartition("_")[2], BERT["base"])
    fixed = 1024 + (12 * layers * channels + vocabulary) * channels * 20 // MIB
    token = layers * channels * (34 + 5 * heads * length // channels) + vocabulary * 75 // 100
    each = 1 + bytes_each(options) * length * token // MIB
    return max((memory * 6 // 10 - fixed) // each, 1)


def tokens(
    memory: int, vocabulary: int, layers: int, channels: int, heads: int, options: List[str]
) -> int:
    """Return how many tokens of either side of a translation model a GPU is likely to hold.

    There are ``layers`` on either side, sentences of 32 tokens, 20 bytes more per channel of the
    decoder's attention to the encoder, and 12 for each type.
    """
    fixed = 1024 + (28 * layers * channels + vocabulary) * channels * 20 // MIB
    token = layers * channels * (88 + 15 * heads * 32 // channels) + vocabulary * 12
    each = bytes_each(options) * token
    return max((memory * 6 // 10 - fixed) * 1024 // (each // 1024), 256)


def gpus() -> Tuple[int, int]:
    """Return the number of GPUs and the memory of the smallest, in GiB."""
    import torch

    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return len(found), min((gpu.total_memory for gpu in found), default=0) >> 30


def main() -> None:
    """Print what is asked for."""
    question, *given = sys.argv[1:]
    numbers = [int(word) for word in given if word.isdigit()]
    if question == "gpus":
        print(*gpus())
    elif question == "divide":
        print(*divide(*numbers))
    elif question == "sequences":
        print(sequences(*numbers[:3], given[3], given[4:]))
    else:
        print(tokens(*numbers[:5], given[5:]))


if __name__ == "__main__":
    main()
