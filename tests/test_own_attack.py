"""An attack of one's own runs beside a suite's, or alone, and is told what is wrong with what it returns."""

from dataclasses import dataclass

import pytest
import torch

import attcem
from attcem.attacks import SUITES
from attcem.compare import compare
from tests.conftest import shrink


@dataclass(frozen=True)
class Says(attcem.Attack):
    """Returns what it is told to, made from grey pictures."""

    what: str = "grey"

    def __call__(self, view: attcem.View, *, seed: int = 0, progress: bool = False) -> attcem.Reconstruction:
        grey = torch.full((len(view.targets), *view.public[:1].pixels().shape[1:]), 0.5)
        answers = {
            "grey": attcem.Reconstruction(grey),
            "few": attcem.Reconstruction(grey[:3]),
            "a tensor": grey,
            "too bright": attcem.Reconstruction(3 * grey),
            "nan": attcem.Reconstruction(torch.nan * grey),
            "too many": attcem.Reconstruction(grey.repeat(2, 1, 1, 1)),
            "too small": attcem.Reconstruction(grey[:, :, ::2]),
        }
        return answers[self.what]


@pytest.fixture(scope="module")
def audited(fashion):
    data = shrink(fashion, private=128, validation=20, public=128, test=20)
    model = attcem.split("vgg11_bn", data=data, cut=4, bottleneck=4, width=0.05)
    guard = attcem.Noise(0.1)
    attcem.fit(model, guard, data, epochs=1, progress=False)
    return lambda **options: attcem.audit(model, guard, data, images=6, progress=False, **options)


def test_it_runs_beside_a_suite_or_alone(audited):
    beside = audited(suite="smoke", attacks={"mine": Says()})
    assert list(beside.attacks) == [*SUITES["smoke"].attacks, "mine"]
    alone = audited(suite="none", attacks={"mine": Says()})
    assert list(alone.attacks) == ["mine"] and alone.worst.mse == pytest.approx(alone.attacks["mine"].mse)


def test_results_with_and_without_it_are_not_compared(audited):
    without, having = audited(suite="smoke"), audited(suite="smoke", attacks={"mine": Says()})
    assert having.suite.startswith("smoke-") and having.suite != without.suite
    with pytest.raises(ValueError, match="suite"):
        compare([without, having])


@pytest.mark.parametrize(
    ("what", "advice"),
    [
        ("few", "no attack guesses more than 3 of 6 images: audit with images=3, or beside a suite"),
        ("a tensor", "the attack mine returned Tensor: return attcem.Reconstruction"),
        ("too bright", r"not in \[0, 1\]: clamp"),
        ("nan", r"not in \[0, 1\]"),
        ("too many", r"shape \(12, 1, 28, 28\): the first targets, at most 6, each as \(1, 28, 28\)"),
        ("too small", r"shape \(6, 1, 14, 28\)"),
    ],
)
def test_what_cannot_be_scored_is_refused(what, advice, audited):
    with pytest.raises(ValueError, match=advice):
        audited(suite="none", attacks={"mine": Says(what)})


def test_names_and_kinds_are_checked_before_any_work(audited):
    with pytest.raises(ValueError, match="has an attack called 'decoder_small': call yours otherwise"):
        audited(suite="smoke", attacks={"decoder_small": Says()})
    with pytest.raises(ValueError, match=r"'mine' is .*, no attack: give an instance"):
        audited(suite="smoke", attacks={"mine": Says})
    with pytest.raises(ValueError, match=r"name cannot be '\.\./mine'"):
        audited(suite="smoke", attacks={"../mine": Says()})
    with pytest.raises(ValueError, match="nothing to attack with"):
        audited(suite="none")
