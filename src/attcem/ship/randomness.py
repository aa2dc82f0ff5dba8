"""Random numbers of a device, from the operating system's cryptographic generator."""

import math
import os
from collections.abc import Callable, Mapping

import numpy as np

Source = Callable[[int], bytes]
"""So many unpredictable bytes: os.urandom, unless a test puts something else in its place."""


def unit_interval(count: int, source: Source) -> np.ndarray:
    """Uniform on (0, 1], 53 bits each: the logarithm of none is infinite."""
    whole = np.frombuffer(source(8 * count), dtype=np.uint64) >> np.uint64(11)
    return (whole + 1.0) / 2.0**53


def normal(count: int, source: Source) -> np.ndarray:
    """±√(−2 ln u) · (cos θ, sin θ) (Box and Muller 1958).

    Of 64 bits u has 32, and so ends at 6.7 σ; one is the sign, and θ has 31, within a quarter of a turn either side of
    0, where single precision is as fine as what is sent.
    """
    first, second = np.frombuffer(source(8 * ((count + 1) // 2)), "<u4").reshape(2, -1)
    radius = (np.sqrt(-2 * np.log((first + 1.0) / 2.0**32)) * (1.0 - 2.0 * (second & 1))).astype(np.float32)
    angle = ((second >> 1) * (math.pi / 2.0**31) - math.pi / 2).astype(np.float32)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def laplace(count: int, source: Source) -> np.ndarray:
    """ln u − ln v: the difference of two exponential numbers."""
    return np.log(unit_interval(count, source)) - np.log(unit_interval(count, source))


def uniform(count: int, source: Source) -> np.ndarray:
    """Uniform on [0, 1)."""
    return 1.0 - unit_interval(count, source)


LAWS: Mapping[str, Callable[[int, Source], np.ndarray]] = {"normal": normal, "laplace": laplace, "uniform": uniform}
"""The distributions that a release may declare, by their names in `attcem.maths`."""


def draw(law: str, shape: tuple[int, ...], source: Source = os.urandom) -> np.ndarray:
    """Fresh float32 numbers of one distribution."""
    drawn = LAWS[law](math.prod(shape), source).astype(np.float32, copy=False)
    if law == "uniform":  # rounding to float32 must not reach 1
        drawn = np.minimum(drawn, np.float32(1 - 2**-24))
    return drawn.reshape(shape)
