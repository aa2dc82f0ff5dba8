"""Started by a test with little memory: more pictures of 224×224 than fit are read, trained on and evaluated."""

import resource
import sys
from pathlib import Path

import numpy as np
from torch.utils.data import Dataset

import attcem
from attcem.train.prediction import evaluate  # imports here what attcem imports when it is asked to

SIDE, COUNT = 224, 1700
ROOM = 230 << 20
"""Bytes beside what the program and its libraries take, fewer than those of the pictures."""


class Drawn(Dataset):
    """Pictures that exist while they are looked at: class 1 is brighter."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        noise = np.random.default_rng(index).integers(0, 128, (SIDE, SIDE, 3), dtype=np.uint8)
        return noise + 127 * (index % 2), index % 2


def data_bytes() -> int:
    """What counts against RLIMIT_DATA: memory that no file stands behind."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmData:"))


def main() -> None:
    size = SIDE**2 * 3
    assert COUNT * size > ROOM
    limit = data_bytes() + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    data = attcem.make_data(Drawn(), memory=8 << 20)
    assert sum(data.draw["sizes"].values()) == COUNT
    model = attcem.split("vgg11_bn", data=data, cut=3, bottleneck=2, width=0.05)
    some = attcem.data.Data(**vars(data) | {"private": data.private[:16]})
    attcem.fit(model, attcem.Noise(0.05), some, epochs=1, batch=4, device="cpu", progress=False)
    print(evaluate(model, attcem.Noise(0.05), data.test)[1], data.public.mean().mean().item())


if __name__ == "__main__":
    sys.exit(main())
