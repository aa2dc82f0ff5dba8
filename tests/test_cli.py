"""What a user types, what comes back, and with which exit code."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import attcem
from attcem.cli import main
from attcem.configfile import parse_experiment
from attcem.listing import preset_paths, sweep_paths

TINY = """\
data: {{name: "npz:{data}"}}
model: {{backbone: vgg11_bn, cut: 4, bottleneck: 4, width: 0.1}}
defence: {{noise: {{sigma: 0.2}}}}
train: {{epochs: 2, batch: 32}}
audit: {{suite: smoke, images: 40}}
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, fashion) -> Path:
    """An experiment of seconds, on arrays of one's own."""
    folder = tmp_path_factory.mktemp("tiny")
    part = {"x_train": fashion.private[:400].x, "x_test": fashion.test[:60].x}
    labels = {"y_train": fashion.private[:400].y, "y_test": fashion.test[:60].y}
    np.savez(folder / "tiny.npz", **{name: t.numpy().astype(np.uint8) for name, t in (part | labels).items()})
    (folder / "tiny.yaml").write_text(TINY.format(data=folder / "tiny.npz"))
    return folder / "tiny.yaml"


@pytest.fixture(scope="module")
def finished(tiny) -> Path:
    out = tiny.parent / "run"
    assert main(["run", str(tiny), "--out", str(out), "--seed", "3"]) == 0
    return out


def test_a_run_leaves_everything_the_design_promises(finished):
    assert {"config.yaml", "result.json", "history.csv", "checkpoint", "images", "diagnostics.npz"} <= {
        path.name for path in finished.iterdir()
    }
    result = json.loads((finished / "result.json").read_text())
    keys = "schema config seed versions commit accuracy attacks worst per_class bounds baselines flags cost history"
    assert set(keys.split()) <= set(result)
    assert result["seed"] == 3 and result["config"]["defence"] == [{"noise": {"sigma": 0.2}}]
    assert set(result["baselines"]) == {"mean_image", "class_mean", "nearest_public"}
    for scores in (*result["attacks"].values(), result["worst"], *result["baselines"].values()):
        for metric in ("mse", "psnr", "ssim", "recon_acc", "reid_top1"):
            assert set(scores[metric]) == {"mean", "p05", "p95", "n"} and scores[metric]["n"] == 40
    sizes = {"params_device", "multiplications_device", "values", "bytes"}
    assert {"train_s", "step_ms", "surrogate_share", "peak_mb"} | sizes <= set(result["cost"])
    assert result["config"]["data"]["draw"]["sizes"]["test"] == 60


def test_the_printed_line_puts_the_mean_image_beside_the_worst_case(finished, tiny, capsys):
    assert main(["run", str(tiny), "--out", str(finished), "--seed", "3", "--resume"]) == 0
    printed = capsys.readouterr().out
    result = json.loads((finished / "result.json").read_text())
    worst, free = result["worst"], result["baselines"]["mean_image"]
    assert f"{result['accuracy']:.4f}" in printed
    assert (
        f"{worst['mse']['mean']:.5f}   {worst['mse']['mean'] / free['mse']['mean']:.3f} of the mean image's "
        f"{free['mse']['mean']:.5f}" in printed
    )
    assert f"{worst['psnr']['mean'] - free['psnr']['mean']:+.2f} dB over the mean image" in printed


def test_a_run_is_not_overwritten_and_not_mixed_with_another(finished, tiny, capsys):
    assert main(["run", str(tiny), "--out", str(finished), "--seed", "3"]) == 1
    assert "--resume" in capsys.readouterr().err
    assert main(["run", str(tiny), "--out", str(finished), "--seed", "4", "--resume"]) == 1
    assert "other settings" in capsys.readouterr().err


def test_a_run_folder_can_be_run_again_by_its_name(finished):
    assert main(["run", str(finished), "--resume"]) == 0


def test_audit_and_report(finished, tmp_path, capsys):
    assert main(["audit", str(finished), "--images", "30", "--seed", "1"]) == 0
    assert json.loads((finished / "result.json").read_text())["worst"]["mse"]["n"] == 30
    page = tmp_path / "page.html"
    assert main(["report", str(finished.parent), "--out", str(page)]) == 0
    assert "mean image" in page.read_text()


