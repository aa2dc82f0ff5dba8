"""Distance correlation: against sums written out, the dcor package, and what it must not change under."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths.dcor import distance_correlation

EXACT = {"abs": 1e-9, "rel": 1e-9}
THEIRS = """
import json, sys
from unittest.mock import MagicMock
sys.modules["numba"] = sys.modules["numba.types"] = MagicMock()
import dcor, numpy
pairs = numpy.load(sys.argv[1])
both = dcor.distance_correlation_sqr, dcor.u_distance_correlation_sqr
print(json.dumps([
    [float(theirs(pairs[f"x{i}"], pairs[f"z{i}"], method="naive")) for theirs in both] for i in range(len(pairs) // 2)
]))
"""
"""In a process of its own and without numba, which their plain form does not use: it takes half a minute to compile the
others at the first import, and has been seen to abort."""


def random(n, d, seed):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@st.composite
def pairs(draw):
    """Samples of x and z that share something or nothing, repeats among them, of any size."""
    n, seed = draw(st.integers(8, 15)), draw(st.integers(0, 99))
    p, q = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    x, z = random(n, p, seed), random(n, q, seed + 1)
    z = z + draw(st.sampled_from([0.0, 1.0, 100.0])) * x.sum(1, keepdim=True).square()
    if draw(st.booleans()):
        x[1], z[1] = x[0], z[0]
    return x, z * draw(st.sampled_from([1e-3, 1.0, 1e4]))


def written_out(x, z, unbiased):
    n, centred = len(x), []
    for values in (x.tolist(), z.tolist()):
        d = [[sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) ** 0.5 for two in values] for one in values]
        rows, total = [sum(row) for row in d], sum(map(sum, d))
        one, two = (n - 2, (n - 1) * (n - 2)) if unbiased else (n, n * n)
        centred.append(
            [
                0.0 if unbiased and i == j else d[i][j] - rows[i] / one - rows[j] / one + total / two
                for i in range(n)
                for j in range(n)
            ]
        )
    a, b = centred
    shared, of_x, of_z = (sum(u * v for u, v in zip(*both, strict=True)) for both in ((a, b), (a, a), (b, b)))
    return shared / (of_x * of_z) ** 0.5 if of_x * of_z > 0 else 0.0


@pytest.mark.parametrize("unbiased", [False, True])
@settings(max_examples=40)
@given(pair=pairs())
def test_equal_to_sums_written_out(unbiased, pair):
    x, z = pair
    assert distance_correlation(x, z, unbiased=unbiased).item() == pytest.approx(written_out(x, z, unbiased), **EXACT)


def test_equal_to_the_dcor_package(tmp_path):
    pairs = {}
    for i in range(40):
        n, p, q = 8 + i % 8, 1 + i % 6, 1 + i // 6 % 6
        x = random(n, p, i)
        z = random(n, q, i + 1) + (0.0, 1.0, 100.0)[i % 3] * x.sum(1, keepdim=True).square()
        pairs |= {f"x{i}": x.numpy(), f"z{i}": (z * (1e-3, 1.0, 1e4)[i // 3 % 3]).numpy()}
    np.savez(tmp_path / "pairs.npz", **pairs)
    asked = [sys.executable, "-c", THEIRS, str(tmp_path / "pairs.npz")]
    theirs = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    for i, values in enumerate(theirs):
        x, z = (torch.from_numpy(pairs[f"{name}{i}"]) for name in "xz")
        mine = [distance_correlation(x, z, unbiased=unbiased).item() for unbiased in (False, True)]
        assert mine == pytest.approx(values, **EXACT)
    assert len(theirs) == 40


@pytest.mark.parametrize("unbiased", [False, True])
@settings(max_examples=30)
@given(pair=pairs(), seed=st.integers(0, 99), scale=st.sampled_from([-3.0, 1e-6, 1e6]))
def test_shifts_turns_scales_order_and_roles_change_nothing(unbiased, pair, seed, scale):
    x, z = pair
    value = distance_correlation(x, z, unbiased=unbiased).item()
    turn = torch.linalg.qr(random(z.shape[1], z.shape[1], seed))[0]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    for same in [(x, scale * (z @ turn + 5.0 * z.std())), (x[order], z[order]), (z, x)]:
        assert distance_correlation(*same, unbiased=unbiased).item() == pytest.approx(value, rel=1e-6, abs=1e-6)


@settings(max_examples=30)
@given(pair=pairs())
def test_between_nothing_and_one_which_is_reached_by_what_is_the_same(pair):
    x, z = pair
    assert -1e-12 <= distance_correlation(x, z).item() <= 1 + 1e-12
    assert distance_correlation(x, 2 * x + 1).item() == pytest.approx(1)


def test_it_sees_what_correlation_does_not():
    x = random(400, 1, 0)
    noise = random(400, 1, 1)
    assert distance_correlation(x, x.square(), unbiased=True) > 0.15
    assert abs(distance_correlation(x, noise, unbiased=True).item()) < 0.01


def test_with_many_features_the_biased_form_takes_independence_for_likeness_and_the_corrected_one_does_not():
    x, z = random(16, 784, 0), random(16, 512, 1)
    assert distance_correlation(x, z) > 0.8
    assert abs(distance_correlation(x, z, unbiased=True).item()) < 0.25


@pytest.mark.parametrize("unbiased", [False, True])
def test_gradients(unbiased):
    x, z = random(6, 3, 0), random(6, 2, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: distance_correlation(x, z, unbiased=unbiased), z)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.double])
def test_repeats_and_constants_have_finite_gradients(unbiased, dtype):
    x = random(6, 3, 0).to(dtype)
    repeated = random(6, 2, 1).to(dtype)
    repeated[1] = repeated[0]
    for z in (repeated, torch.full_like(repeated, 0.7), torch.zeros_like(repeated)):
        z.requires_grad_()
        value = distance_correlation(x, z, unbiased=unbiased)
        value.backward()
        assert value.isfinite() and z.grad.isfinite().all()
        assert (value == 0) == (z is not repeated)


def test_two_samples_are_either_the_same_or_not():
    x = torch.tensor([[0.0], [1.0]])
    assert distance_correlation(x, 3 * x - 1) == 1 and distance_correlation(x, 0 * x) == 0


def test_what_only_rounding_tells_apart_tells_nothing():
    # Two between two others on a line: corrected for bias, nothing is left of their distances.
    for size in (0.1, 0.3, 0.7):
        line = size * torch.tensor([[2.381283], [2.381283], [4.747740], [0.329327]], dtype=torch.double)
        assert distance_correlation(line, random(4, 3, 0), unbiased=True) == 0


def test_three_samples_are_too_few_to_correct_the_bias():
    with pytest.raises(ValueError, match="larger batches"):
        distance_correlation(random(3, 2, 0), random(3, 2, 1), unbiased=True)
