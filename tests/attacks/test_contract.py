"""Every attack breaks an encoder that hides nothing, and gets nothing out of one that says nothing."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attcem.attacks import ATTACKS, BASELINES, SUITES
from attcem.attacks.decoder import Decoder
from attcem.attacks.inversion import Inversion, snapshot
from attcem.attacks.variant import Repeated
from attcem.defences import Noise, Undefended
from attcem.threat import build_view
from tests.attacks.conftest import at_most, attack_on, view_of
from tests.probes import Nothing, Patches, Pixels, split_with

pytestmark = pytest.mark.usefixtures("narrow")
OPEN = {"map": Pixels(), "vector": nn.Flatten(), "tokens": Patches()}
SILENT = {"map": Nothing(), "vector": Nothing(20), "tokens": Nothing(9, 8)}
OF_EVERY_KIND = {type(attack): name for name, attack in reversed(ATTACKS.items())}.values()
every_attack = pytest.mark.parametrize("name", ATTACKS)


@pytest.fixture(scope="module")
def attack_with(thumbnails):
    """One view of each device for all attacks, as in an audit: who builds on a decoder finds it in the workbook.

    Where there is nothing to learn, few public images show it.
    """
    few = replace(thumbnails, public=thumbnails.public[:200])
    devices = {f"open {shape}": (encoder, thumbnails) for shape, encoder in OPEN.items()}
    devices |= {f"silent {shape}": (encoder, few) for shape, encoder in SILENT.items()}
    devices |= {"drowned": (Pixels(), few, Noise(1000))}
    views = {name: view_of(*device, threat="white_box") for name, device in devices.items()}
    return lambda name, device: attack_on(*views[device], at_most(ATTACKS[name].brief(), channels=16))


@every_attack
def test_breaks_the_identity_encoder(name, attack_with):
    _, mse, _ = attack_with(name, "open map")
    assert mse < 1e-3, "PSNR below 30 dB"


@pytest.mark.parametrize("shape", ["vector", "tokens"])
@pytest.mark.parametrize("name", ["linear", "decoder_small", "decoder_class", "decoder_feedback"])
def test_finds_most_of_the_picture_in_latents_without_layout(name, shape, attack_with):
    _, mse, mean = attack_with(name, f"open {shape}")
    assert mse < 0.25 * mean


@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, "map") for name in ATTACKS] + [(name, shape) for name in OF_EVERY_KIND for shape in ("vector", "tokens")],
)
def test_does_no_better_than_the_mean_image_on_a_constant_encoder(name, shape, attack_with):
    _, mse, mean = attack_with(name, f"silent {shape}")
    assert 0.99 * mean < mse < 1.2 * mean


@every_attack
def test_noise_that_drowns_the_latent_leaves_the_mean_image(name, attack_with):
    _, mse, mean = attack_with(name, "drowned")
    assert mse > 0.97 * mean


def test_the_same_seed_gives_the_same_guess(thumbnails):
    view, _ = view_of(Pixels(), thumbnails, threat="query", images=20)
    attack = replace(ATTACKS["decoder_small"], cycle=10, doublings=0)
    first, second, other = (attack(view, seed=seed).images for seed in (0, 0, 1))
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_an_attack_cut_short_says_so_and_a_plateau_does_not(attack_with, network, small):
    hard, _, _ = attack_with("decoder_small", "silent map")
    assert not hard.flags  # nothing to learn: doubling the effort gains nothing
    view, _ = build_view(network, Undefended(), small, images=20)
    short = replace(ATTACKS["decoder_small"], cycle=30, doublings=1)(view)
    assert "stopped before it finished" in short.flags[0]
    assert short.gain > 0.02, "the last doubling, of thirty steps to ninety, still gained"


def test_whoever_starts_from_a_decoder_inherits_its_flags(pictures, network, small):
    view, _ = build_view(network, Undefended(), small, images=4, threat="white_box")
    brief = ATTACKS["decoder_gan"].brief()
    attack = replace(brief, start=replace(brief.start, doublings=0))
    found = attack(view)
    assert "stopped before it finished" in found.flags[0]
    assert found.gain is None, "after one cycle nobody can tell what another would gain"


@pytest.mark.parametrize(
    ("high", "low", "taken", "cycles"),
    [(0.2, 1.0, 1.0, 1), (0.1, 0.3, 0.25, 2), (0.1, 0.15, 1.0, 2), (0.0, 0.0, 1.0, 2)],
    ids=["it learns", "it is stuck", "neither learns much", "neither learns"],
)
def test_a_lower_rate_is_taken_only_where_the_higher_one_hardly_learns(
    high, low, taken, cycles, thumbnails, monkeypatch
):
    view, _ = view_of(Pixels(), thumbnails, threat="query", images=20)
    training = Inversion(Decoder(4, 1, lr=1.0), view, 0)
    linear, begun_from = snapshot(training.network), []

    def run_cycle(self, steps, title, progress):
        begun_from.append(snapshot(self.network))
        for parameter in self.network.parameters():
            parameter.data.add_(self.lr)
        self.best, self.weights = self.curve[0] * (1 - (high if self.lr == 1.0 else low)), snapshot(self.network)
        self.curve.append(self.best)
        self.steps += steps
        return self.best

    monkeypatch.setattr(Inversion, "run_cycle", run_cycle)
    reached = training.first_cycle(5, "", False)
    assert training.lr == taken and training.steps == 5 and reached == training.best == training.curve[-1]
    assert len(begun_from) == cycles
    for weights in begun_from:
        assert all(torch.equal(linear[name], tensor) for name, tensor in weights.items())
    for name, parameter in training.network.named_parameters():
        torch.testing.assert_close(parameter.data, linear[name] + taken)


@pytest.mark.parametrize(("guard", "alike"), [(Undefended(), True), (Noise(0.3), False)], ids=["silent", "noisy"])
def test_only_sends_that_differ_are_worth_averaging(guard, alike, network, small):
    view, _ = build_view(network, guard, small, images=20)
    once = Decoder(8, 1, cycle=20, doublings=0)
    deeper = Decoder(8, 2, cycle=10, doublings=0, start=once)
    seen = Repeated(deeper, 4).change(view, 0)
    assert (deeper.trained(view) is deeper.trained(seen)) == alike
    assert (seen.oracle is view.oracle) == alike and deeper.trained(seen).pairs.repeats == (1 if alike else 4)


@pytest.mark.parametrize("suite", SUITES)
def test_suites_are_made_of_listed_attacks(suite):
    assert set(SUITES[suite].attacks) <= set(ATTACKS) and (SUITES[suite].attacks or suite == "none")


@pytest.mark.parametrize("shape", OPEN)
@pytest.mark.parametrize("name", BASELINES)
def test_baselines_need_no_layout(name, shape, thumbnails):
    (wide, truth), (silent, _) = (view_of(kind[shape], thumbnails, threat="query") for kind in (OPEN, SILENT))
    alike = [BASELINES[name](view, truth.y) for view in (wide, silent)]
    assert all(guess.shape == truth.pixels().shape for guess in alike)
    assert torch.equal(*alike) == (name != "nearest_public"), "only this one looks at latents"
    if name == "nearest_public":
        assert (alike[1] == alike[1][:1]).all(), "latents that are all the same name one image"


def test_baselines_are_what_they_say(pictures):
    view, truth = build_view(split_with(Pixels()), Undefended(), pictures, images=50)
    pixels, labels = pictures.public.pixels(), pictures.public.y
    mean = BASELINES["mean_image"](view, truth.y)
    torch.testing.assert_close(mean[7], pixels.mean(0))
    by_class = BASELINES["class_mean"](view, truth.y)
    torch.testing.assert_close(by_class[3], pixels[labels == truth.y[3]].mean(0))
    nearest = BASELINES["nearest_public"](view, truth.y)
    expected = pixels[(pixels - truth.pixels()[5]).square().sum((1, 2, 3)).argmin()]
    assert torch.equal(nearest[5], expected)
    assert (nearest.flatten(1)[:, None] == pixels.flatten(1)[None]).all(2).any(1).all(), "only public images"
