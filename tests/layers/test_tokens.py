"""Latents as tokens, one by one."""

import pytest
import torch

from attcem.layers import TOKENS, WIDEST
from tests.defences.slow import slow_tokens

LATENTS = [(1,), (4,), (5, 3), (3, 1, 1), (8, 2, 3)]


@pytest.mark.parametrize("latent", LATENTS, ids=str)
@pytest.mark.parametrize("kind", TOKENS)
def test_equal_to_the_slow_loop(kind, latent):
    z = torch.randn(5, *latent, dtype=torch.double)
    tokenise = TOKENS[kind](latent, 6).double()
    found = tokenise(z)
    slow = torch.stack([torch.stack(slow_tokens(tokenise, kind, one)) for one in z])
    assert found.shape == slow.shape and found.shape[-1] == tokenise.width
    torch.testing.assert_close(found, slow, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("flat", (2, 1, 25088)), ("spatial", (2, 49, 512)), ("pooled", (2, 1, 512)), ("project", (2, 49, 128))],
)
def test_shapes_of_a_convolutional_latent(kind, shape):
    assert TOKENS[kind]((512, 7, 7), 128)(torch.zeros(2, 512, 7, 7)).shape == shape


def test_only_a_projection_has_weights_and_they_do_not_grow_with_positions():
    sizes = {kind: sum(p.numel() for p in TOKENS[kind]((512, 7, 7), 128).parameters()) for kind in TOKENS}
    assert sizes == {"flat": 0, "spatial": 0, "pooled": 0, "project": 512 * 128 + 128}
    assert WIDEST == 4096


def test_a_whole_latent_as_one_token_lies_in_memory_as_the_latent_does():
    z = torch.randn(2, 3, 2, 2)
    assert torch.equal(TOKENS["flat"]((3, 2, 2), 0)(z)[:, 0], z.flatten(1))
