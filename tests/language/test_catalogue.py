"""The catalogue holds what the package says: nothing is missing, nothing is left over, every value has its place."""

import ast
from inspect import cleandoc
from string import Formatter

import pytest

from attcem.defences import DEFENCES
from attcem.language import LANGUAGES, language
from attcem.language.say import Say, fixed_parts
from attcem.models import CROSSINGS
from attcem.slides.chain import first_line
from tests.language.said import SOURCE, said

PUBLISHED = SOURCE.parents[1] / "results"
OTHERS = [code for code in LANGUAGES if code != "en"]


def places(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("code", OTHERS)
class TestEveryCatalogue:
    def test_it_says_everything(self, code):
        assert not {template: where for template, where in said().items() if template not in language(code).said}

    def test_it_says_nothing_else(self, code):
        assert not set(language(code).said) - set(said())

    def test_a_translation_has_the_same_values(self, code):
        say = language(code)
        pairs = [*say.said.items(), *say.recorded.items()]
        assert not [english for english, other in pairs if places(english) != places(other)]

    def test_what_it_knows_of_results_is_said_by_the_package_or_stands_in_a_published_result(self, code):
        written = [text for path in SOURCE.rglob("*.py") for text in texts(ast.parse(path.read_text()))]
        written += [path.read_text() for path in PUBLISHED.rglob("result.json")]
        parts = {part.strip(" ().:;,") for template in language(code).recorded for part in fixed_parts(template)}
        assert not [part for part in parts if len(part) > 4 and not any(part in text for text in written)]

    @pytest.mark.parametrize("table", [DEFENCES, CROSSINGS], ids=["defences", "crossings"])
    def test_it_knows_what_every_part_is_listed_with(self, code, table):
        assert not [name for name, kind in table.items() if first_line(kind) not in language(code).recorded]


def texts(tree: ast.AST) -> list[str]:
    """Every string of a module; a docstring as it is shown."""
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [cleandoc(value) for value in constants if isinstance(value, str)]


def test_english_counts():
    say = language("en")
    assert say("{runs:run|runs}", runs=1) == "1 run"
    assert say("{runs:run|runs}", runs=2) == "2 runs"
    assert say("accuracy {value:.2f}", value=0.889) == "accuracy 0.89"


def test_a_recorded_sentence_is_found_again_with_its_values_and_those_inside_them():
    say = Say("xx", recorded={"{name}: {flag}": "{name} → {flag}", "fell by {share}": "−{share}"})
    assert say.again("gated: fell by 98–100%") == "gated → −98–100%"
    assert say.again("nobody knows this") == "nobody knows this"
    assert language("en").again("gated: fell by 98%") == "gated: fell by 98%"


def test_chinese_reads_a_flag_that_holds_another():
    flag = (
        "decoder_medium: cut short while still improving; a longer suite lets it go on "
        "(about 21% off the worst-case MSE if doubling gains as much again)"
    )
    found = language("zh").again(flag)
    assert "decoder_medium：" in found and "21%" in found and "cut short" not in found and "about" not in found


def test_a_language_that_nobody_wrote_is_refused():
    with pytest.raises(ValueError, match="unknown language 'xx': choose from: en, zh"):
        language("xx")
