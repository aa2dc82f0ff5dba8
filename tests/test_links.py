"""A chain as settings write it: one form inside, the older one still read, every link under a name of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attcem import Experiment
from attcem.configfile import UsageError, parse_experiment
from attcem.experiment import run_folder
from attcem.links import as_chain, number, read_links

TWO = [{"noise": {"sigma": 0.1}}, {"noise": {"sigma": 0.2}}]


@pytest.mark.parametrize(
    ("written", "chain"),
    [
        (None, []),
        ({}, []),
        ("none", []),
        ([{"none": None}], []),
        ({"noise": {"sigma": 0.1}, "topk": None}, [{"noise": {"sigma": 0.1}}, {"topk": {}}]),
        (["topk", {"noise": {}}, "topk"], [{"topk": {}}, {"noise": {}}, {"topk": {}}]),
        (TWO, TWO),
    ],
)
def test_every_way_to_write_a_chain_means_one_list(written, chain):
    assert as_chain(written) == as_chain(as_chain(written)) == Experiment(defence=written).defence == chain


@pytest.mark.parametrize("written", [5, [5], [[{}]], [None]])
def test_what_is_no_chain_is_refused(written):
    with pytest.raises(ValueError, match="give a list of links"):
        as_chain(written)


def test_options_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"defence\.noise cannot be 0.1: give its options"):
        read_links({"noise": 0.1})


@given(st.lists(st.sampled_from(["noise", "topk", "my.code:Noise", "my.code:TopK", "a:B.KeepAll"])))
def test_no_two_links_share_a_name(kinds):
    names = number(kinds)
    assert len(set(names)) == len(kinds)
    assert names[: len(kinds) // 2] == number(kinds[: len(kinds) // 2])  # a longer chain renames nothing before it


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text("defence:\n- noise: {sigma: 0.1}\n- noise: {sigma: 0.2}\n- topk\n")
    return str(path)


@pytest.mark.parametrize(
    ("options", "sigmas", "keep"),
    [
        ([], [0.1, 0.2], 0.5),
        (["--defence.noise.sigma", "0.7"], [0.7, 0.2], 0.5),
        (["--defence.noise-2.sigma=0.7", "--defence.keep", "0.1"], [0.1, 0.7], 0.1),
        (["--defence.noise-3.sigma", "0.7"], [0.1, 0.2, 0.7], 0.5),
    ],
)
def test_the_command_line_reaches_every_link_by_its_name(two, options, sigmas, keep):
    links = read_links(parse_experiment([two, *options]).defence)
    assert [link.options["sigma"] for link in links if link.kind == "noise"] == sigmas
    assert [link.options["keep"] for link in links if link.kind == "topk"] == [keep]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--defence.sigma", "belongs to more than one of noise, noise-2: write defence.noise.sigma"),
        ("--defence.noise-4.sigma", "no link 'noise-4': did you mean 'noise-2'"),
        ("--defence.nois-2.sigma", "no link 'nois-2': did you mean 'noise-2'"),
        ("--defence.noise-2.sigm", "defence 'noise-2' has no option 'sigm': did you mean 'sigma'"),
        ("--defence.nois.sigma", "unknown defence or option 'nois': did you mean 'noise'"),
        ("--defence", "defence cannot be"),
    ],
)
def test_a_wrong_name_of_a_link_is_an_error_that_helps(two, option, said):
    with pytest.raises(UsageError, match=said):
        parse_experiment([two, option, "0.3"])


def test_a_folder_is_named_after_the_links_and_is_the_same_for_both_ways_to_write():
    assert run_folder(Experiment(defence=TWO)).startswith("fashion-vgg11_bn-noise-noise-2-s0-")
    ways = ({"noise": {"sigma": 0.1}, "topk": {}}, [{"noise": {"sigma": 0.1}}, "topk"])
    assert len({run_folder(Experiment(defence=way)) for way in ways}) == 1


def crossing_of(*arguments):
    return parse_experiment(list(arguments)).model.crossing


def test_several_options_of_a_crossing_on_one_command_line_all_count():
    given = [
        "--model.crossing.pool.size",
        "3",
        "--model.crossing.pool.condense=9",
        "--model.crossing.pool.cloud",
        "head",
    ]
    assert crossing_of(*given) == {"pool": {"size": 3, "condense": 9, "cloud": "head"}}
    assert crossing_of("--model.crossing", "vector") == {"vector": {}}


def test_an_option_of_a_crossing_leaves_those_of_the_file_as_they_are(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("model: {crossing: {pool: {size: 4, channels: 8}}}\n")
    assert crossing_of(str(file), "--model.crossing.pool.channels", "16") == {"pool": {"size": 4, "channels": 16}}
    assert crossing_of(str(file), "--model.crossing.vector.channels", "16") == {"vector": {"channels": 16}}


def test_options_of_two_crossings_are_refused():
    with pytest.raises(UsageError, match="of pool and vector: only one form crosses"):
        crossing_of("--model.crossing.pool.size", "2", "--model.crossing.vector.channels", "3")
    with pytest.raises(UsageError, match="needs a value"):
        crossing_of("--model.crossing.pool.size")
