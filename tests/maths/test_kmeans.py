"""K-means of every class at once against scikit-learn, one class at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths.kmeans import draw, kmeans, nearest

EXACT = {"atol": 1e-9, "rtol": 1e-9}
FIELDS = ("mu", "pi", "var", "count")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def theirs(x, k=5, **options):
    """What scikit-learn finds in one class."""
    cluster = pytest.importorskip("sklearn.cluster", reason="scikit-learn is the oracle: pip install scikit-learn")
    return cluster.KMeans(k, n_init=1, algorithm="lloyd", tol=0, **options).fit(x.numpy())


def oracle(x, start, iters=50):
    """Centres and labels that scikit-learn finds in one class."""
    found = theirs(x, len(start), init=start.numpy(), max_iter=iters)
    return torch.from_numpy(found.cluster_centers_), torch.from_numpy(found.labels_).long()


def spread(n=300, d=3, classes=4, k=3, seed=0):
    """Samples in no particular shape, and for each class the first k of them to start from."""
    x = torch.randn(n, d, generator=seeded(seed), dtype=torch.double)
    y = torch.randint(0, classes, (n,), generator=seeded(seed + 1))
    return x, y, torch.stack([x[y == c][:k] for c in range(classes)])


def blobs(classes=6, k=5, each=20, d=4, width=0.05, dtype=torch.double):
    """Clusters so far apart that there is one right answer: samples, classes, true centres."""
    mu = torch.randn(classes, k, d, generator=seeded(3), dtype=dtype) * 20
    x = mu.unsqueeze(2) + width * torch.randn(classes, k, each, d, generator=seeded(4), dtype=dtype)
    order = torch.randperm(classes * k * each, generator=seeded(5))
    y = torch.arange(classes).repeat_interleave(k * each)
    return x.reshape(-1, d)[order], y[order], mu


def inertia(x, y, found):
    index = nearest(x, y, found.mu, found.pi > 0)
    return (x - found.mu[y, index]).square().sum()


@st.composite
def drawn_classes(draw):
    """Samples [n d], classes [n], their number and k: empty classes, single samples and repeats among them."""
    n, d, k = draw(st.integers(0, 20)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    classes = draw(st.sampled_from([1, 3, 8, 600]))
    generator = seeded(draw(st.integers(0, 9999)))
    x = torch.randn(n, d, generator=generator, dtype=torch.double)
    x = x * draw(st.sampled_from([1e-3, 1.0, 50.0])) + draw(st.sampled_from([0.0, 100.0]))
    y = torch.randint(0, classes, (n,), generator=generator)
    kinds = draw(st.sampled_from([0, 1, 2, 3]))
    if kinds and n:
        x = x[torch.randint(0, min(kinds, n), (n,), generator=generator)]
    return x, y, classes, k


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("iters", [1, 3, 50])
def test_the_same_start_ends_where_scikit_learn_ends(seed, iters):
    x, y, start = spread(seed=seed)
    found = kmeans(x, y, 4, 3, start, iters=iters)
    for c in range(4):
        own = x[y == c]
        mu, labels = oracle(own, start[c], iters)
        torch.testing.assert_close(found.mu[c], mu, **EXACT)
        for j in range(3):
            members = own[labels == j]
            torch.testing.assert_close(found.pi[c, j].item(), len(members) / len(own), **EXACT)
            torch.testing.assert_close(found.var[c, j], (members - mu[j]).square().mean(0), **EXACT)
        assert found.count[c] == len(own)
        assert torch.equal(nearest(own, torch.zeros(len(own), dtype=torch.int64), found.mu[c : c + 1]), labels)


def test_more_than_one_round_is_needed_here():
    x, y, start = spread()
    assert not torch.allclose(kmeans(x, y, 4, 3, start, iters=1).mu, kmeans(x, y, 4, 3, start).mu)


def test_drawn_starts_find_what_scikit_learn_finds():
    x, y, mu = blobs()
    found = kmeans(x, y, len(mu), generator=seeded())
    best = sum(theirs(x[y == c], random_state=0).inertia_ for c in range(len(mu)))
    assert inertia(x, y, found).item() <= best * (1 + 1e-9)
    assert torch.cdist(mu, found.mu).amin(2).max() < 0.1
    torch.testing.assert_close(found.pi, torch.full_like(found.pi, 0.2))


def test_on_samples_without_clusters_a_drawn_start_is_not_much_worse_than_theirs():
    x, y, _ = spread(n=800, d=6)
    mine = sum(inertia(x, y, kmeans(x, y, 4, generator=seeded(seed))).item() for seed in range(8))
    best = sum(theirs(x[y == c], random_state=seed).inertia_ for c in range(4) for seed in range(8))
    assert mine < 1.03 * best


@settings(max_examples=80)
@given(drawn=drawn_classes(), seed=st.integers(0, 9))
def test_any_class_has_finite_clusters_that_describe_its_samples(drawn, seed):
    x, y, classes, k = drawn
    found = kmeans(x, y, classes, k, generator=seeded(seed))
    assert all(getattr(found, name).isfinite().all() for name in FIELDS)
    index = nearest(x, y, found.mu, found.pi > 0)
    assert torch.equal(found.count, torch.bincount(y, minlength=classes))
    for c in set(y.tolist()):
        own, chosen = x[y == c], index[y == c]
        distinct = len(own.unique(dim=0))
        assert (found.pi[c] > 0).sum() == min(k, distinct)
        assert found.pi[c].sum().item() == pytest.approx(1, abs=1e-12)
        for j in range(k):
            members = own[chosen == j]
            assert found.pi[c, j].item() == pytest.approx(len(members) / len(own), abs=1e-12)
            if len(members) == 0:
                assert not found.var[c, j].any()
            else:
                torch.testing.assert_close(found.mu[c, j], members.mean(0), **EXACT)
                torch.testing.assert_close(found.var[c, j], members.var(0, correction=0), **EXACT)
    empty = found.count == 0
    assert not found.pi[empty].any() and not found.var[empty].any()


@settings(max_examples=40)
@given(drawn=drawn_classes(), seed=st.integers(0, 9))
def test_a_converged_fit_is_a_fixed_point(drawn, seed):
    x, y, classes, k = drawn
    first = kmeans(x, y, classes, k, generator=seeded(seed), iters=500)
    again = kmeans(x, y, classes, k, first.mu, generator=seeded(seed + 1))
    for name in FIELDS:
        torch.testing.assert_close(getattr(again, name), getattr(first, name), **EXACT)


@settings(max_examples=40)
@given(seed=st.integers(0, 999))
def test_sample_order_and_class_names_do_not_matter_given_the_start(seed):
    x, y, start = spread(n=80, seed=seed)
    order, rename = torch.randperm(80, generator=seeded(seed)), torch.randperm(4, generator=seeded(seed + 1))
    moved = torch.empty_like(start)
    moved[rename] = start
    first, second = kmeans(x, y, 4, 3, start), kmeans(x[order], rename[y[order]], 4, 3, moved)
    for name in FIELDS:
        torch.testing.assert_close(getattr(second, name)[rename], getattr(first, name), **EXACT)


def test_only_classes_that_were_started_keep_their_start():
    x, y, start = spread()
    started = torch.tensor([True, False, True, False])
    nonsense = torch.where(started[:, None, None], start, torch.full_like(start, 1e6))
    found, warm = kmeans(x, y, 4, 3, nonsense, started, generator=seeded()), kmeans(x, y, 4, 3, start)
    torch.testing.assert_close(found.mu[started], warm.mu[started], **EXACT)
    assert found.mu.abs().max() < 10 and (found.pi > 0.05).all()


def test_the_same_seed_draws_the_same_and_another_does_not():
    x, y, _ = spread()
    first, again, other = (kmeans(x, y, 4, generator=seeded(seed)).mu for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.allclose(first, other)


def test_a_cluster_that_runs_empty_is_drawn_anew():
    x, y, mu = blobs()
    lost = mu.clone()
    lost[:, 1:] = 1e4
    found = kmeans(x, y, len(mu), 5, lost, generator=seeded())
    assert (found.pi > 0).all() and torch.cdist(mu, found.mu).amin(2).max() < 0.1


def test_samples_that_all_moved_together_are_found_again():
    x, y, mu = blobs()
    first = kmeans(x, y, len(mu), generator=seeded())
    after = kmeans(x + 500, y, len(mu), 5, first.mu, generator=seeded())
    assert torch.cdist(mu + 500, after.mu).amin(2).max() < 0.1


def test_nearest_is_of_the_own_class_and_never_empty():
    mu = torch.tensor([[[0.0], [1.0], [2.0]], [[10.0], [0.1], [12.0]]])
    alive = torch.tensor([[False, True, True], [True, False, True]])
    x, y = torch.tensor([[0.1], [0.1], [1.9], [11.8], [float("inf")], [3e30]]), torch.tensor([0, 1, 0, 1, 0, 0])
    assert nearest(x, y, mu).tolist() == [0, 1, 2, 2, 0, 0]
    assert nearest(x, y, mu, alive).tolist() == [1, 0, 2, 2, 1, 1]


def test_a_sample_is_drawn_as_often_as_its_rate_says():
    rate, y = torch.tensor([1.0, 0.0, 3.0, 5.0, 0.0]), torch.tensor([1, 1, 1, 2, 3])
    generator = seeded()
    rows = torch.stack([draw(rate, y, 4, generator) for _ in range(2000)])
    assert (rows[:, 0] == 5).all() and (rows[:, 3] == 5).all() and (rows[:, 2] == 3).all()
    share = torch.bincount(rows[:, 1], minlength=4) / 2000
    assert share[1] == 0 and share[2].item() == pytest.approx(0.75, abs=0.03)


def test_a_large_offset_costs_no_digits():
    x, y, mu = blobs(dtype=torch.float32, width=1.0)
    found = kmeans(x + 4096, y, len(mu), generator=seeded())
    truth = kmeans((x + 4096).double(), y, len(mu), 5, found.mu.double())
    torch.testing.assert_close(found.var.double(), truth.var, rtol=1e-4, atol=0)


def test_memory_is_that_of_the_samples_not_of_samples_times_clusters():
    n, d, k, classes = 60, 50, 20, 2
    x, y = torch.randn(n, d, generator=seeded()), torch.arange(n) % classes
    largest = Largest()
    with largest:
        kmeans(x, y, classes, k, generator=seeded())
    assert largest.seen <= max(n * d, classes * k * d) < n * k * d


class Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operation returns."""

    seen = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else [found]:
            if isinstance(tensor, torch.Tensor):
                self.seen = max(self.seen, tensor.numel())
        return found
