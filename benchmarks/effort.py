"""What more effort finds: a decoder's MSE on the test images after every doubling of its training.

    python -m benchmarks.effort runs/<id> --doublings 6                  # 600 steps, then 1,200 more, then 2,400 …
    python -m benchmarks.effort runs/<id> --channels 64 --blocks 8       # the published size
    python -m benchmarks.effort runs/<id> --batch 32 --optimise 128      # afterwards, pixels of so many images

Published decoders see each of 50,000 images some fifty times; a suite for two cores stops long before. This says how
far the suite is from there, and whether the gap closes at the rate that the last doublings promise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from attcem.attacks.decoder import Decoder
from attcem.attacks.inversion import Inversion
from attcem.attacks.optimise import Optimise
from attcem.experiment import load_run, read_experiment
from attcem.metrics import METRICS
from attcem.threat import build_view
from attcem.types import Images, View


def after_each_doubling(decoder: Decoder, view: View, truth: Images, seed: int) -> None:
    """Train in cycles of doubling length, never stopping early, and print what each has reached."""
    torch.manual_seed(seed)
    training = view.notes[decoder, seed] = Inversion(decoder, view, seed)
    before = None
    for doubling in range(decoder.doublings + 1):
        own = training.run_cycle(decoder.cycle * 2**doubling, f"doubling {doubling}", False)
        mse = METRICS["mse"](training.invert(view.targets), truth.pixels()).mean().item()
        images = training.steps * decoder.batch
        print(
            f"{training.steps:>7,} steps  {images:>9,} images  own validation {own:.5f}  "
            f"test images {mse:.5f}" + (f"  ({mse / before - 1:+.1%})" if before else ""),
            flush=True,
        )
        before = mse


def optimised(decoder: Decoder, view: View, truth: Images, images: int, seed: int) -> None:
    """The pixels, from that decoder's guess."""
    attack = Optimise(images=images, solver="lbfgs", start=decoder)
    found = attack(view, seed=seed).images
    wanted = truth[: len(found)].pixels()
    start = METRICS["mse"](decoder.trained(view, seed).invert(view.targets[: len(found)]), wanted).mean().item()
    mse = METRICS["mse"](found, wanted).mean().item()
    print(f"{attack.solver} from there, first {len(found)} images: {start:.5f} to {mse:.5f} ({mse / start - 1:+.1%})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--doublings", type=int, default=5)
    parser.add_argument("--images", type=int, default=1000, help="test images to invert")
    parser.add_argument("--optimise", type=int, default=0, help="test images whose pixels to optimise afterwards")
    options = parser.parse_args()
    seed = read_experiment(options.run).audit.seed
    view, truth = build_view(*load_run(options.run), images=options.images, seed=seed, threat="white_box")
    decoder = Decoder(options.channels, options.blocks, batch=options.batch, doublings=options.doublings)
    after_each_doubling(decoder, view, truth, seed)
    if options.optimise:
        optimised(decoder, view, truth, options.optimise, seed)


if __name__ == "__main__":
    main()
