"""A file becomes runs: every combination once, checked before any work."""

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.cli import main
from attcem.configfile import UsageError
from attcem.links import read_links
from attcem.listing import preset_paths, sweep_paths
from attcem.sweep.grid import flattened, points, read_sweep

VALUES = {
    "defence.noise.sigma": st.floats(0, 1e6).map(abs),
    "train.lr": st.floats(1e-30, 1e3),
    "train.epochs": st.integers(1, 10_000),
    "train.flip": st.booleans(),
    "model.activation": st.sampled_from(["none", "relu", "sigmoid", "tanh"]),
    "train.weight_decay": st.none() | st.floats(0, 1),
    "data.name": st.sampled_from(["fashion", "npz:a b.npz", "imagefolder:ü"]),
}
GRIDS = st.fixed_dictionaries(
    {}, optional={k: st.lists(v, min_size=1, max_size=2, unique=True) for k, v in VALUES.items()}
)


def read(tmp_path: Path, sweep: dict | str, **options):
    path = tmp_path / "sweep.yaml"
    path.write_text(sweep if isinstance(sweep, str) else yaml.safe_dump(sweep))
    return read_sweep(path, preset_paths(), **options)


def look_up(experiment, key: str):
    chain = {link.name: link.options for link in read_links(experiment.defence)}
    return flattened(experiment.to_dict() | {"defence": chain}).get(key)


@settings(max_examples=12)
@given(grid=GRIDS, seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
def test_a_grid_is_every_combination_of_its_values_and_seeds_once(tmp_path_factory, grid, seeds):
    runs = read(tmp_path_factory.mktemp("grid"), {"grid": grid, "seeds": seeds})
    assert len(runs) == math.prod(map(len, grid.values())) * len(seeds) == len({run.name for run in runs})
    found = {(run.experiment.seed, *(look_up(run.experiment, key) for key in grid)) for run in runs}
    assert found == {(seed, *point.values()) for seed in seeds for point in points(grid, Path())}


def test_variants_cross_with_the_grid_in_the_order_of_the_file(tmp_path):
    runs = read(
        tmp_path,
        {
            "base": "fashion_none",
            "runs": [{"defence.noise.sigma": [0.1, 0.2]}, {"defence": {"topk": {}}}, {}],
            "grid": {"model.width": [0.25, 0.5], "train.epochs": 3},
            "seeds": [0, 1],
        },
    )
    assert len(runs) == 4 * 2 * 2
    assert [bool(run.experiment.defence) for run in runs] == [True] * 12 + [False] * 4
    assert all(run.experiment.train.epochs == 3 and run.experiment.train.crop == 2 for run in runs)
    assert "defence.noise.sigma=0.1, model.width=0.25, seed 0" in {run.label for run in runs}


def test_a_variant_can_do_without_the_defence_of_its_base(tmp_path):
    runs = read(tmp_path, {"base": "fashion_noise", "runs": [{"defence": {}}, {}, {"defence.sigma": 0.9}]})
    assert [run.experiment.defence for run in runs] == [[], [{"noise": {"sigma": 0.5}}], [{"noise": {"sigma": 0.9}}]]


def test_the_command_line_wins_over_the_base_but_not_over_what_is_varied(tmp_path):
    overrides = ["--train.epochs", "1", "--defence.noise.sigma", "5"]
    runs = read(tmp_path, {"grid": {"defence.noise.sigma": [0.1, 0.2]}}, seeds=[7], overrides=overrides)
    assert [(run.experiment.train.epochs, run.experiment.seed) for run in runs] == [(1, 7), (1, 7)]
    assert [run.experiment.defence[0]["noise"]["sigma"] for run in runs] == [0.1, 0.2]


def test_the_quick_form_has_its_own_settings_and_one_seed(tmp_path):
    sweep = {
        "seeds": [3, 4],
        "quick": {"train.epochs": 1, "audit": {"suite": "smoke"}},
        "runs": [{}, {"train.lr": 0.1}],
    }
    whole, quick = read(tmp_path, sweep), read(tmp_path, sweep, quick=True)
    assert len(whole) == 4 and not {run.name for run in whole} & {run.name for run in quick}
    shortened = [(run.experiment.seed, run.experiment.train.epochs, run.experiment.audit.suite) for run in quick]
    assert shortened == [(3, 1, "smoke")] * 2 and [run.experiment.train.lr for run in quick][1] == 0.1
    assert [run.experiment.seed for run in read(tmp_path, sweep, quick=True, seeds=[7, 8])] == [7, 8] * 2
    assert read(tmp_path, sweep, quick=True, overrides=["--train.epochs", "2"])[0].experiment.train.epochs == 2


@pytest.mark.parametrize("quick", ["", "quick: {}", "quick: 3"])
def test_a_sweep_without_a_quick_form_says_so(quick, tmp_path):
    with pytest.raises(UsageError, match=r"sweep\.yaml has no quick form: give it one, as in quick: \{"):
        read(tmp_path, f"base: fashion_none\n{quick}", quick=True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("gird: {}", "did you mean 'grid'"),
        ("base: fashion_nois", "did you mean 'fashion_noise'"),
        ("base: 3", "base cannot be 3"),
        ("base: {trian: {epochs: 1}}", "did you mean"),
        ("grid: {train.epohs: [1]}", "did you mean '--train.epochs'"),
        ("grid: {train.epochs: [1, many]}", "train.epochs=many"),
        ("grid: {defence.noise.sigm: [1]}", "did you mean 'sigma'"),
        ("grid: {defence.noise.sigma: [0.1, -1]}", "zero or positive"),
        ("grid: {audit.suite: [demo, quik]}", "did you mean 'quick'"),
        ("grid: {train.epochs: []}", "no values"),
        ("grid: [1]", "grid must map"),
        ("runs: {a: 1}", "runs must be a list"),
        ("runs: [{}, {train.epochs: 12}]", "same settings"),
        ("seeds: [0, 0]", "seed 0 is named twice"),
        ("seeds: 3", "give a list of numbers"),
        ("seeds: [a]", "give a list of numbers"),
    ],
)
def test_a_mistake_is_found_before_any_run_starts(text, named, tmp_path, capsys, monkeypatch):
    with pytest.raises(UsageError, match=r"sweep\.yaml"):
        read(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "sweep.yaml", "--out", "out"]) == 2
    assert named in capsys.readouterr().err and not Path("out").exists()


def test_every_sweep_that_comes_with_the_package_is_one(capsys):
    assert sweep_paths()
    for name in sweep_paths():
        assert main(["sweep", name, "--seeds", "0", "--dry-run"]) == 0
        assert "seed 0" in capsys.readouterr().out
        assert main(["run", name]) == 2
        assert f"attcem sweep {sweep_paths()[name]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["missing"], "missing is no file and no preset"),
        (["tradeof"], "did you mean 'tradeoff'?"),
        (["tradeoff", "--engine", "rya"], "did you mean 'ray'"),
        (["tradeoff", "--jobs", "0"], "number from 1"),
        (["tradeoff", "--address", "x"], "--engine ray"),
        (["tradeoff", "--train.epohs", "1"], "did you mean '--train.epochs'"),
        (["tradeoff", "--rsume"], "--rsume"),
    ],
)
def test_a_mistake_on_the_command_line(arguments, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) == 2
    assert named in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_folder_of_its_name_does_not_hide_a_sweep_that_comes_with_the_package(tmp_path, monkeypatch, capsys):
    (tmp_path / "headline").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "headline", "--dry-run"]) == 0
    assert "noise-s0" in capsys.readouterr().out
