"""The likeness that remains when mirroring, small shifts and changes of colour are forgiven."""

from itertools import product

import torch

from attcem.metrics.image import Pictures, squared_error

REACH = 2  # pixels that a picture may be moved by, in each direction
FLAT = 1e-8  # variance at or below which a channel counts as constant: no gain can be told from it


def moved(pictures: Pictures, down: int, right: int) -> Pictures:
    """Moved by so many pixels; the border is repeated where nothing is known."""
    height, width = pictures.shape[-2:]
    rows = (torch.arange(height, device=pictures.device) - down).clamp(0, height - 1)
    columns = (torch.arange(width, device=pictures.device) - right).clamp(0, width - 1)
    return pictures.index_select(2, rows).index_select(3, columns)


def recoloured(pictures: Pictures, truth: Pictures, down: int, right: int) -> Pictures:
    """Gain · picture + offset per image and channel, by least squares over the pixels that a move still covers."""
    moves = zip(truth.shape[2:], (down, right), strict=True)
    inside = (..., *(slice(max(0, move), length + min(0, move)) for length, move in moves))
    seen, wanted = pictures[inside], truth[inside]
    seen_mean, wanted_mean = seen.mean((2, 3), keepdim=True), wanted.mean((2, 3), keepdim=True)
    deviation = seen - seen_mean
    variance = deviation.square().mean((2, 3), keepdim=True)
    gain = (deviation * wanted).mean((2, 3), keepdim=True) / variance
    gain = torch.where(variance > FLAT, gain, 0)
    return pictures * gain + (wanted_mean - gain * seen_mean)


def aligned(guess: Pictures, truth: Pictures) -> Pictures:
    """Each guess as it is, or mirrored or not, moved by up to two pixels and recoloured: whatever is nearest.

    Nearest means the lowest MSE over the whole picture, so alignment never raises it. It tells any guess, even a
    constant one, the brightness and contrast of the truth: compare it only with baselines aligned in the same way.
    """
    parts = zip(guess.clamp(0, 1).split(64), truth.split(64), strict=True)
    return torch.cat([nearest_copy(some, wanted) for some, wanted in parts])


def nearest_copy(guess: Pictures, truth: Pictures) -> Pictures:
    best, lowest = guess, squared_error(guess, truth)
    moves = range(-REACH, REACH + 1)
    for picture, down, right in product((guess, guess.flip(3)), moves, moves):
        candidate = recoloured(moved(picture, down, right), truth, down, right).clamp_(0, 1)
        error = squared_error(candidate, truth)
        better = error < lowest
        best = torch.where(better[:, None, None, None], candidate, best)
        lowest = torch.where(better, error, lowest)
    return best
