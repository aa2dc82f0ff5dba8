"""Our loader against a plain DataLoader with the same augmentation."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from attcem.data.loader import Augment, Loader
from attcem.types import Images
from benchmarks.harness import Figure, ratio


class Plain(Dataset):
    """One image at a time, as tutorials do it: pad by reflection, crop, flip."""

    def __init__(self, images: Images) -> None:
        self.x, self.y = images.x.permute(0, 3, 1, 2).contiguous(), images.y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.pad(self.x[index].float() / 255, (4, 4, 4, 4), mode="reflect")
        down, right = torch.randint(0, 9, (2,)).tolist()
        x = x[:, down : down + 32, right : right + 32]
        return (x.flip(-1) if torch.rand(()) < 0.5 else x), self.y[index]


def figures() -> Iterator[Figure]:
    images = Images(torch.randint(0, 256, (4096, 32, 32, 3), dtype=torch.uint8), torch.randint(0, 10, (4096,)))
    ours, plain = Loader(images, 128, augment=Augment()), DataLoader(Plain(images), 128, shuffle=True, drop_last=True)
    value = ratio(lambda: [None for _ in plain], lambda: [None for _ in ours.epoch(0)], rounds=9)
    yield Figure("loader: images/s, ours / plain DataLoader, same augmentation", value, 3.0, at_least=True)
