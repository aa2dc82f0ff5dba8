"""Deal whole classes, such as people: some to the device, others to the attacker, the rest to nobody but the judge."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64

from attcem.data.collect import Pictures
from attcem.data.partitions import Data, partition
from attcem.data.source import Source
from attcem.types import Images
from attcem.types.mapped import Chosen

SHARES = {"device": 0.3, "attacker": 0.3}
FEWEST = 6


def partition_people(source: Source, name: str, *, seed: int, memory: int, **options: Any) -> Data:
    """Private, validation and test show the device's people, public the attacker's, `strangers` those of nobody.

    The network keeps a class for everybody, so that labels mean the same in every part; it learns, and is tested on,
    the device's people only.
    """
    owner = deal(len(source.class_names), seed)
    mine, test = places(source.y_train, owner == "device"), places(source.y_test, owner == "device")
    given = {of: pictures_of(source, places(source.y_train, owner == of), memory) for of in ("attacker", "nobody")}
    grouped = np.append(mine, len(source.y_train) + test)
    drawn_from = Source(
        *pictures_of(source, mine, memory)[:2],
        None if source.x_test is None else Chosen([source.x_test], test).copy(memory),
        None if source.y_test is None else source.y_test[test],
        None if source.group is None else source.group[grouped[grouped < len(source.group)]],
        source.class_names,
    )
    data = partition(drawn_from, name, seed=seed, memory=memory, given={"public": given["attacker"]}, **options)
    strangers = Images(torch.from_numpy(given["nobody"].x), torch.from_numpy(given["nobody"].y), memory)
    people = {of: int((owner == of).sum()) for of in ("device", *given)}
    return replace(data, strangers=strangers, draw=data.draw | {"people": people})


def places(labels: np.ndarray | None, wanted: Bool[np.ndarray, " classes"]) -> Int64[np.ndarray, " n"]:
    return np.flatnonzero([] if labels is None else wanted[labels])


def pictures_of(source: Source, index: Int64[np.ndarray, " n"], memory: int) -> Pictures:
    return Pictures(Chosen([source.x_train], index).copy(memory), source.y_train[index])


def deal(classes: int, seed: int) -> np.ndarray:
    """Whose each class is: device, attacker or nobody.

    >>> deal(10, seed=0).tolist().count("nobody")
    4
    """
    if classes < FEWEST:
        raise ValueError(f"strangers need at least {FEWEST} classes to deal, not {classes}: leave out strangers")
    order = np.argsort(np.random.PCG64(seed).random_raw(classes), kind="stable")
    owner, start = np.full(classes, "nobody", dtype="<U8"), 0
    for of, share in SHARES.items():
        size = max(2, round(share * classes))
        owner[order[start : start + size]] = of
        start += size
    return owner
