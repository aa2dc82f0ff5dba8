"""Finds random numbers that somebody else could have drawn: repeated, seeded, or from a congruential generator.

Statistical tests see none of this: such numbers have the right mean, variance and distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from attcem.ship.randomness import Source
from attcem.ship.release import Release

WORDS = 64  # consecutive words that a generator is sought in
SIZES = (4, 8)  # bytes of a word


def predictable_source(start: Callable[[], Source]) -> list[str]:
    """Why the bytes of a source can be known beforehand; nothing where no reason is found. `start` opens a new one."""
    one, other = start(), start()
    first, second, elsewhere = one(8 * WORDS), one(8 * WORDS), other(8 * WORDS)
    found = []
    if first == second:
        found.append("a source gives the same bytes again")
    if first == elsewhere:
        found.append("two sources that were started apart give the same bytes: they share a seed")
    for size in SIZES:
        words = [int(word) for word in np.frombuffer(first, f"<u{size}")[:WORDS]]
        if modulus := congruential_modulus(words):
            found.append(f"words of {size} bytes are a linear congruence modulo {modulus}: each tells all that follow")
    return found


def congruential_modulus(words: Sequence[int]) -> int | None:
    """The modulus m of x′ = (a·x + c) mod m, if these words are consecutive states of one.

    With d the differences of neighbours, d₀·d₂ − d₁² is a multiple of m; of unrelated words the greatest common divisor
    of a few dozen of these is hardly above 1.
    """
    d = [after - before for before, after in pairwise(words)]
    multiples = [a * c - b * b for a, b, c in zip(d, d[1:], d[2:], strict=False)]
    modulus = math.gcd(*multiples)
    return modulus if modulus > max(words) else None


def predictable_messages(start: Callable[[], Release], picture: np.ndarray) -> list[str]:
    """Why the noise in a device's messages can be known beforehand, from what it sends of one picture alone."""
    one, other = start(), start()
    first, second, elsewhere = one(picture), one(picture), other(picture)
    found = []
    if np.array_equal(first, second):
        found.append("two messages of one picture are the same: nothing is drawn between them")
    if np.array_equal(first, elsewhere):
        found.append("two devices that were started apart send the same first message: they share a seed")
    return found
