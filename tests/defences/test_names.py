"""Every link of a chain has a name of its own, and a chain's description makes it again."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attcem
from attcem.defences import (
    DEFENCES,
    Guard,
    LocalDP,
    Noise,
    TopK,
    build_defence,
    check_described,
    describe,
)
from tests.probes import Shrink

STRENGTHS = {
    "noise": {"sigma": st.floats(0.01, 9)},
    "topk": {"keep": st.floats(0.01, 1)},
    "bound": {"lam": st.floats(0, 9)},
}
LINKS = st.sampled_from([kind for kind in DEFENCES if kind != "none"]).flatmap(
    lambda kind: st.fixed_dictionaries({kind: st.fixed_dictionaries({}, optional=STRENGTHS.get(kind, {}))})
)


def names(guard):
    return list(guard.named)


@settings(max_examples=40)
@given(st.lists(LINKS, max_size=5))
def test_build_and_describe_are_inverse(links):
    chain = [{"noise": {"sigma": 0.1}}, *links]
    guard = build_defence(chain)
    whole = describe(guard)
    assert describe(build_defence(whole)) == whole and names(build_defence(whole)) == names(guard)
    assert [list(link) for link in whole] == [list(link) for link in chain]
    for asked, found in zip(chain, whole, strict=True):
        assert all(found[kind].items() >= options.items() for kind, options in asked.items())
    check_described(guard, chain)


def test_a_chain_counts_its_links_of_one_kind_however_it_is_put_together():
    expected = ["noise", "noise-2", "noise-3", "local_dp", "shrink", "shrink-2"]

    def made():
        return Noise(1), Noise(2), Noise(3), LocalDP(), Shrink(), Shrink()

    a, b, c, d, e, f = made()
    assert names(((((a + b) + c) + d) + e) + f) == expected
    a, b, c, d, e, f = made()
    assert names(a + (b + (c + (d + (e + f))))) == expected
    assert [link.sigma for link in (a, b, c)] == [1, 2, 3]
    assert names(copy.deepcopy(Guard(*made()))) == expected
    assert (Noise().kind, TopK().kind, attcem.Defence().kind) == ("noise", "topk", "defence")


def test_a_link_of_two_chains_has_in_each_the_name_it_has_there():
    one, two, three = Noise(1), Noise(2), Noise(3)
    first, second = one + two, two + three
    for chain in (first, second, first):
        assert names(chain) == ["noise", "noise-2"]


def test_one_defence_cannot_be_two_links():
    noise = Noise()
    with pytest.raises(ValueError, match="same defence twice"):
        noise + Shrink() + noise


def test_a_kind_is_the_name_in_the_table_and_only_there():
    class Louder(Noise):
        pass

    assert all(cls.kind == kind for kind, cls in DEFENCES.items())
    assert not any("-" in kind or ":" in kind for kind in DEFENCES)
    assert (Louder().kind, Noise().kind) == ("louder", "noise")


def test_a_misspelt_hook_and_what_does_not_exist_are_named():
    with pytest.raises(ValueError, match=r"Typo\.penalti is never called: did you mean 'penalty'"):
        type("Typo", (attcem.Defence,), {"penalti": lambda self, batch: 0})
    for declared, message in (({"needs": {"noize"}}, "noise"), ({"distribution": "gaussian"}, "normal")):
        with pytest.raises(ValueError, match=message):
            Guard(type("Own", (attcem.Defence,), declared)())
    with pytest.raises(ValueError, match="holds defences, not a Linear"):
        Guard(torch.nn.Linear(2, 2))


class Own(attcem.Defence):
    def __init__(self, share=0.5, words=("a", "b"), hidden=1, made=None):
        super().__init__()
        self.share, self.words, self.made = share, words, made


def test_an_own_defence_is_recorded_by_its_import_path_and_plain_options():
    described = describe(Noise(0.1) + Own(share=0.25, made=torch.nn.Identity()))
    assert described == [{"noise": {"sigma": 0.1}}, {f"{__name__}:Own": {"share": 0.25, "words": ["a", "b"]}}]
    with pytest.raises(ValueError, match=r"your own class; attcem never runs code named in a file.*guard="):
        build_defence(described)


def test_a_script_is_recorded_as_if_it_were_imported(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import attcem\nfrom attcem.defences import describe\nclass Mine(attcem.Defence): pass\nprint(describe(Mine()))"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[{'mine:Mine': {}}]"


def test_a_name_in_a_file_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="your own class"):
        build_defence([{"trap:Anything": {}}])


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (lambda: Noise(0.2) + Own(), "noise was .*0.1.*, now .*0.2"),
        (lambda: Noise(0.1) + Own(share=0.9), "own was .*0.5.*, now .*0.9"),
        (lambda: Noise(0.1) + Shrink(), "own was .*, now not there; shrink was not there, now"),
        (lambda: Own() + Noise(0.1), "the order was noise, own, now own, noise"),
    ],
)
def test_another_guard_than_the_recorded_one_is_refused_with_the_difference(guard, said):
    recorded = describe(Noise(0.1) + Own())
    check_described(Noise(0.1) + Own(), recorded)
    with pytest.raises(ValueError, match=said):
        check_described(guard(), recorded)


def test_no_code_makes_a_name_from_a_class():
    sources = Path(attcem.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if re.search(r"__name__\s*\.\s*(lower|casefold)\b", path.read_text())]
