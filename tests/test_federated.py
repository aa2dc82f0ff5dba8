"""Five unlike clients from the command line to the page: trained, audited, told apart; and one client as ever."""

import json
from pathlib import Path

import numpy as np
import pytest

from attcem.assess.clients import by_client, class_means, client_flags, mixed
from attcem.cli import main
from attcem.config import ClientsConfig
from attcem.configfile import parse_experiment
from attcem.data.clients import deal_clients
from attcem.defences import Defence, Noise
from attcem.experiment import load_clients, load_run, run_folder
from attcem.report.tables import client_table
from attcem.threat import build_view
from attcem.types import Result
from tests.report.made import make_result

TINY = """\
data: {{name: "npz:{data}"}}
model: {{backbone: vgg11_bn, cut: 4, bottleneck: 4, width: 0.1}}
defence: {{noise: {{sigma: 0.2}}, bound: {{lam: 0.1, memory: 0.9}}}}
train: {{epochs: 2, batch: 16}}
audit: {{suite: smoke, images: 40}}
"""
CLIENTS = ["--clients.count", "5", "--clients.partition", "dirichlet", "--clients.alpha", "0.5"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, fashion) -> Path:
    folder = tmp_path_factory.mktemp("federated")
    part = {"x_train": fashion.private[:500].x, "x_test": fashion.test[:60].x}
    labels = {"y_train": fashion.private[:500].y, "y_test": fashion.test[:60].y}
    np.savez(folder / "tiny.npz", **{name: t.numpy().astype(np.uint8) for name, t in (part | labels).items()})
    (folder / "tiny.yaml").write_text(TINY.format(data=folder / "tiny.npz"))
    return folder / "tiny.yaml"


@pytest.fixture(scope="module")
def finished(tiny) -> Path:
    out = tiny.parent / "run"
    assert main(["run", str(tiny), "--out", str(out), *CLIENTS]) == 0
    return out


def test_five_unlike_clients_are_trained_audited_and_told_apart(finished):
    result = json.loads((finished / "result.json").read_text())
    assert [client["client"] for client in result["clients"]] == [0, 1, 2, 3, 4]
    assert sum(client["images"] for client in result["clients"]) == result["config"]["data"]["draw"]["sizes"]["private"]
    assert result["config"]["data"]["draw"]["clients"] == [client["images"] for client in result["clients"]]
    assert result["config"]["clients"]["alpha"] == 0.5
    for client in result["clients"]:
        assert sum(client["classes"].values()) == client["images"]
        assert 0 <= client["accuracy"] <= 1 and 0 < client["covered"] <= 1
        assert 0 < client["worst"]["mse"] < 1 and 0 < client["mean_image_mse"] < 1
    assert len({client["worst"]["mse"] for client in result["clients"]}) == 5
    assert {"client_0/accuracy", "client_4/skipped"} <= result["history"][0].keys()


def test_a_clients_score_is_that_of_its_classes_picture_by_picture(finished):
    result, trained = Result.load(finished), load_run(finished)
    experiment = parse_experiment([str(finished / "config.yaml")])
    images = deal_clients(trained[2], experiment.clients)
    _, truth = build_view(*trained, images=40, seed=0, threat="white_box")
    for client, own in zip(result.clients, images, strict=True):
        worst, weight = 0.0, 0.0
        for score, label in zip(result.per_image["worst/mse"], truth.y.tolist(), strict=True):
            mine = int((own.y == label).sum()) / int((truth.y == label).sum())
            worst, weight = worst + mine * float(score), weight + mine
        assert client["worst"]["mse"] == pytest.approx(worst / weight, rel=1e-5)
    alone = by_client(result, trained, images, ClientsConfig(count=5, attacker=3), experiment.audit)
    assert [client["client"] for client in alone] == [0, 1, 2, 4]


