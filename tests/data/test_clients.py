"""Dealing images to clients: each to one of them, the same for the same seed, as unlike as asked for."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attcem.config import ClientsConfig
from attcem.data.clients import LEAST, audited_data, deal_clients, draw_clients, fingerprint, owners
from tests.conftest import noise_images, shrink


@settings(max_examples=60)
@given(
    labels=st.lists(st.integers(0, 5), min_size=60, max_size=300),
    count=st.integers(1, 5),
    partition=st.sampled_from(["iid", "dirichlet"]),
    alpha=st.floats(0.3, 100),
    seed=st.integers(0, 2**40),
)
def test_every_image_goes_to_exactly_one_client_and_everyone_gets_some(labels, count, partition, alpha, seed):
    config = ClientsConfig(count=count, partition=partition, alpha=alpha)
    labels = np.array(labels)
    try:
        pieces = draw_clients(labels, config, seed)
    except ValueError:  # few images and a small alpha: refused, as tested below
        assume(False)
    assert len(pieces) == count and min(map(len, pieces)) >= LEAST
    assert sorted(np.concatenate(pieces).tolist()) == list(range(len(labels)))
    assert all((np.diff(piece) > 0).all() for piece in pieces)
    again = draw_clients(labels, config, seed)
    assert all(np.array_equal(a, b) for a, b in zip(pieces, again, strict=True))


@given(
    count=st.integers(0, 40),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda shares: sum(shares) > 0.1),
)
def test_a_row_is_cut_where_the_running_sum_of_the_shares_says(count, shares):
    shares = np.array(shares) / sum(shares)
    slow, end = [], 0.0
    for client, share in enumerate(shares):
        end += share
        last = count if client == len(shares) - 1 else round(end * count)
        slow += [client] * (last - len(slow))
    assert owners(count, shares).tolist() == slow


def test_iid_clients_are_of_one_size():
    pieces = draw_clients(np.arange(103) % 10, ClientsConfig(count=5))
    assert sorted(map(len, pieces)) == [20, 20, 21, 21, 21]


def unlikeness(alpha: float) -> float:
    """Mean distance of the clients' shares of classes from those of all images."""
    labels = np.arange(5000) % 10
    pieces = draw_clients(labels, ClientsConfig(count=5, partition="dirichlet", alpha=alpha))
    return np.mean([np.abs(np.bincount(labels[piece], minlength=10) / len(piece) - 0.1).sum() for piece in pieces])


def test_the_smaller_alpha_the_less_alike_are_the_clients():
    found = [unlikeness(alpha) for alpha in (0.1, 1.0, 10.0, 1e4)]
    assert found == sorted(found, reverse=True) and found[0] > 0.8 and found[-1] < 0.05


def test_shares_of_a_class_have_the_mean_and_variance_of_the_dirichlet():
    config = ClientsConfig(count=4, partition="dirichlet", alpha=0.5)
    labels = np.repeat(np.arange(400), 100)
    shares = np.stack([np.bincount(labels[piece], minlength=400) / 100 for piece in draw_clients(labels, config)])
    assert shares.mean(1) == pytest.approx([0.25] * 4, abs=0.05)
    assert shares.var(1) == pytest.approx([0.25 * 0.75 / (4 * 0.5 + 1)] * 4, rel=0.25)


def test_another_seed_is_another_deal():
    config = ClientsConfig(count=3, partition="dirichlet")
    first, second = (draw_clients(np.arange(300) % 5, config, seed) for seed in (0, 1))
    assert any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_more_clients_than_images_can_serve_is_an_error_that_says_how_many_could_be():
    with pytest.raises(ValueError, match=r"clients\.count of at most 3"):
        draw_clients(np.arange(35) % 5, ClientsConfig(count=4))


def test_clients_that_always_end_up_empty_are_an_error_that_names_alpha():
    with pytest.raises(ValueError, match=r"fewer clients .* clients\.alpha above 0\.01"):
        draw_clients(np.zeros(200, dtype=np.int64), ClientsConfig(count=10, partition="dirichlet", alpha=0.01))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "at least 1"),
        ({"count": 2, "alpha": 0.0}, "at least 0.01"),
        ({"count": 2, "alpha": float("nan")}, "at least 0.01"),
        ({"count": 2, "sampled": 0.0}, "a share above 0"),
        ({"count": 2, "sampled": 1.5}, "a share above 0"),
        ({"count": 2, "attacker": 2}, "from 0 to 1"),
        ({"count": 2, "attacker": -1}, "from 0 to 1"),
        ({"count": 1, "attacker": 0}, "2 or more"),
    ],
)
def test_wrong_settings_name_the_fix(options, message):
    with pytest.raises(ValueError, match=message):
        ClientsConfig(**options)


def test_a_single_client_has_all_images_in_their_order(small):
    (images,) = deal_clients(small, ClientsConfig(count=1, partition="dirichlet"))
    assert torch.equal(images.x, small.private.x) and torch.equal(images.y, small.private.y)


def test_a_client_that_attacks_has_its_own_images_for_public_ones_and_the_draw_is_recorded(small):
    config = ClientsConfig(count=3, attacker=1)
    clients = deal_clients(small, config)
    seen = audited_data(small, clients, config)
    assert torch.equal(seen.public.x, clients[1].x) and torch.equal(seen.public.y, clients[1].y)
    assert seen.draw["clients"] == [len(images) for images in clients] and len(seen.draw["clients_sha256"]) == 64
    assert seen.private is small.private and seen.test is small.test
    unattacked = audited_data(small, clients, ClientsConfig(count=3))
    assert unattacked.public is small.public and unattacked.draw == seen.draw


def test_the_seed_of_the_data_decides_and_the_fingerprint_tells_deals_apart(fashion):
    data = shrink(fashion, private=200, validation=10, public=10, test=10)
    prints = set()
    for seed in (0, 0, 1):
        data.draw["seed"] = seed
        prints.add(fingerprint(deal_clients(data, ClientsConfig(count=4))))
    assert len(prints) == 2
    parts = [noise_images(4), noise_images(4, seed=1)]
    assert fingerprint(parts) != fingerprint(parts[::-1])