def test_explain_draws_pictures_that_the_report_shows(finished, tmp_path, capsys):
    assert main(["explain", str(finished), "--images", "20"]) == 0
    printed = capsys.readouterr().out
    files = [Path(line.split()[0]) for line in printed.splitlines() if ".png" in line]
    assert files and all(file.parent == finished / "explain" and file.exists() for file in files)
    assert f"attcem report {finished} --out report.html" in printed
    page = tmp_path / "page.html"
    assert main(["report", str(finished), "--out", str(page)]) == 0
    assert "Inside the defence" in page.read_text()


def test_explain_of_something_else_says_what_to_do(capsys, tmp_path, tiny, finished):
    assert main(["explain", str(tmp_path / "missing")]) == 1
    assert "not a run" in capsys.readouterr().err
    (tmp_path / "config.yaml").write_text(tiny.read_text())
    assert main(["explain", str(tmp_path)]) == 1
    assert "train first" in capsys.readouterr().err
    assert main(["explain", str(finished), "--images", "1"]) == 1
    assert "--images 1000" in capsys.readouterr().err
    shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint")
    assert main(["explain", str(tmp_path), "--images", "20"]) == 0
    assert f"attcem audit {tmp_path}" in capsys.readouterr().out


def test_a_run_whose_data_are_drawn_otherwise_now_is_refused(finished, tiny, tmp_path, capsys):
    """Its private images might be among those that are tested now."""
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    path = run / "checkpoint" / "state.json"
    state = json.loads(path.read_text())
    assert len(state["draw"]) == 64
    path.write_text(json.dumps(state | {"draw": "0" * 64}))
    (run / "result.json").unlink()
    for command in (["audit", str(run)], ["run", str(run), "--resume"]):
        assert main(command) == 1
        assert "was trained on other images than its settings draw now" in capsys.readouterr().err


def test_load_run_gives_the_released_graph_that_was_audited(finished):
    import attcem

    model, guard, data = attcem.load_run(finished)
    released = guard.release(model.encoder(data.test[:4].pixels()))
    assert released.shape == (4, 4, 7, 7) and guard.sigma == 0.2
    torch.manual_seed(attcem.Result.load(finished).config["audit"]["seed"])  # the noise that the audit drew
    assert attcem.evaluate(model, guard, data.test)[1] == attcem.Result.load(finished).accuracy


