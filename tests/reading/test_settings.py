"""YAML from strangers: small, plain and unambiguous, or a line that says what is wrong with which file."""

import os

import pytest

from attcem.cli import main
from attcem.config import Experiment
from attcem.configfile import UsageError, parse_experiment
from attcem.reading.settings import LIMIT, parse_yaml, read_yaml
from attcem.report.watch import how_far

LAUGHS = "a0: &a0 [ha]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
"""295 bytes or so that would be 43 million entries."""
BAD = {
    "aliases": (LAUGHS, "aliases are written out"),
    "itself": ("a: &a [*a]", "a part of"),
    "deep": ("a: " + "[" * 500 + "]" * 500, "nested more than 32 deep"),
    "deeper": ("a: " + "[" * 50_000, "nested more than 32 deep"),
    "twice": ("seed: 1\ntrain: {epochs: 2}\nseed: 2", "the key 'seed' is there twice (line 3)"),
    "long": ("# " + "x" * LIMIT, "larger than 0.2 MB"),
    "tag": ("seed: !!python/object/apply:os.getpid []", "the tag 'tag:yaml.org,2002:python"),
    "binary": (b"seed: \xff", "is not valid YAML"),
    "huge": ("seed: " + "9" * 4000, "64 bits"),
    "half a character": ('name: "\\ud800"', "surrogates not allowed"),
    "key": ("no: 1", "the key False is not text"),
}


@pytest.fixture(params=BAD)
def bad(request, tmp_path):
    content, message = BAD[request.param]
    path = tmp_path / "config.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path, message


def test_a_bad_file_is_named_with_what_is_wrong(bad):
    path, message = bad
    with pytest.raises(ValueError) as said:
        read_yaml(path)
    assert str(path) in str(said.value) and message in str(said.value)


def test_every_command_that_reads_settings_refuses_it(bad, capsys):
    path, _ = bad
    for command in (["run", str(path)], ["run", "--config", str(path)], ["sweep", str(path)]):
        assert main(command) == 2
        assert str(path) in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"config\.yaml"):
        how_far(path.parent)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(ValueError, match="not a plain file"):
        read_yaml(tmp_path / "config.yaml")


def test_an_option_of_the_command_line_is_read_in_the_same_way():
    for option in (f"--defence.noise.sigma={LAUGHS}", f"--defence.noise={LAUGHS}", f"--model={LAUGHS}"):
        with pytest.raises(UsageError):
            parse_experiment([option])


def test_plain_settings_and_modest_aliases_are_read():
    text = "base: &base {lr: 1e-3, when: 2026-01-02}\nmore: {<<: *base, lr: 2.5e+1}\nall: [*base, 1, .5, yes, null, 08]"
    base = {"lr": 0.001, "when": "2026-01-02"}
    assert parse_yaml(text) == {"base": base, "more": base | {"lr": 25.0}, "all": [base, 1, 0.5, True, None, "08"]}


def test_a_file_after_config_is_a_file_and_the_command_line_wins(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(
        "seed: 3\ntrain: {lr: 1e-3, epochs: 7}\nmodel: {bottleneck: {channels: 4}}\ndefence: {noise: {sigma: 1e-1}}"
    )
    for first in ([str(path)], ["--config", str(path)], [f"--config={path}"]):
        found = parse_experiment([*first, "--train.epochs", "2", "--model.bottleneck.stride=2"])
        assert (found.seed, found.train.lr, found.train.epochs) == (3, 0.001, 2)
        assert found.defence == [{"noise": {"sigma": 0.1}}]
        assert (found.model.bottleneck.channels, found.model.bottleneck.stride) == (4, 2)
    assert parse_experiment([]) == Experiment()
    with pytest.raises(UsageError, match="needs a file"):
        parse_experiment(["--config"])
