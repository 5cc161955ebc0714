"""What a program ran on, in words."""

import os
import platform

import torch


def hardware(device: torch.device) -> str:
    """Return the name of a device and how many of the machine's threads PyTorch uses."""
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "CPU"
    return f"{name}, {torch.get_num_threads()} of {os.cpu_count()} threads"
