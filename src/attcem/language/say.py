"""Say a sentence: an English template and its values in, the same in the reader's language out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter
from typing import Any


class Sentence(Formatter):
    """Fills in a template; a value with a format of two words is counted.

    >>> Sentence().format("{flags:flag|flags} in {runs:run|runs}", flags=1, runs=3)
    '1 flag in 3 runs'
    """

    def format_field(self, value: Any, form: str) -> str:
        one, counted, many = form.partition("|")
        return f"{value} {one if value == 1 else many}" if counted else str(super().format_field(value, form))


@dataclass(frozen=True)
class Say:
    """One language: `say("accuracy {value:.3f}", value=0.89)`.

    Args:
        code: as in the `lang` of a page.
        said: English template → its translation; empty for English itself.
        recorded: the same for sentences that a result holds already, as its flags do.
    """

    code: str = "en"
    said: Mapping[str, str] = field(default_factory=dict)
    recorded: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, template: str, /, **values: Any) -> str:
        return Sentence().format(self.said.get(template, template), **values)

    def again(self, text: str) -> str:
        """A sentence that was written down in English long ago; as it stands where no template fits it."""
        if text in self.said:
            return self.said[text]
        for pattern, translation in self._patterns:
            if found := pattern.fullmatch(text):
                return translation.format(**{name: self.again(value) for name, value in found.groupdict().items()})
        return text

    @property
    def between(self) -> str:
        """What stands between two sentences."""
        return "" if self.code == "zh" else " "

    def sentences(self, text: str) -> list[str]:
        """A text that was written down, sentence by sentence; a dot inside a number ends none."""
        return [self.again(f"{part.strip()}.") for part in text.rstrip(".").split(". ") if part.strip()]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        """The templates of recorded sentences, those that fix most letters first."""
        longest_first = sorted(self.recorded.items(), key=lambda pair: -sum(map(len, fixed_parts(pair[0]))))
        return [(pattern_of(template), translation) for template, translation in longest_first]


ENGLISH = Say()


def phrase(template: str) -> str:
    """A template that is said elsewhere, as one of a table; the catalogue must hold it like any other."""
    return template


def fixed_parts(template: str) -> list[str]:
    return [words for words, *_ in Formatter().parse(template)]


def pattern_of(template: str) -> re.Pattern[str]:
    """What a filled-in template looks like."""
    parts = (
        re.escape(words) + ("" if name is None else f"(?P<{name}>.+?)")
        for words, name, *_ in Formatter().parse(template)
    )
    return re.compile("".join(parts), re.DOTALL)
