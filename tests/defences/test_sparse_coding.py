"""Sparse coding: equal to the slow loop, settling where theory says, whatever the dictionary."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attcem.defences.lca import SparseCoding, bound_stretch

SHAPES = [((3, 4, 5), 3, 4), ((2, 1, 1), 3, 5), ((6, 1, 1), 1, 9), ((4, 3, 3), 1, 2)]
"""Of an input, then kernel and atoms."""


def made(shape, kernel, atoms, *, threshold=0.3, iters=10, seed=0):
    torch.manual_seed(seed)
    layer = SparseCoding(shape[0], atoms, threshold=threshold, iters=iters, kernel=kernel).double()
    return layer, torch.randn(3, *shape, dtype=torch.double)


def matrix(layer, shape):
    """Φ [inputs, codes], column by column: an atom, cut off at the border, for each place of each neuron."""
    (m, _, k, _), (c, h, w) = layer.weight.shape, shape
    unit = layer.weight.detach() / layer.weight.detach().square().sum((1, 2, 3), keepdim=True).sqrt()
    columns = []
    for atom in range(m):
        for i in range(h):
            for j in range(w):
                column = torch.zeros(c, h + k - 1, w + k - 1, dtype=torch.double)
                column[:, i : i + k, j : j + k] = unit[atom]
                reach = k // 2
                columns.append(column[:, reach : reach + h, reach : reach + w].flatten())
    return torch.stack(columns, 1)


def make_alike(layer, alike):
    """Atoms from as they were drawn (0) to all the same (1)."""
    layer.weight.data = alike * torch.ones_like(layer.weight) + (1 - alike) * layer.weight


def largest_eigenvalue(layer, shape):
    phi = matrix(layer, shape)
    return torch.linalg.eigvalsh(phi @ phi.T)[-1].item()


def soft(u, threshold):
    return u.sign() * (u.abs() - threshold).clamp_min(0)


@settings(max_examples=20)
@given(which=st.sampled_from(SHAPES), iters=st.integers(1, 12), threshold=st.floats(0, 1), seed=st.integers(0, 99))
@torch.no_grad()
def test_equal_to_the_dynamics_written_with_a_matrix(which, iters, threshold, seed):
    layer, x = made(*which, threshold=threshold, iters=iters, seed=seed)
    phi, flat = matrix(layer, which[0]), x.flatten(1)
    tau = max(1.0, layer.stretch(layer.dictionary, x).item())
    for sample, code, drawn in zip(flat, *(out.flatten(1) for out in layer(x)), strict=True):
        u = torch.zeros(phi.shape[1], dtype=torch.double)
        for _ in range(iters):
            a = soft(u, threshold)
            u = u + (phi.T @ sample - u - (phi.T @ phi @ a - a)) / tau
        torch.testing.assert_close(code, soft(u, threshold), atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(drawn, phi @ soft(u, threshold), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("which", SHAPES, ids=str)
@torch.no_grad()
def test_it_settles_at_the_sparsest_explanation(which):
    layer, x = made(*which, iters=3000)
    code, drawn = layer(x)
    fit = layer.match(layer.dictionary, x - drawn)  # the gradient of ½‖x − Φa‖², which the threshold must balance
    active = code != 0
    assert active.any() and not active.all()
    torch.testing.assert_close(fit[active], 0.3 * code[active].sign(), atol=1e-6, rtol=0)
    assert fit.abs().max() <= 0.3 + 1e-6


@settings(max_examples=20)
@given(which=st.sampled_from(SHAPES), alike=st.floats(0, 1), seed=st.integers(0, 99))
@example(which=SHAPES[0], alike=0.125, seed=11)  # power iteration alone finds .40 of the largest eigenvalue
@torch.no_grad()
def test_no_dictionary_makes_it_diverge_and_tau_follows_the_largest_eigenvalue(which, alike, seed):
    layer, x = made(*which, iters=200, seed=seed)
    make_alike(layer, alike)
    largest = largest_eigenvalue(layer, which[0])
    assert 0.5 * largest < layer.stretch(layer.dictionary, x).item() <= largest * (1 + 1e-9)
    code, drawn = layer(x)
    energy = 0.5 * (x - drawn).flatten(1).square().sum(1) + 0.3 * code.flatten(1).abs().sum(1)
    assert (energy <= 0.5 * x.flatten(1).square().sum(1) + 1e-9).all()  # that of saying nothing


@settings(max_examples=40)
@given(
    shape=st.tuples(*[st.integers(1, 6)] * 3),
    kernel=st.sampled_from([1, 3, 5]),
    atoms=st.integers(1, 6),
    alike=st.floats(0, 1),
)
@torch.no_grad()
def test_the_bound_is_never_below_the_largest_eigenvalue(shape, kernel, atoms, alike):
    layer, _ = made(shape, kernel, atoms)
    make_alike(layer, alike)
    bound = bound_stretch(layer.dictionary, *shape[1:]).item()
    assert bound >= largest_eigenvalue(layer, shape) * (1 - 1e-9)


@torch.no_grad()
def test_the_settled_drawing_never_moves_two_inputs_apart():
    layer, _ = made((3, 4, 4), 3, 6, iters=800)
    x = torch.randn(2, 3, 4, 4, dtype=torch.double)
    for step in (0.01, 0.3, 3.0):
        pair = torch.stack([x[0], x[0] + step * x[1]])
        drawn = layer(pair)[1]
        assert (drawn[0] - drawn[1]).norm() <= (pair[0] - pair[1]).norm() * (1 + 1e-6)


@torch.no_grad()
def test_a_higher_threshold_is_sparser_until_nothing_is_left():
    shares = []
    for threshold in (0.0, 0.3, 1.0, 100.0):
        layer, x = made((3, 5, 5), 3, 6, threshold=threshold, iters=50)
        shares.append((layer(x)[0] != 0).double().mean().item())
    assert shares == sorted(shares, reverse=True) and shares[0] == 1 and shares[-1] == 0


@torch.no_grad()
def test_one_sample_is_no_business_of_another():
    layer, x = made((3, 4, 5), 3, 4)
    torch.testing.assert_close(layer(x)[1][:1], layer(x[:1])[1])


@torch.no_grad()
def test_atoms_have_length_one_whatever_the_weights():
    layer, x = made((3, 4, 5), 3, 4)
    before = layer(x)[1]
    layer.weight.data *= torch.tensor([1e-3, 1.0, 7.0, 1e3], dtype=torch.double).view(-1, 1, 1, 1)
    torch.testing.assert_close(layer.dictionary.flatten(1).norm(dim=1), torch.ones(4, dtype=torch.double))
    torch.testing.assert_close(layer(x)[1], before)


@pytest.mark.parametrize("which", [((2, 3, 3), 3, 3), ((4, 1, 1), 1, 6)], ids=str)
def test_gradients(which):
    layer, x = made(*which, iters=5)

    def drawn(x, weight):
        return torch.func.functional_call(layer, {"weight": weight}, x)[1]

    assert torch.autograd.gradcheck(drawn, (x.requires_grad_(), layer.weight), fast_mode=True)
