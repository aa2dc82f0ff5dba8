"""Tensors from the content of a safetensors file."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load
from torch import Tensor


def tensors_of(content: bytes, path: Path) -> dict[str, Tensor]:
    """Every tensor by name; the path is for the error."""
    try:
        return load(content)
    except MemoryError:
        raise
    except Exception as error:  # SafetensorError, or a KeyError for a type of numbers that torch does not have
        raise ValueError(f"{path} holds no tensors ({' '.join(str(error).split())[:200]})") from None
