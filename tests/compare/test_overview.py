import csv
import io

import pytest

from attcem.cli import main
from attcem.compare.overview import FORMATS, overview
from tests.compare.planted import made, noise, planted


def columns(found, line):
    return dict(zip(found.heading, line, strict=True))


def test_a_line_is_the_mean_and_deviation_of_a_setting_over_its_seeds():
    runs = [made(noise(0.3), accuracy, mse, seed) for seed, (accuracy, mse) in enumerate([(0.8, 0.02), (0.7, 0.04)])]
    for run in runs:
        run.cost |= {"values": 512, "multiplications_device": 1.5e6}
    found = overview(runs)
    line = columns(found, found.lines[0])
    assert line["accuracy"] == "0.750 ± 0.071" and line["MSE"] == "0.0300 ± 0.0141"
    assert (line["seeds"], line["values"], line["device, M"]) == ("2", "512", "1.5")


def test_the_undefended_come_first_then_every_defence_from_its_most_accurate_strength():
    found = overview(planted(0.01))
    settings = [line[0] for line in found.lines if not line[0].startswith("free")]
    assert settings[0] == "no defence" and len(settings) == 7
    accuracies = [float(columns(found, line)["accuracy"].split()[0]) for line in found.lines[1:7]]
    assert accuracies == [0.8, 0.7, 0.6] * 2


def test_free_guesses_close_the_table_and_cost_nothing():
    run = made(noise(0.3), 0.8, 0.02)
    run.cost["bytes"] = 100
    found = overview([run])
    free = columns(found, found.lines[-3])
    assert free["setting"] == "free: mean image" and free["bytes"] == free["accuracy"] == "–"
    assert free["MSE ratio"] == "1.000"


def test_a_column_that_no_run_measured_is_left_out():
    run = made(noise(0.3), 0.8, 0.02)
    run.cost.clear()
    assert "values" not in overview([run]).heading


def test_columns_are_chosen_in_the_order_asked_for_and_a_typo_is_told(tmp_path, capsys):
    made(noise(0.3), 0.8, 0.02).save(tmp_path / "run")
    assert main(["table", str(tmp_path), "--columns", "MSE", "accuracy", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("setting,seeds,MSE,")
    assert main(["table", str(tmp_path), "--columns", "acuracy"]) == 1
    assert "unknown column 'acuracy': did you mean 'accuracy'?" in capsys.readouterr().err


def test_flags_that_differ_only_in_numbers_count_once():
    runs = [made(noise(0.3), 0.8, 0.02, seed, flags=[f"cut short, {seed} % off"]) for seed in (1, 2)]
    found = overview(runs)
    assert columns(found, found.lines[0])["flags"] == "1"


def test_runs_that_were_not_asked_the_same_are_refused():
    other = made(noise(0.3), 0.8, 0.02, audit={"suite": "quick"})
    with pytest.raises(ValueError, match=r"were not asked the same: .*suite demo; .*suite quick: give those of one"):
        overview([made(noise(0.3), 0.8, 0.02), other])


def test_csv_has_figures_that_compute():
    (record,) = csv.DictReader(io.StringIO(FORMATS["csv"](overview([made(noise(0.3), 0.8, 0.02)]))))
    assert float(record["accuracy"]) == 0.8 and record["setting"] == "noise σ=0.3"


def test_the_command_prints_every_format(tmp_path, capsys):
    for seed in (0, 1):
        made(noise(0.3), 0.8, 0.02, seed).save(tmp_path / str(seed))
    for form, sign in (("text", "setting "), ("markdown", "|---|"), ("latex", "\\toprule"), ("csv", "setting,seeds")):
        assert main(["table", str(tmp_path), "--format", form]) == 0
        assert sign in capsys.readouterr().out
