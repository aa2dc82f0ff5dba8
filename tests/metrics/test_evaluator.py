"""The independent judge learns, repeats itself, and disturbs nobody."""

import pytest
import torch

from attcem.metrics import Evaluator
from attcem.metrics.evaluator import batches, blur, moved
from attcem.types import Images
from tests.conftest import noise_images


@pytest.fixture(scope="module")
def bright_or_dark() -> Images:
    """Three classes told apart by where a patch is bright; mirrored pictures keep their class."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(600) % 3
    x = torch.randint(0, 60, (600, 20, 20, 3), generator=generator)
    for row, place in enumerate((3, 8, 13)):
        x[y == row, place : place + 4, :, row] += 150
    return Images(x.to(torch.uint8), y)


@pytest.fixture(scope="module")
def judge(bright_or_dark) -> Evaluator:
    return Evaluator.train(bright_or_dark, 3, seed=0, epochs=6, batch=32)


def test_learns_a_toy_problem(judge, bright_or_dark):
    assert judge.accuracy > 0.95
    right = judge.recognised(bright_or_dark.pixels(), bright_or_dark.y)
    assert right.mean() > 0.95 and set(right.tolist()) <= {0.0, 1.0}
    wrong = judge.recognised(bright_or_dark.pixels(), (bright_or_dark.y + 1) % 3)
    assert wrong.mean() < 0.05


def test_its_accuracy_is_measured_on_images_held_out():
    pure_noise = noise_images(300, (1, 16, 16), classes=2)
    assert Evaluator.train(pure_noise, 2, epochs=20, batch=32).accuracy < 0.8


def test_the_same_seed_gives_the_same_judge_and_leaves_the_random_numbers_alone(bright_or_dark):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second, other = (Evaluator.train(bright_or_dark, 3, seed=s, epochs=1, batch=32) for s in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    weights = [judge.network.state_dict() for judge in (first, second, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not torch.equal(weights[0]["head.weight"], weights[2]["head.weight"])
    assert first.accuracy == second.accuracy


def test_distance_is_zero_for_a_copy_and_grows_with_the_damage(judge, bright_or_dark):
    truth = bright_or_dark[:30].pixels()
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    copy, little, much = (judge.distance(truth + size * noise, truth) for size in (0, 0.05, 0.5))
    assert copy.abs().max() < 1e-6
    assert (little > 0).all() and (much > little).all() and much.max() <= 2


def test_distance_is_the_mean_over_depths_of_unit_features(judge, bright_or_dark):
    guess, truth = bright_or_dark[:3].pixels(), bright_or_dark[3:6].pixels()
    with torch.no_grad():
        layers = zip(judge.network.features(guess), judge.network.features(truth), strict=True)
        expected = torch.zeros(3)
        for a, b in layers:
            for i in range(3):
                places = a[i].flatten(1).T, b[i].flatten(1).T
                unit = [part / part.norm(dim=1, keepdim=True).clamp_min(1e-12) for part in places]
                expected[i] += (unit[0] - unit[1]).square().sum(1).mean() / 3
    torch.testing.assert_close(judge.distance(guess, truth), expected)


def test_many_pictures_are_judged_as_each_alone(judge):
    some = noise_images(300, (3, 20, 20), classes=3, seed=1)
    x, y = some.pixels(), some.y
    alone = torch.cat([judge.recognised(x[i : i + 1], y[i : i + 1]) for i in (0, 255, 256, 299)])
    assert torch.equal(judge.recognised(x, y)[[0, 255, 256, 299]], alone)
    torch.testing.assert_close(judge.distance(x, x.flip(0))[256:257], judge.distance(x[256:257], x[43:44]))


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 9, 7), (3, 40, 40)])
def test_any_size_and_fewer_images_than_a_batch(shape):
    some = noise_images(40, shape)
    judge = Evaluator.train(some, 4, epochs=4)
    assert judge.recognised(some.pixels(), some.y).shape == (40,)
    assert judge.distance(some.pixels(), some.pixels()).shape == (40,)


def test_effort_is_capped_by_images_seen_and_by_epochs(monkeypatch):
    taken = []

    def counted(images, batch, steps, generator):
        taken.append(steps)
        return batches(images, batch, steps, generator)

    monkeypatch.setattr("attcem.metrics.evaluator.batches", counted)
    some = noise_images(100, (1, 16, 16))
    for settings in ({"epochs": 2}, {"seen": 40}, {"seen": 1}):
        Evaluator.train(some, 4, batch=10, **settings)
    assert taken == [18, 16, 1]  # 90 are trained on; an image of 16×16 counts a quarter


def test_a_single_image_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        Evaluator.train(noise_images(1), 4)


def test_moves_are_those_of_a_slow_loop():
    x = noise_images(6, (2, 5, 4)).x
    down, right = torch.tensor([0, 1, -1, 2, 0, -2]), torch.tensor([0, 0, 1, -1, 2, -2])
    flip = torch.tensor([False, True, False, True, True, False])
    found = moved(x, down, right, flip)
    for b in range(6):
        for i in range(5):
            for j in range(4):
                column = 3 - j if flip[b] else j
                near = (i + int(down[b])), (column + int(right[b]))
                assert torch.equal(found[b, i, j], x[b, min(max(near[0], 0), 4), min(max(near[1], 0), 3)])


def test_a_batch_keeps_its_labels_and_every_image_comes_once_an_epoch():
    marked = Images(torch.arange(30, dtype=torch.uint8).repeat_interleave(64).reshape(30, 8, 8, 1), torch.arange(30))
    seen = list(batches(marked, 10, 3, torch.Generator().manual_seed(0)))
    assert sorted(torch.cat([y for _, y in seen]).tolist()) == list(range(30))
    for x, y in seen:
        torch.testing.assert_close(x[:, 0, 4, 4] * 255, y.float())


def test_blur_keeps_the_mean_of_a_flat_picture_and_spreads_a_point():
    assert torch.allclose(blur(torch.full((1, 1, 6, 6), 0.4)), torch.tensor(0.4))
    point = torch.zeros(1, 1, 9, 9)
    point[..., 4, 4] = 1
    assert blur(point)[0, 0, 4, 4] == pytest.approx(1 / 9) and blur(point).count_nonzero() == 25
