"""An attack of your own in one class: the average of the public images whose latents lie nearest to what was sent."""

from dataclasses import dataclass

import torch

import attcem


@dataclass(frozen=True)
class Neighbours(attcem.Attack):
    """Asks the device about every public image, then averages the nearest: no training, and hard to fool."""

    count: int = 8

    def __call__(self, view: attcem.View, *, seed: int = 0, progress: bool = False) -> attcem.Reconstruction:
        pictures = view.public.pixels()
        known = torch.cat([view.oracle(some).flatten(1) for some in pictures.split(256)])
        nearest = torch.cdist(view.targets.flatten(1), known).topk(self.count, largest=False).indices
        return attcem.Reconstruction(pictures[nearest.cpu()].mean(1))


def main(epochs: int = 5, suite: str = "demo") -> attcem.Result:
    data = attcem.load_data("fashion")
    model = attcem.split("vgg11_bn", data=data, cut=4, width=0.25)
    guard = attcem.Noise(sigma=0.3)
    attcem.fit(model, guard, data, epochs=epochs)
    result = attcem.audit(model, guard, data, suite=suite, attacks={"neighbours": Neighbours()})
    for name, scores in result.attacks.items():
        print(f"{name}: MSE {scores.mse:.4f}")
    return result


if __name__ == "__main__":
    main()
