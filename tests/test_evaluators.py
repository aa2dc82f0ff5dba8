"""The judge is trained once for a data set, and a cache that cannot be used costs time, never an audit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from attcem.assess import judge
from attcem.assess.judge import digest, evaluator_for
from attcem.metrics import Evaluator


@pytest.fixture
def small(fashion, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTCEM_DATA", str(tmp_path))
    monkeypatch.setattr(judge, "_TRAINED", {})
    return replace(fashion, private=fashion.private[:400])


def forget_and_forbid_training(monkeypatch):
    monkeypatch.setattr(judge, "_TRAINED", {})
    monkeypatch.setattr(Evaluator, "train", lambda *_, **__: pytest.fail("trained again"))


def test_another_process_reads_the_same_judge(small, monkeypatch):
    first = evaluator_for(small, 800, False)
    forget_and_forbid_training(monkeypatch)
    again = evaluator_for(small, 800, False)
    assert again is not first and again.accuracy == first.accuracy
    x = small.private[:16].pixels()
    assert torch.equal(again.network(x), first.network(x))


@pytest.mark.parametrize("content", [b"", b"not a tensor", "half"])
def test_a_damaged_file_is_replaced(small, tmp_path, monkeypatch, content):
    first = evaluator_for(small, 800, False)
    (path,) = (tmp_path / "evaluators").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content == "half" else content)
    monkeypatch.setattr(judge, "_TRAINED", {})
    assert evaluator_for(small, 800, False).accuracy == first.accuracy
    assert len(path.read_bytes()) == len(whole)


def test_a_cache_that_cannot_be_written_to_is_no_reason_to_fail(small, tmp_path, monkeypatch):
    (tmp_path / "evaluators").write_text("a file where the folder should be")
    assert evaluator_for(small, 800, False).accuracy > 0


def test_other_images_labels_or_effort_have_another_judge(small):
    images = small.private
    relabelled = replace(images, y=images.y.flip(0))
    keys = [digest(images, 10, 800), digest(images[1:], 10, 800), digest(relabelled, 10, 800), digest(images, 10, 900)]
    assert len(set(keys)) == len(keys)