def test_the_written_configuration_is_complete(finished):
    written = yaml.safe_load((finished / "config.yaml").read_text())
    assert written["model"]["bottleneck"] == {"channels": 4, "stride": 1, "kernel": 3} and written["seed"] == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["rnu"], "did you mean 'run'"),
        (["--vers"], "did you mean '--version'"),
        (["list", "defence"], "unknown list 'defence': did you mean 'defences'"),
        (["run", "--sede", "1"], "did you mean '--seed'"),
        (["run", "--train.epohs", "1"], "did you mean '--train.epochs'"),
        (["run", "--train.epoch", "1"], "did you mean '--train.epochs'"),
        (["run", "--model.wid=0.5"], "did you mean '--model.width'"),
        (["run", "fashion_noise", "--audit.image", "20"], "did you mean '--audit.images'"),
        (["run", "--train.recipe", "modren"], "did you mean 'modern'"),
        (["run", "--train.epochs", "many"], "must be of type int"),
        (["run", "--model.backbone", "vgg11bn"], "did you mean 'vgg11_bn'"),
        (["run", "--model.bottleneck.chanels", "8"], "did you mean 'channels'"),
        (["run", "--model.activation", "sigmod"], "did you mean 'sigmoid'"),
        (["run", "--data.name", "cifar"], "did you mean 'cifar10'"),
        (["run", "--data.name", "mine.npz"], "write npz:mine.npz"),
        (["run", "--audit.suite", "quik"], "did you mean 'quick'"),
        (["run", "--defence.nose.sigma", "1"], "did you mean 'noise'"),
        (["run", "--defence.noise.sigm", "1"], "did you mean 'sigma'"),
        (["run", "--defence.noise.sigma", "loud"], "must be of type float"),
        (["run", "--defence.noise.sigma", "-1"], "zero or positive"),
        (["run", "--defence.bound.lam", "1"], "add noise, as in defence.noise.sigma=0.1"),
        (["run", "--defence.bound.cov", "diagonal"], "did you mean 'diag'"),
        (["run", "--defence.lamb", "1"], "unknown defence or option 'lamb'"),
        (["run", "--defence.lam", "1"], "no link of the chain has the option 'lam': the chain is empty"),
        (["run", "fashion_noise", "--defence.lam", "3"], "no link of the chain has the option 'lam': noise has sigma"),
        (["run", "--defence.noise", "5"], "give its options"),
        (["run", "--defence.noise.sigma", "[1"], "give a number"),
        (["run", "--defence.noise.sigma"], "needs a value"),
        (["run", "--defence.noise.sigma", "--seed", "1"], "needs a value"),
        (["run", "missing.yaml"], "missing.yaml is no file and no preset: choose from"),
        (["run", "fashion_nois"], "did you mean 'fashion_noise'?"),
        (["run", "tradeoff"], "describes many runs: attcem sweep"),
        (["tune", "fashion_nois"], "did you mean 'fashion_noise'?"),
        (["report", "x", "--ot", "y"], "did you mean '--out'"),
        (["report", "x", "--out", "no/such/page.html"], "there is no folder no/such: make it"),
        (["data", "get"], "required"),
        (["audit", "runs", "--imags", "3"], "did you mean '--images'"),
        (["explain", "runs", "--tsn"], "did you mean '--tsne'"),
        (["explain"], "required"),
    ],
)
def test_a_typo_is_an_error_that_names_the_nearest(arguments, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert named in said and said.startswith("attcem: ") and said.count("\n") == 1
    assert not list(tmp_path.iterdir()), "work had started"


def test_a_run_that_is_not_found_is_told_no_sweep(capsys):
    assert main(["run", "missing.yaml"]) == 2
    offered = capsys.readouterr().err.strip().partition("choose from: ")[2].split(", ")
    assert offered == sorted(preset_paths()) and not sweep_paths().keys() & set(offered)


def test_a_cut_that_does_not_exist_lists_the_cuts_on_one_line(capsys, tmp_path):
    assert main(["run", "fashion_noise", "--model.cut", "99", "--out", str(tmp_path / "r")]) == 1
    said = capsys.readouterr().err
    assert "cut=99 does not exist in 'vgg11_bn'" in said and "cut=4 (after pool2, 32×7×7), cut=5" in said
    assert "\\n" not in said and "  " not in said


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("trian: {epochs: 3}", "did you mean 'train'"),
        ("train: {epohs: 3}", "'train.epohs': did you mean 'epochs'"),
        ("model: {bottleneck: {chanels: 3}}", "'model.bottleneck.chanels': did you mean 'channels'"),
        ("train: {recipe: modren}", "did you mean 'modern'"),
        ("defence: {nose: {sigma: 1}}", "did you mean 'noise'"),
        ("- 1", "must hold settings"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_typo_in_a_file_too(text, named, capsys, tmp_path):
    (tmp_path / "typo.yaml").write_text(text)
    assert main(["run", str(tmp_path / "typo.yaml")]) == 2
    assert named in capsys.readouterr().err


def test_a_short_option_reaches_the_one_link_that_has_it(tiny):
    from attcem.configfile import parse_experiment

    assert parse_experiment([str(tiny), "--defence.sigma", "0.7"]).defence == [{"noise": {"sigma": 0.7}}]
    assert parse_experiment([str(tiny), "--defence.noise.sigma", "0.7"]).defence == [{"noise": {"sigma": 0.7}}]
    assert parse_experiment([str(tiny), "--defence.noise.sigma=0.7", "--seed", "2"]).defence == [
        {"noise": {"sigma": 0.7}}
    ]


def test_several_options_of_one_link_are_all_kept_and_the_files_others_with_them(tmp_path):
    from attcem.configfile import parse_experiment

    file = tmp_path / "gated.yaml"
    file.write_text("defence: {noise: {sigma: 0.2}, gated: {lam: 3, gamma: 0.01}}")
    options = ["--defence.gated.form", "gates", "--defence.gated.warmup", "2", "--defence.lam=5"]
    gated = parse_experiment([str(file), *options]).defence[1]["gated"]
    assert [gated[name] for name in ("form", "warmup", "lam", "gamma")] == ["gates", 2, 5.0, 0.01]


@pytest.mark.parametrize("what", ["defences", "attacks", "data", "backbones", "recipes", "suites", "presets", "sweeps"])
def test_every_list_has_names_with_a_sentence_each(what, capsys):
    assert main(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_every_preset_is_a_valid_experiment():
    from attcem.configfile import parse_experiment

    assert preset_paths()
    for path in preset_paths().values():
        parse_experiment([str(path)])


def test_data_that_is_not_there_says_what_to_type(capsys, tmp_path):
    assert main(["run", "--data.name", "cifar10", "--data.root", str(tmp_path), "--out", str(tmp_path / "r")]) == 1
    assert "attcem data get cifar10" in capsys.readouterr().err


def test_an_interrupted_run_is_not_audited(finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    (run / "result.json").unlink()
    state = json.loads((run / "checkpoint" / "state.json").read_text())
    (run / "checkpoint" / "state.json").write_text(json.dumps(state | {"finished": False, "epoch": 1}))
    assert main(["audit", str(run)]) == 1
    said = capsys.readouterr().err
    assert f"attcem run {run} --resume` first" in said and "is trained for 1 of" in said


def test_audit_of_something_else_says_so(capsys, tmp_path):
    assert main(["audit", str(tmp_path)]) == 1
    assert f"{tmp_path} is not a run: it holds no config.yaml" in capsys.readouterr().err
    assert main(["audit", str(tmp_path / "missing")]) == 1
    assert "missing is not a run: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["audit", "explain"])
def test_a_folder_of_runs_names_three_of_them(command, capsys, tmp_path):
    for name in ("d", "a", "c/deep", "b"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").touch()
    assert main([command, str(tmp_path)]) == 1
    three = ", ".join(str(tmp_path / name) for name in "abd")
    assert f"{tmp_path} is not a run: it holds runs, so name one of them: {three} and 1 more" in capsys.readouterr().err


def test_help_needs_no_torch():
    code = """
import sys
from attcem.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print('torch' in sys.modules)
"""
    for arguments in (["--help"], ["run", "--help"], ["explain", "--help"], ["data", "get", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "False" and "usage" in done.stdout


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, attcem; print(sorted({'torch', 'numpy', 'rich', 'jsonargparse'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    import attcem

    assert all(getattr(attcem, name) is not None for name in attcem.__all__)


def test_interrupting_a_run_says_how_to_go_on(tiny, capsys, monkeypatch, tmp_path):
    import attcem.train.loop as loop

    monkeypatch.setattr(loop.Training, "train", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["run", str(tiny), "--out", str(tmp_path / "r")]) == 1
    assert f"attcem run {tmp_path / 'r'} --resume" in capsys.readouterr().err


@pytest.mark.parametrize("line", [["list"], ["--help"], ["run", "--help"]])
def test_a_closed_pipe_is_no_error(line, forked):
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen([sys.executable, "-m", "attcem", *line], stdout=write, stderr=subprocess.PIPE) as command:
        os.close(write)
        assert command.communicate()[1] == b"" and command.returncode == 0


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"attcem {attcem.__version__}\n"


def test_another_system_is_told_what_it_lacks():
    line = "import os; os.name = 'nt'; import attcem"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.endswith("on Windows, install it inside WSL\n")


@pytest.mark.parametrize(
    ("line", "recommended"),
    [("", True), ("--seed 1 --train.epochs 2", True), ("--model.width 0.5", False), ("--defence.noise.sigma 1", False)],
)
def test_a_run_without_file_model_and_defence_is_the_recommended_one(line, recommended, monkeypatch):
    asked = []

    def remember(experiment, *_, **__):
        asked.append(experiment)
        raise ValueError("enough")

    monkeypatch.setattr("attcem.experiment.run", remember)
    assert main(["run", *line.split()]) == 1
    preset = parse_experiment([str(preset_paths()["recommended"])])
    assert (asked[0].model == preset.model) == recommended and (asked[0].defence == preset.defence) == recommended
