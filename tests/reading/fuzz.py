"""Every reader of a run's folder against damaged files: a ValueError or a right answer, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attcem.train.checkpoint import STATE
from tests.reading import answers, mutations
from tests.reading.mutations import Mutation


@dataclass(frozen=True)
class Reader:
    """Which file is damaged how, and who reads it."""

    file: str
    mutate: Mutation
    read: Callable[[Path], None]
    cases: int


TENSORS = "checkpoint/epoch-0001.safetensors"
READERS = {
    "result": Reader("result.json", mutations.of_json, answers.result, 400),
    "scores": Reader("diagnostics.npz", mutations.of_npz, answers.result, 150),
    "strip": Reader("images/worst.png", mutations.of_png, answers.result, 100),
    "page": Reader("result.json", mutations.of_values, answers.page, 15),
    "page without scores": Reader("result.json", mutations.of_values, answers.bare_page, 15),
    "page of scores": Reader("diagnostics.npz", mutations.of_npz, answers.page, 6),
    "page of strips": Reader("images/original.png", mutations.of_png, answers.page, 5),
    "page of explanations": Reader("explain/1.png", mutations.of_png, answers.page, 5),
    "comparison": Reader("result.json", mutations.of_values, answers.compared, 60),
    "comparison of scores": Reader("diagnostics.npz", mutations.of_npz, answers.compared, 30),
    "watch": Reader("result.json", mutations.of_json, answers.watched, 10),
    "running": Reader("history.csv", mutations.of_csv, answers.distance, 150),
    "running settings": Reader("config.yaml", mutations.of_yaml, answers.distance, 60),
    "settings": Reader("config.yaml", mutations.of_yaml, answers.settings, 30),
    "state": Reader("checkpoint/state.json", mutations.of_json, answers.state, 250),
    "loaded state": Reader("checkpoint/state.json", mutations.of_json, answers.loaded, 12),
    "loaded settings": Reader("config.yaml", mutations.of_yaml, answers.loaded, 8),
    "loaded tensors": Reader(TENSORS, mutations.of_safetensors, answers.trusted, 8),
    "optimiser": Reader("checkpoint/state.json", mutations.of_json, answers.optimiser, 80),
    "optimiser tensors": Reader(TENSORS, mutations.of_safetensors, answers.trusted_optimiser, 60),
    "network": Reader("checkpoint/state.json", mutations.of_network, answers.loaded, 20),
    "weights": Reader(TENSORS, mutations.of_tensors, answers.trusted, 8),
    "optimiser weights": Reader(TENSORS, mutations.of_tensors, answers.trusted_optimiser, 60),
    "judge weights": Reader("judge.safetensors", mutations.of_tensors, answers.judge, 60),
    "explanations": Reader("explain/entries.json", mutations.of_json, answers.explanations, 200),
    "explained picture": Reader("explain/1.png", mutations.of_png, answers.explanations, 150),
    "audit": Reader("audit/linear-*.npz", mutations.of_npz, answers.kept_attack, 120),
    "sweep": Reader("result.json", mutations.of_json, answers.swept, 150),
    "judge": Reader("judge.safetensors", mutations.of_safetensors, answers.judge, 60),
}


def damage(folder: Path, name: str, numbers: range) -> Iterator[str]:
    """Damage a reader's file in every numbered way, read it, and tell what is wrong with the answer."""
    reader = READERS[name]
    (path,) = folder.glob(reader.file)
    kept = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    for number in numbers:
        content, what = reader.mutate(random.Random(f"{name} {number}"), kept[path])
        path.write_bytes(content)
        try:
            reader.read(folder)
        except ValueError:
            pass
        except Exception as error:
            yield f"{name!r} {number}: {what} → {type(error).__name__}: {error}"
        for each in (path, folder / "checkpoint" / STATE):
            each.write_bytes(kept[each])