def test_the_page_and_the_terminal_name_every_client(finished, tiny, tmp_path, capsys):
    assert main(["run", str(finished), "--resume"]) == 0
    printed = capsys.readouterr().out
    assert all(f"client {number}" in printed for number in range(5))
    assert main(["report", str(finished), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Client by client" in page and all(f"client {number}" in page for number in range(5))


def test_an_audit_later_finds_the_same_clients(finished):
    before = json.loads((finished / "result.json").read_text())["clients"]
    assert main(["audit", str(finished), "--images", "60", "--seed", "1"]) == 0
    after = json.loads((finished / "result.json").read_text())["clients"]
    assert [client["classes"] for client in after] == [client["classes"] for client in before]


def test_every_clients_guard_can_be_loaded_with_what_it_kept(finished, tiny):
    model, guard, _ = load_run(finished)
    guards = load_clients(finished, model, guard)
    mass = [own.links[-1].remembered.mass for own in (guard, *guards)]
    assert len(guards) == 5 and not mass[0].any() and all(each.any() for each in mass[1:])
    assert client_flags(model, guard, guards, load_run(finished)[2].validation[:4]) == []


class Leaning(Defence):
    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def release(self, z):
        return z + self.offset

    @property
    def flags(self):
        return ["leans", f"leans by {self.offset}"]


def test_a_client_that_releases_in_a_way_of_its_own_is_flagged(network, small):
    deployed = Noise(0.1) + Leaning(0.0)
    flags = client_flags(network.eval(), deployed, [Noise(0.1) + Leaning(x) for x in (0.0, 0.5)], small.validation[:4])
    assert flags[0] == "client 1: leaning: leans by 0.5" and "client 1 does not release" in flags[1] and len(flags) == 2


def test_an_attacker_among_the_clients_has_its_own_images_and_is_no_victim(tiny, tmp_path):
    out = tmp_path / "run"
    assert main(["run", str(tiny), "--out", str(out), *CLIENTS, "--clients.attacker", "2", "--clients.sync=batch"]) == 0
    result = json.loads((out / "result.json").read_text())
    assert [client["client"] for client in result["clients"]] == [0, 1, 3, 4]
    ordinary = json.loads((tiny.parent / "run" / "result.json").read_text())
    free = [found["baselines"]["mean_image"]["mse"]["mean"] for found in (result, ordinary)]
    assert free[0] != pytest.approx(free[1], rel=1e-3), "the mean image is not that of the attacker's own images"


def test_one_client_is_the_experiment_that_it_always_was(tiny):
    plain, one = parse_experiment([str(tiny)]), parse_experiment([str(tiny), "--clients.count", "1"])
    assert one == plain and "clients" not in one.to_dict() and run_folder(one) == run_folder(plain)
    assert run_folder(parse_experiment([str(tiny), *CLIENTS])) != run_folder(plain)
    assert make_result().to_json()["clients"] == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--clients.count", "0"], "at least 1"),
        (["--clients.cuont", "5"], "did you mean '--clients.count'"),
        (["--clients.partition", "dirichlett"], "did you mean 'dirichlet'"),
        (["--clients.count", "5", "--clients.attacker", "5"], "from 0 to 4"),
        (["--clients.count", "5", "--clients.sampled", "1.5"], "clients.sampled must be a share"),
        (["--clients.count", "5", "--clients.alpha", "-1"], "clients.alpha must be at least"),
    ],
)
def test_wrong_clients_are_refused_before_any_work(arguments, named, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *arguments]) == 2
    said = capsys.readouterr().err
    assert named in said and said.count("\n") == 1 and not list(tmp_path.iterdir())


def test_more_clients_than_images_are_refused_before_anything_is_written(tiny, tmp_path, capsys):
    assert main(["run", str(tiny), "--out", str(tmp_path / "run"), "--clients.count", "100"]) == 1
    assert "clients.count of at most" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_means_of_classes_and_their_mixtures():
    means = class_means(np.array([1.0, 3.0, 10.0]), np.array([0, 0, 2]), 4)
    assert means[[0, 2]].tolist() == [2.0, 10.0] and np.isnan(means[[1, 3]]).all()
    assert mixed(means, np.array([1, 50, 3, 0])) == 8.0
    assert mixed(means, np.array([0, 50, 0, 1])) is None


def test_the_table_shows_a_dash_for_a_client_whose_classes_were_not_attacked():
    run = make_result()
    known = {"client": 0, "images": 8, "classes": {"a": 2, "b": 6}, "accuracy": 0.5, "worst": {"mse": 0.02},
             "mean_image_mse": 0.08, "covered": 1.0}  # fmt: skip
    run.clients = [known, known | {"client": 3, "worst": {"mse": None}, "mean_image_mse": None, "accuracy": None}]
    first, second = client_table(run).lines
    assert first[0] == "client 0" and first[1].startswith("b 75") and first[2:6] == ["8", "0.500", "0.0200", "0.0800"]
    assert first[6] == "0.250" and second[3:7] == ["–"] * 4
    assert second[0] == "client 3"
