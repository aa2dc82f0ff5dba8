"""The refined decoder: nearer to what pictures show, no farther from the pictures."""

from dataclasses import replace

import pytest
import torch

from attcem.attacks.decoder import Decoder
from attcem.attacks.inversion import snapshot
from attcem.attacks.refined import Refined, Sight, Step, Viewer, farthest
from attcem.defences import Noise
from attcem.types import Images
from tests.attacks.conftest import view_of
from tests.conftest import noise_images
from tests.probes import Pixels

VIEWER = Viewer(channels=8, steps=30, batch=64)
TINY = Refined(Decoder(8, 1, cycle=60, doublings=0), steps=80, viewer=VIEWER, channels=8, blocks=1)


@pytest.fixture(scope="module")
def start(thumbnails):
    return TINY.start.trained(view_of(Pixels(), thumbnails, Noise(0.5), threat="query")[0], 0)


def test_what_pictures_show_comes_nearer_at_the_same_error(start):
    step, share, (before, after) = TINY.trained(start)
    assert 0 < share <= 1 and after <= 1.001 * (1 + TINY.allowance) * before
    judge = replace(VIEWER, channels=12).trained(start.own, start.device)  # another classifier than the one it pleased
    guess = start.invert(start.held_recording(torch.arange(len(start.held_out))))
    with torch.no_grad():
        refined = (guess + share * step(guess)).clamp(0, 1)
        assert judge.apart(refined, start.held_out) < 0.97 * judge.apart(guess, start.held_out)


def test_the_decoder_it_starts_from_stays_as_it_was(start):
    before = snapshot(start.network)
    replace(TINY, steps=2).trained(start)
    assert all(torch.equal(tensor, start.network.state_dict()[name]) for name, tensor in before.items())


def test_the_share_is_the_largest_that_the_allowance_permits():
    error, added = 0.1 * torch.randn(2, 8, 1, 4, 4)
    rise = 0.02 * error.square().mean().item()
    share = farthest(error, added, rise)
    reached = (error + share * added).square().mean().item()
    assert 0 < share < 1 and reached == pytest.approx(error.square().mean().item() + rise, rel=1e-4)
    assert farthest(error, -0.5 * error, rise) == 1.0, "a step that lowers the error is taken whole"
    assert farthest(error, 0 * error, rise) == 0.0


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 33, 30)])
def test_a_step_adds_nothing_at_first_and_fits_any_size(shape):
    step, x = Step(shape[0], 8, 1), torch.randn(2, *shape)
    assert step(x).shape == x.shape and not step(x).any()


def test_a_viewer_learns_its_classes_and_one_class_leaves_it_as_drawn():
    images = noise_images(64)
    x = images.x // 8 + (images.y * 60).to(torch.uint8)[:, None, None, None]
    sight = replace(VIEWER, steps=40).trained(Images(x, images.y), torch.device("cpu"))
    assert (sight(Images(x, images.y).pixels()).argmax(1) == images.y).float().mean() > 0.9
    alone = VIEWER.trained(Images(x, images.y * 0 + 7), torch.device("cpu"))
    assert isinstance(alone, Sight) and alone.head.out_features == 1
