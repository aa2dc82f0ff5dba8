"""What more effort finds: a decoder's MSE on the test images after every doubling of its training, and beyond it.

    python -m benchmarks.effort runs/<id> --doublings 6                  # 600 steps, then 1,200 more, then 2,400 …
    python -m benchmarks.effort runs/<id> --channels 64 --blocks 8       # the published size
    python -m benchmarks.effort runs/<id> --feedback 2 --optimise        # then the device's answers, then the pixels

Published decoders see each of 50,000 images some fifty times; a suite for two cores stops long before. This says how
far the suite is from there, and whether the gap closes at the rate that the last doublings promise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.feedback import Feedback
from attcem.attacks.inversion import Inversion
from attcem.attacks.optimise import Optimise
from attcem.experiment import load_run, read_experiment
from attcem.metrics import METRICS
from attcem.threat import build_view
from attcem.types import Images, View


def after_each_doubling(decoder: DecoderAttack, view: View, truth: Images, seed: int) -> Float[Tensor, " n"]:
    """Train in cycles of doubling length, never stopping early, print what each has reached, return the last errors."""
    torch.manual_seed(seed)
    start = None if decoder.start is None else decoder.start.trained(view, seed)
    training = view.workbook.model(decoder, seed, lambda: Inversion(decoder, view, seed, start))
    before = None
    for doubling in range(decoder.doublings + 1):
        own = training.run_cycle(decoder.cycle * 2**doubling, f"doubling {doubling}", False)
        errors = METRICS["mse"](training.invert(view.targets), truth.pixels())
        mse, images = errors.mean().item(), training.steps * decoder.batch
        print(
            f"{training.steps:>7,} steps  {images:>9,} images  own validation {own:.5f}  "
            f"test images {mse:.5f}" + (f"  ({mse / before - 1:+.1%})" if before else ""),
            flush=True,
        )
        before = mse
    return errors


def optimised(decoder: DecoderAttack, view: View, truth: Images, seed: int) -> Float[Tensor, " n"]:
    """The pixels of all images, from that decoder's guess."""
    attack = Optimise(solver="lbfgs", start=decoder, worthwhile=0.0)
    found = attack(view, seed=seed)
    errors = METRICS["mse"](found.images, truth.pixels())
    public = " to ".join(f"{error:.5f}" for error in found.curve)
    print(f"pixels optimised from there: public images {public}, test images {errors.mean():.5f}", flush=True)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--doublings", type=int, default=5)
    parser.add_argument("--images", type=int, default=1000, help="test images to invert")
    parser.add_argument("--feedback", type=int, help="doublings of one that then reads the device's answers")
    parser.add_argument("--optimise", action="store_true", help="optimise the pixels afterwards")
    options = parser.parse_args()
    seed = read_experiment(options.run).audit.seed
    view, truth = build_view(*load_run(options.run), images=options.images, seed=seed, threat="white_box")
    decoder: DecoderAttack = Decoder(options.channels, options.blocks, batch=options.batch, doublings=options.doublings)
    errors = [after_each_doubling(decoder, view, truth, seed)]
    if options.feedback is not None:
        print("and now with the device's answers to its guesses")
        decoder = Feedback(decoder, batch=options.batch, doublings=options.feedback)
        errors.append(after_each_doubling(decoder, view, truth, seed))
    if options.optimise:
        errors.append(optimised(decoder, view, truth, seed))
    print(f"worst case of each image: {torch.stack(errors).amin(0).mean():.5f}")


if __name__ == "__main__":
    main()
