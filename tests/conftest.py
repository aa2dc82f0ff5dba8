"""Shapes in signatures are checked while testing; fixtures small enough for any machine."""

import os

from jaxtyping import install_import_hook

import tests.typecheck

CHECKED = [
    "attcem.maths",
    "attcem.layers",
    "attcem.data.loader",
    "attcem.defences",
    "attcem.metrics",
    "attcem.attacks",
    "attcem.train",
    "attcem.explain",
]
if os.environ.get("PYTEST_XDIST_WORKER") != "elsewhere":  # the same code, with every operation of it watched
    install_import_hook(CHECKED, "tests.typecheck.check")

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from hypothesis import settings

from attcem.attacks import SUITES
from attcem.data import Data, load_data
from attcem.models import Split, split
from attcem.train.honesty import surrogate_only
from attcem.types import Images
from tests.docs.quickly import BRIEF
from tests.forked import forking

settings.register_profile("suite", derandomize=True, database=None, deadline=None)
settings.register_profile("search", derandomize=False, database=None, deadline=None, print_blob=True)
settings.load_profile("suite")

for place in (torch.cuda, torch.xpu, torch.mtia):
    place.traceback = SimpleNamespace(format_stack=list)  # each seeding is noted with its stack: a millisecond a place
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # for the programs that tests start: two threads beside another test's fight


Once = Callable[[str, Callable[[Path], object]], Path]
LONGEST = {"test_elsewhere.py", "test_tutorial.py", "test_site.py", "test_ray.py", "test_faults.py", "test_docs.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no process of pytest is left alone with it at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """A test that passes today passes tomorrow."""
    torch.manual_seed(0)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Nor does what several tests share depend on the tests that ran before them in this process."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def shapes_are_checked() -> None:
    tests.typecheck.begin()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of pytest have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def once(shared: Path) -> Once:
    """A folder of this name that whoever comes first writes; all processes of pytest read it, and nobody changes it."""

    def written(name: str, write: Callable[[Path], object]) -> Path:
        with FileLock(shared / f"{name}.lock"):
            if not (shared / name).exists():
                write(shared / name)
        return shared / name

    return written


@pytest.fixture(scope="session", autouse=True)
def cache_of_our_own(shared: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTCEM_DATA", str(shared / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def shorter_than_smoke() -> Iterator[None]:
    """The shortest suite is shorter still: tests ask what an audit does, seldom how close it comes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, "smoke", BRIEF)
        yield


@pytest.fixture(autouse=True)
def few_steps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A surrogate is trained alone for a few steps before every run: how far it falls has tests of its own."""
    monkeypatch.setattr("attcem.train.honesty.surrogate_only", partial(surrogate_only, steps=20))


@pytest.fixture
def forked() -> Iterator[None]:
    """Programs that the test starts begin at once."""
    with forking():
        yield


@pytest.fixture(scope="session")
def fashion(shared: Path) -> Data:
    """Who comes first searches it for duplicates, which takes seconds; the others find them in the cache."""
    with FileLock(shared / "fashion.lock"):
        return load_data("fashion")


@pytest.fixture(scope="session")
def small(fashion: Data) -> Data:
    """A slice of the embedded data set: real pictures, seconds of work."""
    return shrink(fashion, private=640, validation=200, public=512, test=200)


def shrink(data: Data, **sizes: int) -> Data:
    parts = {name: getattr(data, name)[:size] for name, size in sizes.items()}
    return Data(name=data.name, class_names=data.class_names, draw={"sizes": sizes}, **parts)


@pytest.fixture
def network(small: Data) -> Split:
    torch.manual_seed(0)
    return split("vgg11_bn", data=small, cut=4, bottleneck=8, width=0.125)


def noise_images(n: int, shape: tuple[int, int, int] = (1, 28, 28), classes: int = 4, seed: int = 0) -> Images:
    generator = torch.Generator().manual_seed(seed)
    c, h, w = shape
    x = torch.randint(0, 256, (n, h, w, c), dtype=torch.uint8, generator=generator)
    return Images(x, torch.arange(n) % classes)
