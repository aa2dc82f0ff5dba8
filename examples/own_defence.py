"""A defence of your own in one class: keep only the largest part of every latent, and pay for large latents."""

import torch

import attcem


class KeepLargest(attcem.Defence):
    """Zeroes all but the largest values of each latent, and penalises the latent's mean square."""

    def __init__(self, share: float = 0.25, lam: float = 0.1) -> None:
        super().__init__()
        self.share, self.lam = share, lam

    def release(self, z: torch.Tensor) -> torch.Tensor:
        flat = z.flatten(1)
        kept = max(1, int(self.share * flat.shape[1]))
        smallest = flat.abs().topk(kept).values[:, -1:]
        return torch.where(flat.abs() >= smallest, flat, 0).view_as(z)

    def penalty(self, batch: attcem.Batch) -> torch.Tensor:
        return batch.z.square().mean()


def main(epochs: int = 5, suite: str = "demo") -> attcem.Result:
    data = attcem.load_data("fashion")
    model = attcem.split("vgg11_bn", data=data, cut=4, width=0.25)
    guard = attcem.Noise(sigma=0.1) + KeepLargest()
    attcem.fit(model, guard, data, epochs=epochs)
    result = attcem.audit(model, guard, data, suite=suite)
    print(f"accuracy {result.accuracy:.3f}, worst MSE {result.worst.mse:.4f}")
    print(f"recorded as {result.config['defence']}")
    return result


if __name__ == "__main__":
    main()
