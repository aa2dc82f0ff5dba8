"""The flags of many runs in few lines: those that differ only in their numbers are one."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?!\w)")
"""A number by itself: that of a name, as in `decoder_repeat_16` or `noise-2`, is part of the name."""


def summarise_flags(runs: Iterable[tuple[str, Iterable[str]]]) -> tuple[str, ...]:
    """Every flag once, with whom it concerns; `runs` are names of defences, each with the flags of one of its runs.

    >>> summarise_flags([("noise", ["large gains 9%"]), ("noise", ["large gains 13%"]), ("gmm", [])])
    ('large gains 9–13% (noise: 2 of 2 runs)',)
    """
    total: Counter[str] = Counter()
    raised: dict[str, tuple[list[str], Counter[str]]] = {}
    for owner, flags in runs:
        total[owner] += 1
        wordings = {flag: NUMBER.sub("0", flag) for flag in flags}
        for flag, wording in wordings.items():
            raised.setdefault(wording, ([], Counter()))[0].append(flag)
        for wording in set(wordings.values()):
            raised[wording][1][owner] += 1
    return tuple(
        f"{span(flags)} ({', '.join(f'{owner}: {times} of {total[owner]} runs' for owner, times in owners.items())})"
        for flags, owners in raised.values()
    )


def span(flags: Sequence[str]) -> str:
    """One flag for several of one wording: each number becomes the lowest and the highest.

    >>> span(["1 of 2 clients above 0.5", "2 of 2 clients above 0.5"])
    '1–2 of 2 clients above 0.5'
    """
    columns = zip(*map(NUMBER.findall, flags), strict=True)
    ends = iter([sorted(set(column), key=float)[:: max(1, len(set(column)) - 1)] for column in columns])
    return NUMBER.sub(lambda _: "–".join(next(ends)), flags[0])
