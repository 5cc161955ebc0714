"""Names of devices, and how many threads PyTorch uses."""

import os
import platform

import torch


def hardware(device: torch.device) -> str:
    """Return the name of a device and how many of the machine's threads PyTorch uses."""
    name = torch.cuda.get_device_name() if device.type == "cuda" else _cpu()
    return f"{name}, {torch.get_num_threads()} of {os.cpu_count()} threads"


def _cpu() -> str:
    """Return the CPU's name with the vector instructions that PyTorch uses of it."""
    name = platform.processor() or "CPU"
    return f"{name} {torch.backends.cpu.get_cpu_capability()}"
