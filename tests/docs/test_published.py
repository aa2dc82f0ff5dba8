"""The arithmetic of the page of published numbers: its ratios, its factors, and what it says contradicts itself."""

import re
from math import log10

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "published-numbers.md").read_text()


def table(heading: str) -> list[dict[str, str]]:
    """The first table under a heading."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    names, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")
    ]
    return [dict(zip(names, line, strict=True)) for line in lines]


FREE = {row["data"]: float(row["mean image MSE"]) for row in table("What is free")}
ROWS = table("The rows")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['source']}, {row['MSE, printed']}")
def test_a_ratio_is_the_printed_number_over_its_factor_and_the_mean_image(row):
    value, factor = re.fullmatch(r"(\.\d+)(?: \(÷(\d)\))?", row["in [0, 1]"]).groups()
    mse = float(row["MSE, printed"]) / int(factor or 1)
    assert float(value) == pytest.approx(mse, abs=0.00005)
    assert float(row["ratio"]) == pytest.approx(mse / FREE[row["data"]], abs=0.0006)


def decibels(mse: float) -> float:
    return 10 * log10(1 / mse)


def test_a_network_at_chance_leaves_the_free_error_on_the_wider_range_only():
    (chance,) = [row for row in ROWS if row["accuracy"] == ".1004"]
    assert float(chance["MSE, printed"]) / (4 * FREE["CIFAR-10"]) == pytest.approx(1, abs=0.02)
    assert float(chance["MSE, printed"]) / FREE["CIFAR-10"] > 4
    assert 4 * 0.25 < 1.1024, "the mean image of pixels that are black or white, on [−1, 1]"


@pytest.mark.parametrize(("mse", "printed", "seeming"), [(0.057, 17.22, 12.4), (0.018, 22.17, 17.4)])
def test_a_sum_over_three_channels_explains_what_seems_to_contradict_itself(mse, printed, seeming):
    assert decibels(mse) == pytest.approx(seeming, abs=0.06)
    assert decibels(mse / 3) == pytest.approx(printed, abs=0.06)
    assert abs(decibels(mse) - printed) > 4 and abs(decibels(mse / 4) - printed) > 1
    assert f"{printed} dB" in PAGE or f"{printed} and" in PAGE


def test_two_printed_decibels_stand_in_each_others_place():
    assert decibels(0.0380) == pytest.approx(14.40, abs=0.25) and decibels(0.0236) == pytest.approx(16.27, abs=0.1)
    faces = [0.0027, 0.0041, 0.0057, 0.0137, 0.0142, 0.0056, 0.0158]
    assert sum(faces) / len(faces) == pytest.approx(0.0088, abs=0.00005)
