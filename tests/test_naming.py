"""A name that users give is a name, never a way out of the folder that it is put in."""

import pytest

from attcem.cli import main
from attcem.config import Experiment
from attcem.naming import check_name

NO_NAMES = ["", " ", ".", "..", "../x", "/elsewhere/x", "a/b", "a\\b", ".hidden", "-rf", " a", "a ", "a\nb", "a\x1b[2J"]
NO_NAMES += ["a\x00b", "a\u202eb", "a\udcffb", "x" * 201, "名" * 67]


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_is_refused_on_one_line(name):
    with pytest.raises(ValueError, match=r"^name ") as error:
        Experiment(name=name)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("name", ["slot", "noise 0.5", "a..b", "x" * 200, "噪声，二", "naïve", "~x", "$x", "#1"])
def test_other_names_are_kept_as_they_are(name):
    check_name(name)
    assert Experiment(name=name).name == name


@pytest.mark.parametrize("command", ["run", "sweep", "tune", "cut"])
def test_a_file_of_somebody_else_cannot_write_elsewhere(command, tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in (str(tmp_path / "elsewhere"), "../../elsewhere"):
        settings = f"name: {name}"
        shared = here / "shared.yaml"
        shared.write_text(f"base:\n  {settings}\nseeds: [0]\n" if command == "sweep" else settings)
        options = ["--range", "train.lr", "0.1", "0.2", "--trials", "1"] if command == "tune" else []
        assert main([command, str(shared), *options]) == 2
        assert f"name cannot be {name!r}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["here", "shared.yaml"]
