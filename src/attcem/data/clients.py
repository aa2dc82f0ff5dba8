"""Deal the private images to clients: each to exactly one of them, the same way for the same seed."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from attcem.config import ClientsConfig
from attcem.data.partitions import Data
from attcem.types import Images

LEAST = 10  # a client with fewer images learns nothing: the draw is repeated
DRAWS = 100  # so often, then the settings are to blame
Pieces = list[np.ndarray]  # positions of each client's images, in ascending order


def deal_clients(data: Data, config: ClientsConfig) -> list[Images]:
    """Every client's own part of the private images; the data's own seed decides the draw."""
    pieces = draw_clients(data.private.y.numpy(), config, seed=data.draw.get("seed", 0))
    return data.private.divide(map(torch.from_numpy, pieces))


def draw_clients(labels: np.ndarray, config: ClientsConfig, seed: int = 0) -> Pieces:
    """Positions of each client's images: disjoint, together all of them, and at least a few for everyone."""
    if config.count == 1:
        return [np.arange(len(labels))]
    if config.count * LEAST > len(labels):
        raise ValueError(
            f"{len(labels)} private images are too few for {config.count} clients, who need {LEAST} each: give "
            f"clients.count of at most {len(labels) // LEAST}"
        )
    # numpy promises the numbers of RandomState for ever, which it does not for its newer generators.
    numbers = np.random.RandomState([seed % 2**32, seed // 2**32])
    deal = {"iid": iid, "dirichlet": dirichlet}[config.partition]
    for _ in range(DRAWS):
        pieces = deal(labels, config, numbers)
        if min(map(len, pieces)) >= LEAST:
            return pieces
    raise ValueError(
        f"in {DRAWS} draws one of {config.count} clients always had fewer than {LEAST} of {len(labels)} images: give "
        f"fewer clients (clients.count), or a clients.alpha above {config.alpha:g}"
    )


def iid(labels: np.ndarray, config: ClientsConfig, numbers: np.random.RandomState) -> Pieces:
    return [np.sort(piece) for piece in np.array_split(numbers.permutation(len(labels)), config.count)]


def dirichlet(labels: np.ndarray, config: ClientsConfig, numbers: np.random.RandomState) -> Pieces:
    """Every class's images go to the clients by shares p ~ Dir(α, …, α), drawn for each class anew.

    This is the dealing of Yurochkin et al. 2019 and of NIID-Bench (Li et al. 2022), in which clients differ in size,
    too; Hsu et al. 2019 draw the classes of clients that all have one size instead. A large α makes clients alike, a
    small one gives most of a class to one of them.
    """
    owner = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        mine = numbers.permutation(np.flatnonzero(labels == label))
        owner[mine] = owners(len(mine), numbers.dirichlet([config.alpha] * config.count))
    return [np.flatnonzero(owner == client) for client in range(config.count)]


def owners(count: int, shares: np.ndarray) -> np.ndarray:
    """Who owns each of so many images in a row, cut where the running sum of the shares says.

    >>> owners(5, np.array([0.2, 0.0, 0.8]))
    array([0, 2, 2, 2, 2])
    """
    ends = np.round(np.cumsum(np.nan_to_num(shares)) * count)
    ends[-1] = count  # also where all shares of a small α were too small for a float
    return np.searchsorted(ends, np.arange(count), side="right")


def audited_data(data: Data, clients: Sequence[Images], config: ClientsConfig) -> Data:
    """The data as the audit sees it: a client that attacks has its own images in place of the public ones."""
    draw = data.draw | {"clients": [len(images) for images in clients], "clients_sha256": fingerprint(clients)}
    public = data.public if config.attacker is None else clients[config.attacker]
    return replace(data, public=public, draw=draw)


def fingerprint(clients: Sequence[Images]) -> str:
    total = hashlib.sha256()
    for images in clients:
        total.update(f"{len(images)}\n".encode())
        for tensor in (images.x, images.y):
            total.update(tensor.cpu().contiguous().numpy().data)
    return total.hexdigest()
