import math

import numpy as np
import pytest

from attcem.compare.comparable import check_comparable
from attcem.report.training import training
from attcem.runs import curves_of, settings_of
from attcem.runs.config import numbers
from attcem.runs.leak import recovered_share
from attcem.runs.names import name_run
from attcem.runs.settings import find_twins
from tests.report.made import make_result, scores


@pytest.mark.parametrize(
    ("defence", "name"),
    [
        ({}, "no defence"),
        (None, "no defence"),
        ("none", "no defence"),
        ({"none": {}}, "no defence"),
        ({"noise": {"sigma": 0.5}}, "noise σ=0.5"),
        ({"noise": {"sigma": 0.1}, "bound": {"lam": 16, "width": None}}, "noise σ=0.1 + bound λ=16"),
        ([{"noise": {"sigma": 1.0}}, {"noise": {"sigma": 2.0}}], "noise σ=1 + noise-2 σ=2"),
    ],
)
def test_defences_have_readable_names(defence, name):
    run = make_result()
    run.config["defence"] = defence
    (setting,) = settings_of([run])
    assert setting.name == name


def test_what_crosses_is_named_like_a_link_and_compared_with_a_map():
    model = {"backbone": "vgg11_bn", "cut": 4}
    pool, noise, bare = (
        make_result(model=model | {"crossing": {form: options}}, defence=defence)
        for form, options, defence in (
            ("pool", {"size": 2, "channels": 128, "condense": 64}, {"noise": {"sigma": 0.1}}),
            ("map", {"channels": 8}, {"noise": {"sigma": 0.1}}),
            ("map", {"channels": 8}, {}),
        )
    )
    settings = settings_of([pool, noise, bare])
    assert [s.name for s in settings] == ["no defence", "pool crossing condense=64 + noise σ=0.1", "noise σ=0.1"]
    assert len({s.family for s in settings}) == 3 and [s.undefended for s in settings] == [True, False, False]
    assert find_twins([pool, noise, bare]) == [bare, bare, None]
    assert find_twins([make_result(model=model, defence={"noise": {"sigma": 0.1}}), bare]) == [None, None]
    condensed = make_result(model=model | {"crossing": {"map": {"channels": 8, "condense": 64}}})
    assert settings_of([condensed])[0].family == "map crossing" and find_twins([condensed, bare]) == [bare, None]
    coarser = make_result(model=model | {"crossing": {"map": {"channels": 4}}}, defence={"noise": {"sigma": 0.1}})
    for run in (pool, noise, bare, coarser):
        run.per_image["worst/mse"] = np.full(4, 0.01)
    check_comparable([pool, noise, bare, pool, coarser], "mse")
    with pytest.raises(ValueError, match=r"model\.crossing\.map\.channels: 8 and 4"):
        check_comparable([noise, coarser], "mse")


def test_a_config_without_anything_still_has_a_place():
    run = make_result()
    run.config = {}
    (setting,) = settings_of([run])
    assert (setting.name, setting.place, setting.undefended) == ("no defence", ("data", "model"), True)


def test_only_the_seed_may_differ_within_a_setting():
    runs = [make_result(seed=1), make_result(seed=0), make_result(model={"backbone": "vgg11_bn", "cut": 6})]
    settings = settings_of(runs)
    assert [[run.seed for run in setting.runs] for setting in settings] == [[0, 1], [0]]
    assert settings[1].name == "no defence (model.cut=6)"


def test_undefended_comes_first():
    assert [s.undefended for s in settings_of([make_result(defence={"noise": {"sigma": 1}}), make_result()])] == [
        True,
        False,
    ]


@pytest.mark.parametrize(("mse", "share"), [(0.0, 1.0), (0.02, 0.75), (0.08, 0.0), (0.2, 0.0)])
def test_recovered_share_is_clipped_at_zero(mse, share):
    run = make_result(mse=mse)
    assert recovered_share(run.worst, run) == pytest.approx(share)


def test_a_result_tells_its_worst_case_by_what_the_mean_image_has_for_free():
    run = make_result(mse=0.02, mean_image=0.08)
    assert (run.mse_ratio, run.psnr_gain) == pytest.approx((0.25, 0.0))
    assert run.over_free(run.baselines["mean_image"], "mse") == 1
    assert run.over_free(run.attacks["decoder"], "mse") == pytest.approx(0.275)
    assert not {"mse_ratio", "psnr_gain"} & run.to_json().keys(), "derived, so not stored"
    run.baselines["mean_image"] = scores(0.0, psnr=15.5)
    assert math.isnan(run.mse_ratio) and run.psnr_gain == pytest.approx(4.5)


def test_recovered_share_without_mean_image_is_unknown():
    run = make_result()
    run.baselines = {}
    assert recovered_share(run.worst, run) != recovered_share(run.worst, run)


def test_a_name_tells_strengths_and_what_differs_and_no_more():
    chains = [
        {"noise": {"sigma": 0.1}, "bound": {"lam": lam, "assign": assign, "width": 128}}
        for lam, assign in ((1, "slot"), (2, "class"))
    ]
    found = settings_of([make_result(defence=chain) for chain in (*chains, {"gmm": {"lam": 3, "clusters": 5}})])
    assert [s.name for s in found] == [
        "noise σ=0.1 + bound λ=1 assign=slot",
        "noise σ=0.1 + bound λ=2 assign=class",
        "gmm λ=3",
    ]
    assert [s.family for s in found] == ["noise + bound assign=slot", "noise + bound assign=class", "gmm"]


def test_a_chain_written_as_a_mapping_or_a_list_is_one_setting():
    ways = ({"noise": {"sigma": 0.1}, "topk": {"keep": 0.5}}, [{"noise": {"sigma": 0.1}}, {"topk": {"keep": 0.5}}])
    (setting,) = settings_of([make_result(defence=way, seed=seed) for seed, way in enumerate(ways)])
    assert setting.seeds == 2
    assert len({name_run(make_result(defence=way)) for way in ways}) == 1 and len(curves_of(setting.runs)) == 1


def test_two_links_of_a_kind_are_two_in_names_numbers_and_charts():
    run = make_result(defence=[{"noise": {"sigma": 0.1}}, {"noise": {"sigma": 0.2}}, {"my.code:KeepAll": {"share": 1}}])
    assert numbers(run) == {"noise.sigma": 0.1, "noise-2.sigma": 0.2, "keep_all.share": 1}
    assert name_run(run).startswith("noise(sigma=0.1) + noise-2(sigma=0.2) + keep_all(share=1)")
    run.history = [{"epoch": 1, "gated/dim_gate": 0.2, "gated-2/dim_gate": 0.4, "gated/snr_gate": 0.3}]
    (gates,) = [chart for chart in training(settings_of([run])).charts if chart.title == "Gate means"]
    (drawing,) = gates.drawings.values()
    assert [trace["name"] for trace in drawing.traces] == ["gated dim gate", "gated-2 dim gate", "snr gate"]
