"""What a release is made of: which entries are there, and what they are, each without the other."""

import pytest
import torch

from attcem.defences import LCA, Dropout, Guard, Noise, TopK, Wire
from attcem.maths import apart
from tests.defences.test_contract import LATENTS


@pytest.mark.parametrize("latent", LATENTS, ids=str)
def test_equal_to_taking_one_sample_after_another(latent):
    z = torch.randn(5, *latent) * (torch.rand(5, *latent) < 0.3)
    found = apart(z)
    for row, there, sizes in zip(z.flatten(1).tolist(), *found.values(), strict=True):
        assert there.flatten().tolist() == [float(value != 0) for value in row]
        assert sizes.tolist() == sorted(row, key=abs, reverse=True)


@pytest.mark.parametrize("defence", [TopK(0.1), Dropout(0.5), LCA()], ids=lambda defence: defence.kind)
@pytest.mark.parametrize("latent", LATENTS, ids=str)
def test_positions_tell_no_value_and_values_no_position(defence, latent):
    defence.setup(latent=latent, classes=4, sigma=0.0)
    z = torch.randn(6, *latent)
    pieces = {}
    for name, of in (("z", z), ("doubled", 2 * z), ("mirrored", z.flip(-1))):
        torch.manual_seed(1)
        pieces[name] = defence.pieces(of)
    there, values = pieces["z"].values()
    assert 0 < there.mean() < 1 and set(there.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(there, pieces["doubled"]["positions"])
    assert torch.equal((values != 0).sum(1), there.flatten(1).sum(1))
    if isinstance(defence, TopK):
        assert values.shape[1] == max(1, round(0.1 * z[0].numel()))
        assert torch.equal(values, pieces["mirrored"]["values"])
        assert not torch.equal(there, pieces["mirrored"]["positions"])


def test_a_guard_has_those_of_the_last_link_that_changes_what_is_sent():
    z, keep = torch.randn(4, 3, 5, 5), TopK(0.2)
    once = keep.pieces(z)
    for guard in (Guard(keep), keep + Wire(8)):
        assert all(torch.equal(guard.pieces(z)[name], piece) for name, piece in once.items())
    assert torch.equal((TopK(0.2) + Dropout(0.5)).pieces(z)["positions"].flatten(1).sum(1), torch.full((4,), 15.0))
    coded = LCA() + Noise(0.1)
    coded.setup(latent=z.shape[1:], classes=4, sigma=0.1)
    assert Guard().pieces(z) == Guard(Wire(8)).pieces(z) == coded.pieces(z) == {}


def test_links_before_it_are_in_its_pieces():
    z = torch.randn(4, 3, 5, 5)
    torch.manual_seed(0)
    noisy = Noise(1.0).release(z)
    torch.manual_seed(0)
    found = (TopK(0.2) + Noise(1.0)).pieces(z)
    assert torch.equal(found["positions"], TopK(0.2).pieces(noisy)["positions"])
