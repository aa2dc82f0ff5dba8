"""Decoders that go on from what another has learnt."""

from dataclasses import replace

import pytest
import torch

from attcem.attacks import SUITES
from attcem.attacks.class_aware import ClassAware
from attcem.attacks.decoder import Decoder
from attcem.attacks.feedback import Feedback
from attcem.attacks.inversion import Inversion
from attcem.types import Workbook
from tests.attacks.conftest import view_of
from tests.probes import Coarse

SHALLOW = Decoder(8, 1, cycle=20, doublings=0)
GROWN = {
    "deeper": Decoder(8, 3, cycle=10, doublings=0, start=SHALLOW),
    "another loss": replace(SHALLOW, loss="mse_ssim", start=SHALLOW),
    "with attention": Decoder(8, 2, attention=True, start=SHALLOW),
    "deeper and class-aware": Decoder(8, 2, start=ClassAware(SHALLOW, cycle=20, doublings=0)),
    "with feedback": Feedback(SHALLOW, cycle=20, doublings=0),
    "with feedback and class": Feedback(ClassAware(SHALLOW, cycle=20, doublings=0), cycle=20, doublings=0),
}


@pytest.fixture(scope="module")
def view(thumbnails):
    """What one test has trained the others find in the workbook."""
    return view_of(Coarse(), thumbnails, threat="query", images=20)[0]


@pytest.mark.parametrize("kind", GROWN)
def test_it_begins_with_the_guess_of_its_start(kind, view):
    decoder = GROWN[kind]
    before = decoder.start.trained(view, 0)
    grown = Inversion(decoder, view, 0, before)
    assert torch.equal(grown.invert(view.targets), before.invert(view.targets))
    assert len(list(grown.network.parameters())) >= len(list(before.network.parameters()))
    assert grown.lr == before.lr, "the rate that its start settled on"


def test_a_deeper_one_has_the_blocks_that_it_was_asked_for(view):
    grown, before = (GROWN["deeper"].trained(view, 0).network, SHALLOW.trained(view, 0).network)
    assert len(grown.body) == 3 and len(before.body) == 1
    looks = GROWN["with attention"].brief().trained(view, 0).network
    assert [type(layer).__name__ for layer in looks.body] == ["Residual", "CellAttention", "Residual"]


def test_what_later_attacks_find_trained_is_the_network_alone(view):
    training = SHALLOW.trained(view, 0)
    assert training.steps == 20 and not training.optimiser.state
    assert all(parameter.grad is None for parameter in training.network.parameters())
    kept, weights = training.network.state_dict(), training.weights
    assert {name: tensor.data_ptr() for name, tensor in kept.items()} == {
        name: tensor.data_ptr() for name, tensor in weights.items()
    }


def test_one_that_is_told_the_class_keeps_the_blocks_of_its_start_and_solves_the_rest_anew(view):
    before = SHALLOW.trained(view, 0)
    told = Inversion(ClassAware(SHALLOW), view, 0, before)
    kept, grown = dict(before.network.named_parameters()), dict(told.network.named_parameters())
    for name in kept:
        assert torch.equal(grown[name], kept[name]) != name.startswith("linear"), name
    assert grown["terms.0.residuals"].any(), "it begins around the public class means"
    assert told.curve[0] < 1.5 * before.best


def test_it_goes_on_without_touching_its_start(view):
    before = SHALLOW.trained(view, 0)
    guess, loss = before.invert(view.targets), before.best
    after = GROWN["deeper"].trained(view, 0)
    assert after.curve[0] == pytest.approx(loss) and after.best <= after.curve[0], "it begins where that one ended"
    assert len(set(after.curve)) > 1, "and learns"
    assert torch.equal(before.invert(view.targets), guess)


def test_a_start_that_nobody_has_trained_is_trained_and_kept(view):
    view = replace(view, workbook=Workbook())
    found = GROWN["deeper"](view, seed=0)
    assert (SHALLOW, 0) in view.workbook.models
    assert torch.equal(found.images, GROWN["deeper"](replace(view, workbook=Workbook()), seed=0).images)


@pytest.mark.parametrize(
    "other",
    [
        {"channels": 16},
        {"blocks": 2},
        {"attention": True},
    ],
)
def test_a_start_that_does_not_fit_is_refused(other):
    with pytest.raises(ValueError, match="choose a start that is as wide, no deeper"):
        Decoder(8, 1, start=replace(SHALLOW, **other))


def test_it_builds_on_its_start_and_is_brief_from_the_first():
    twice = replace(GROWN["deeper"], blocks=4, start=GROWN["deeper"])
    assert twice.builds_on == GROWN["deeper"] and GROWN["deeper"].builds_on == SHALLOW and SHALLOW.builds_on == SHALLOW
    assert twice.first == SHALLOW and twice.brief().start == SHALLOW.brief()
    standard = SUITES["standard"].attacks
    builders = {"decoder_large": "decoder_res8"}
    builders |= dict.fromkeys(["decoder_res8", "decoder_ssim", "decoder_class", "decoder_feedback"], "decoder_medium")
    for name, start in builders.items():
        assert standard[name].builds_on == standard[start]
