"""The table of slides, in the order in which they are told, and the file they end in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from attcem.files import write_atomically
from attcem.language import language
from attcem.slides.attention import attention
from attcem.slides.deck import encode
from attcem.slides.equations import equations
from attcem.slides.failures import failures
from attcem.slides.gallery import gallery
from attcem.slides.matched import matched
from attcem.slides.method import method
from attcem.slides.numbers import numbers
from attcem.slides.page import Page
from attcem.slides.problem import problem
from attcem.slides.questions import questions
from attcem.slides.story import Story, stories
from attcem.slides.threat import threat
from attcem.slides.title import title
from attcem.slides.tradeoff import tradeoff
from attcem.slides.training import training
from attcem.types import Result


class Kind(NamedTuple):
    """How slides of one kind are made, and why there may be none."""

    make: Callable[[Story], list[Page]]
    missing: str = ""


SLIDES = {
    "title": Kind(title),
    "problem": Kind(problem, "no run without a defence"),
    "threat": Kind(threat, "no run names its threat model"),
    "method": Kind(method),
    "equations": Kind(equations),
    "tradeoff": Kind(tradeoff, "no run was measured"),
    "gallery": Kind(gallery, "no run kept pictures of an attack"),
    "training": Kind(training, "no run recorded its training"),
    "attention": Kind(attention, "nobody looked: attcem explain RUN"),
    "numbers": Kind(numbers),
    "matched": Kind(matched, "these runs cannot be compared: attcem compare says why"),
    "questions": Kind(questions, "no run without a defence"),
    "failures": Kind(failures, "nothing failed, and nothing was flagged"),
}


class Written(NamedTuple):
    """The file, how many slides it has, and what is not in it."""

    file: Path
    slides: int
    notes: list[str]


def write_slides(
    results: Sequence[Result], path: str | Path, code: str = "en", at_accuracy: float | None = None
) -> Written:
    """Write a talk about these results as a presentation; several data sets, networks or suites follow one another."""
    if Path(path).suffix != ".pptx":
        raise ValueError(f"{path} is no presentation: give a name that ends in .pptx")
    pages: list[Page] = []
    notes: list[str] = []
    told = stories(results, language(code), at_accuracy)
    for story in told:
        for name, kind in SLIDES.items():
            made = kind.make(story)
            pages += made
            if not made:
                place = " · ".join(story.group.place)
                notes.append(f"no {name}: {kind.missing}{f' ({place})' if len(told) > 1 else ''}")
    foot = " · ".join(dict.fromkeys(part for story in told for part in story.group.place[:2]))
    return Written(write_atomically(Path(path), encode(pages, foot, code)), len(pages), notes)
