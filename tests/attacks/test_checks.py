"""What a result says against its own attacks, and the curves that it draws from them."""

import pytest
import torch

from attcem.attacks import ATTACKS, Reconstruction
from attcem.attacks.checks import Evidence, adequacy_flags
from attcem.attacks.decoder import Decoder
from attcem.attacks.variant import Repeated, curves


def evidence(means, *, suite=None, doubts=None, **known):
    """Two hundred images, all as hard as each other for an attack; gains of the attacks that doubt themselves."""
    suite, doubts = suite or {"decoder": Decoder(32, 2)}, doubts or {}
    nothing = torch.zeros(200, 1, 28, 28)
    guesses = {name: Reconstruction(nothing, [], ["cut short"] * (name in doubts), doubts.get(name)) for name in suite}
    errors = {name: mean * torch.ones(200) for name, mean in means.items()}
    return Evidence(suite, guesses, errors, **{"accuracy": 0.9, "classes": 10, "undefended": False} | known)


SIZES = {"small": Decoder(32, 2), "large": Decoder(96, 8)}
LEARNING = SIZES | {"linear": ATTACKS["linear"]}
WHITE = {"decoder": Decoder(32, 2), "optimise": ATTACKS["optimise_adam"]}
BLIND = {"decoder": Decoder(32, 2), "substitute": ATTACKS["substitute"]}


@pytest.mark.parametrize(
    ("means", "known", "said"),
    [
        ({"decoder": 0.01}, {"undefended": True}, None),
        ({"decoder": 0.05}, {}, None),
        ({"decoder": 0.07}, {}, "they failed"),
        ({"decoder": 0.05}, {"undefended": True}, "too weak to judge by"),
        ({"decoder": 0.01}, {"accuracy": 0.15}, "near chance"),
        ({"decoder": 0.01}, {"frozen": True}, "noise is missing"),
        ({"small": 0.01, "large": 0.0096}, {"suite": SIZES}, None),
        ({"small": 0.01, "large": 0.009}, {"suite": SIZES}, "a still larger one may find more"),
        ({"linear": 0.05, "small": 0.04, "large": 0.04}, {"suite": LEARNING}, None),
        (
            {"linear": 0.05, "small": 0.04, "large": 0.0499},
            {"suite": LEARNING},
            "large: no better than the linear guess",
        ),
        ({"linear": 0.05, "small": 0.0499, "large": 0.0499}, {"suite": LEARNING}, None),  # nothing to learn
        ({"small": 0.01, "large": 0.065}, {"suite": SIZES, "undefended": True}, "worse than the mean image"),
        ({"decoder": 0.01, "optimise": 0.0104}, {"suite": WHITE}, None),
        ({"decoder": 0.01, "optimise": 0.011}, {"suite": WHITE}, "gradients may be masked"),
        ({"decoder": 0.02, "substitute": 0.03}, {"suite": BLIND}, None),
        ({"decoder": 0.02, "substitute": 0.065}, {"suite": BLIND}, None),
        (
            {"decoder": 0.02, "substitute": 0.065},
            {"suite": BLIND, "undefended": True},
            "substitute: worse than the mean",
        ),
        ({"decoder": 0.02, "substitute": 0.01}, {"suite": BLIND}, "without access to the device"),
    ],
)
def test_flags(means, known, said):
    flags = adequacy_flags(evidence(means | {"mean_image": 0.06}, **known))
    assert (len(flags) == 1 and said in flags[0]) if said else not flags


PAIR = {"first": Decoder(32, 2), "second": Decoder(32, 2)}
AVERAGED = PAIR | {"first": Repeated(Decoder(32, 2), 4)}


@pytest.mark.parametrize(
    ("means", "known", "named"),
    [
        ({"first": 0.01, "second": 0.02}, {"doubts": {"first": 0.05}}, "first: cut short (about 5% off"),
        ({"first": 0.01, "second": 0.02}, {"doubts": {"second": 0.3}}, None),  # would end at .014
        ({"first": 0.01, "second": 0.0104}, {"doubts": {"second": 0.1}}, "second: cut short (about 6% off"),
        ({"first": 0.01, "second": 0.0104}, {"doubts": {"second": 0.045}}, None),  # by less than a hundredth
        ({"first": 0.01, "second": 0.01}, {"doubts": {"first": 0.05, "second": 0.2}}, "second: cut short (about 20%"),
        ({"first": 0.01, "second": 0.05}, {"doubts": {"second": None}}, "second: cut short"),  # it cannot tell
        ({"first": 0.01, "second": 0.02}, {"doubts": {"first": 0.3}, "suite": AVERAGED}, None),  # counts elsewhere
    ],
)
def test_an_attack_cut_short_is_flagged_where_it_may_lower_the_worst_case(means, known, named):
    flags = adequacy_flags(evidence(means | {"mean_image": 0.06}, **{"suite": PAIR} | known))
    assert (len(flags) == 1 and flags[0].startswith(named)) if named else not flags


def test_what_an_attack_may_still_gain_is_counted_image_by_image():
    seen = evidence({"first": 0.01, "second": 0.02, "mean_image": 0.06}, suite=PAIR, doubts={"second": 0.5})
    seen.errors["second"][:100] = 0.01  # as good as the other on half of the images, lost on the rest
    seen.errors["second"][150:] = torch.nan
    (flag,) = adequacy_flags(seen)
    assert "about 25% off" in flag
    seen.errors["first"][:] = torch.nan  # nobody attacked the last images: they count for neither
    (flag,) = adequacy_flags(seen)
    assert "about 50% off" in flag


def test_the_curves_collect_attacks_that_differ_in_one_thing():
    suite = {
        name: ATTACKS[name] for name in ("decoder_small", "decoder_repeat_4", "decoder_pairs_100", "decoder_medium")
    }
    means = {"decoder_small": 3.0, "decoder_repeat_4": 2.0, "decoder_pairs_100": 5.0, "decoder_medium": 1.0}
    found = curves(suite, means.__getitem__)
    assert found == {"repeats": {"1": 3.0, "4": 2.0}, "pairs": {"all": 3.0, "100": 5.0}}
