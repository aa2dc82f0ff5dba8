"""Where the work is done and in which precision, and how much memory it took there."""

import re
import resource
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch


def find_device(device: str | torch.device) -> torch.device:
    """The place that `--device` names; auto is the GPU if there is one. It must hold float64, which bounds need."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        where = torch.device(device)
        torch.zeros(1, dtype=torch.float64, device=where).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"device {str(device)!r} cannot be used here ({why}): try auto or cpu") from None
    return where


def number_format(precision: str, where: torch.device) -> tuple[torch.dtype, AbstractContextManager]:
    """Dtype of weights, and the autocast context of a training step."""
    if precision == "bfloat16":
        if where.type != "cuda":
            raise ValueError("precision bfloat16 needs a CUDA device (many CPUs crash on it): use float32")
        return torch.float32, torch.autocast(where.type, torch.bfloat16)
    return getattr(torch, precision), nullcontext()


def peak_megabytes(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.exists():  # what Linux counts as a process's peak otherwise includes that of the one that started it
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) / 1024  # type: ignore[index]
    unit = 2**20 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
