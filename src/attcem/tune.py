"""Search for settings with Optuna: accuracy against leakage, both on validation images; processes share one study."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attcem.config import Experiment
from attcem.configfile import UsageError, as_arguments, parse_experiment
from attcem.experiment import run_folder, validate
from attcem.locks import held
from attcem.parts import make_guard
from attcem.progress import say
from attcem.sweep.table import figures
from attcem.workplace import working_in

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

Given = Sequence[Sequence[str]]  # an option that may be repeated: a key and its values, each time
LOCK = ".turn.lock"  # one process at a time chooses: until a trial's folder is locked, it looks abandoned to others


class Search(NamedTuple):
    """What is searched: a base as `[FILE] --key value …`, and the range or the choices of each dotted key."""

    base: Sequence[str]
    space: Mapping[str, BaseDistribution]
    device: str | None = None  # where trials are computed; it is no part of what is searched

    def experiment(self, values: Mapping[str, Any]) -> Experiment:
        return parse_experiment([*self.base, *as_arguments(values)]).on(self.device)

    def command(self, values: Mapping[str, Any]) -> str:
        """What to type for a run with these values, which is then judged on test images."""
        return shlex.join(["attcem", "run", *self.base, *as_arguments(values)])


def read_search(base: list[str], ranges: Given, log_ranges: Given, choices: Given, device: str | None = None) -> Search:
    """The search of a command line; both ends of a range, and every choice, are checked as settings."""
    try:
        from optuna.distributions import CategoricalDistribution
    except ImportError:
        raise ValueError("optuna is not installed: pip install 'attcem[tune]'") from None
    space: dict[str, BaseDistribution] = {}
    for key, *values in choices:
        if not values:
            raise UsageError(f"--choice {key} needs values, as in --choice model.activation tanh sigmoid")
        for value in values:
            check_value(base, key, value)
        space[key] = CategoricalDistribution(values)
    for given, log in ((ranges, False), (log_ranges, True)):
        space |= {key: distribution(base, key, low, high, log=log) for key, low, high in given}
    if not space:
        raise UsageError("nothing to search: add --range, --log-range or --choice")
    return Search(base, space, device)


def check_value(base: Sequence[str], key: str, value: object) -> None:
    make_guard(parse_experiment([*base, f"--{key}={value}"]))


def distribution(base: Sequence[str], key: str, low: str, high: str, *, log: bool) -> BaseDistribution:
    """A range of fractions, or of whole numbers if the setting takes only these."""
    from optuna.distributions import FloatDistribution, IntDistribution

    for end in (low, high):
        check_value(base, key, end)
    try:
        first, last = float(low), float(high)
    except ValueError:
        raise UsageError(f"the range of {key} needs two numbers, not {low!r} and {high!r}: or use --choice") from None
    if not first < last or (log and first <= 0):
        raise UsageError(f"the range of {key} must rise{' from above zero' if log else ''}, not from {low} to {high}")
    try:
        check_value(base, key, first + 0.37 * (last - first) + 1e-3)
    except UsageError:
        return IntDistribution(int(low), int(high), log=log)
    return FloatDistribution(first, last, log=log)


def tune(search: Search, out: Path, trials: int, *, seed: int = 0) -> Study:
    """Try settings until the study has `trials` trials, including those of other processes.

    A trial is trained in a folder named by its settings; if its process dies, it is resumed from its last epoch.
    """
    from optuna.trial import TrialState

    study = open_study(search, out, seed)
    while True:
        with contextlib.ExitStack() as stack:
            with held(out / LOCK, wait=True):
                requeue_abandoned(study, search, out)
                begun = [t for t in study.trials if t.state.name in ("RUNNING", "COMPLETE") or "cause" in t.user_attrs]
                if len(begun) >= trials:  # an abandoned one was queued again, and counts then
                    return study
                trial = study.ask(dict(search.space))
                experiment = search.experiment(trial.params)
                folder = out / run_folder(experiment)
                stack.enter_context(working_in(folder))
            values = {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in trial.params.items()}
            say(f"trial {trial.number}: {', '.join(f'{key}={value}' for key, value in values.items())}")
            try:
                found = validate(experiment, folder)
            except ValueError as error:  # settings that cannot be trained
                trial.set_user_attr("cause", str(error))
                study.tell(trial, state=TrialState.FAIL)
                say(f"trial {trial.number}: failed, {error}")
                continue
            study.tell(trial, [found.accuracy, float(found.worst.mse)])
            say(f"trial {trial.number}: validation {figures(found.accuracy, found.worst.mse)}")


def open_study(search: Search, out: Path, seed: int) -> Study:
    """The study in a folder, new or continued; a study of another search is an error."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    out.mkdir(parents=True, exist_ok=True)
    with held(out / LOCK, wait=True):
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(out / "study.journal"))),
            study_name="attcem",
            directions=["maximize", "maximize"],
            load_if_exists=True,
        )
        study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))
        wanted = f"{shlex.join(search.base)}: {dict(sorted(search.space.items()))}"
        if study.user_attrs.setdefault("search", wanted) != wanted:
            raise ValueError(f"{out} holds another search ({study.user_attrs['search']}): choose another --out")
        study.set_user_attr("search", wanted)
    return study


def requeue_abandoned(study: Study, search: Search, out: Path) -> None:
    from optuna.trial import TrialState

    for trial in study.get_trials(states=[TrialState.RUNNING]):
        with contextlib.suppress(ValueError), working_in(out / run_folder(search.experiment(trial.params))):
            study.tell(trial.number, state=TrialState.FAIL)
            study.enqueue_trial(trial.params)


def best_trials(study: Study, at_accuracy: float | None = None) -> list[FrozenTrial]:
    """Trials that no other beats in both figures, most accurate first; or the one that hides most at an accuracy."""
    best = sorted(study.best_trials, key=lambda trial: -trial.values[0])
    if at_accuracy is None:
        return best
    enough = [trial for trial in best if trial.values[0] >= at_accuracy]
    if not enough:
        reached = best[0].values[0] if best else float("nan")
        raise ValueError(f"no trial reaches a validation accuracy of {at_accuracy}: the best has {reached:.4f}")
    return enough[-1:]
