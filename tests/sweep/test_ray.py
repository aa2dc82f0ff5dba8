"""A Ray cluster gives the files that local processes give."""

import os
from collections.abc import Iterator

import pytest

from attcem.cli import main
from tests.sweep.made import content

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'attcem[ray]'")


@pytest.fixture
def two_nodes(monkeypatch) -> Iterator[str]:
    """The address of a cluster of two nodes with one processor each, both on this machine."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")  # Ray's default would let a busy machine starve its workers
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.slow
def test_two_nodes_give_the_files_of_local_processes(two_nodes, tiny, tmp_path, capsys):
    """Neither engine's processes are forks of this one: they are started as a user's are."""
    sweep, local, out = ["sweep", str(tiny), "--seeds", "0"], tmp_path / "local", tmp_path / "out"
    assert main([*sweep, "--engine", "ray", "--address", two_nodes, "--out", str(out)]) == 0
    assert "2 at a time" in capsys.readouterr().err
    assert main([*sweep, "--jobs", "2", "--out", str(local)]) == 0
    assert content(out) == content(local)
    assert os.environ.get("RAY_ADDRESS") is None


def test_no_cluster_at_the_address(tiny, tmp_path, capsys):
    arguments = ["--engine", "ray", "--address", "127.0.0.1:1", "--out", str(tmp_path / "out")]
    assert main(["sweep", str(tiny), *arguments]) == 1
    assert "ray start --head" in capsys.readouterr().err
