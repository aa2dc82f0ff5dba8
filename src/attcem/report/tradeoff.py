"""The picture of all runs at once: what the task keeps against what leaks, every setting with its spread over seeds."""

from collections.abc import Mapping, Sequence
from unicodedata import east_asian_width

from attcem.language import ENGLISH, Say, phrase
from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, colour, labelled_lines, points, words
from attcem.report.tables import LEAKS, Column, mean_baseline
from attcem.runs import Setting
from attcem.runs.names import UNDEFENDED
from attcem.runs.numbers import MISSING, is_number, mean, mean_and_spread, share, spread

NAMED = 7  # up to so many settings are named beside their points; more would be a heap
SHOWN = [LEAKS[name] for name in ("MSE", "MSE ratio", "SSIM")]
MARKS = {
    "mean_image": phrase("mean image: nothing left to see"),
    "class_mean": phrase("class mean: the label alone"),
}
WIDTH, HEIGHT = 500.0, 340.0  # pixels that a chart has for its points, about
LETTER, LINE, AWAY = 6.6, 14.0, 9.0
PLACES = ("middle right", "top center", "bottom center", "middle left", "top right", "bottom right", "top left")
Box = tuple[float, float, float, float]  # left, low, right, high
Range = Sequence[float]  # of an axis: from, to
Labels = Mapping[str, str | None]  # setting → where its name can stand


def tradeoff(settings: Sequence[Setting], say: Say = ENGLISH) -> Chart | None:
    drawings = {say(leak.title): drawn for leak in SHOWN if (drawn := _drawing(leak, settings, say)).traces}
    if not drawings:
        return None
    note = say(
        "Up is useful. One point per setting, bars are ± one standard deviation over seeds, small dots the seeds. "
        "A square has no defence; dotted lines are what an attacker gets without the latent."
    )
    return Chart(say("What the task keeps, what the cloud sees"), note, drawings, _table(settings, say), 430)


def _drawing(leak: Column, settings: Sequence[Setting], say: Say) -> Drawing:
    families = list(dict.fromkeys(setting.family for setting in settings if not setting.undefended))
    at = {s.name: (mean(_leaks(leak, s)), s.accuracy) for s in settings}
    measured = [setting for setting in settings if all(map(is_number, at[setting.name]))]
    if not measured:
        return Drawing([])
    bare = [setting for setting in measured if setting.undefended]
    marks = {say(text): mean_baseline(leak, name, settings) for name, text in MARKS.items()}
    marks |= {say.again(UNDEFENDED): at[bare[0].name][0]} if bare else {}
    marks = {text: x for text, x in marks.items() if is_number(x)}
    x_range = _with_margin([0.0, *marks.values(), *(at[setting.name][0] for setting in measured)])
    y_range = _with_margin([run.accuracy for setting in measured for run in setting.runs])
    labels = {}
    if len(settings) <= NAMED:  # no defence has its name on its line
        named = [(*at[s.name], "" if s.undefended else s.name) for s in measured]
        free = free_places(named, x_range, y_range, marks)
        labels = {name: place for (_, _, name), place in zip(named, free, strict=True)}
    traces = _family(leak, bare, None, labels, say)
    for place, family in enumerate(families):
        traces += _family(leak, [setting for setting in measured if setting.family == family], place, labels, say)
    hides_left = "↓" in leak.hint
    side = say("left: hides more") if hides_left else say("right: hides more")
    title = f"{say('worst-case {leak}', leak=say(leak.title))}   ({side})"
    axes = {"xaxis": axis(title, range=x_range), "yaxis": axis(say("accuracy"), tickformat=".0%", range=y_range)}
    return Drawing(traces, axes | labelled_lines(marks) | {"hovermode": "closest"})


def _leaks(leak: Column, setting: Setting) -> list[float]:
    return [leak.value(run, run.worst) for run in setting.runs]


def _with_margin(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    air = 0.12 * (high - low) or 0.05
    return [low - air if low > 0 else low, high + air]


def _family(leak: Column, members: Sequence[Setting], place: int | None, labels: Labels, say: Say) -> list[Trace]:
    """The settings of one family, joined from strong to weak where there are several, and the seeds they rest on."""
    if not members:
        return []
    members = sorted(members, key=lambda setting: setting.accuracy)
    accuracies = [[run.accuracy for run in setting.runs] for setting in members]
    leaks = [_leaks(leak, setting) for setting in members]
    hover = [
        say(
            "<b>{name}</b><br>accuracy {accuracy}<br>worst-case {leak} {lost}<br>{seeds:seed|seeds}",
            name=words(say.again(setting.name)),
            accuracy=mean_and_spread(kept, share),
            leak=say(leak.title),
            lost=mean_and_spread(lost, leak.show),
            seeds=setting.seeds,
        )
        for setting, kept, lost in zip(members, accuracies, leaks, strict=True)
    ]
    bars = {"type": "data", "color": colour(place), "thickness": 1.2}
    seeds = [run for setting in members if setting.seeds > 1 for run in setting.runs]
    x, y = [leak.value(run, run.worst) for run in seeds], [run.accuracy for run in seeds]
    small = {"symbol": "circle", "size": 4, "opacity": 0.45}
    dots = points("", x, y, place, hoverinfo="skip", showlegend=False, marker=small)
    means = points(
        say.again(UNDEFENDED) if place is None else members[0].family,
        [mean(values) for values in leaks],
        [mean(values) for values in accuracies],
        place,
        mode="markers" + "+lines" * (len(members) > 1 and place is not None) + "+text" * bool(labels),
        error_x=bars | {"array": [spread(values) for values in leaks]},
        error_y=bars | {"array": [spread(values) for values in accuracies]},
        text=[words(setting.name) if labels.get(setting.name) else "" for setting in members],
        textposition=[labels.get(setting.name) or "top center" for setting in members],
        cliponaxis=False,
        hovertext=hover,
        hoverinfo="text",
        line={"color": colour(place), "width": 1.2, "dash": "dot"},
        marker={"size": 11, "line": {"color": "@paper", "width": 1}},
    )
    return [dots, means] if seeds else [means]


def _table(settings: Sequence[Setting], say: Say) -> Grid:
    lines = []
    for setting in settings:
        accuracy = mean_and_spread([run.accuracy for run in setting.runs], share)
        leaks = [mean_and_spread(_leaks(leak, setting), leak.show) for leak in SHOWN]
        lines.append([say.again(setting.name), accuracy, *leaks, str(setting.seeds)])
    for name, text in MARKS.items():
        free = [leak.show(mean_baseline(leak, name, settings)) for leak in SHOWN]
        lines.append([say(text), MISSING, *free, MISSING])
    return Grid([say("setting"), say("accuracy"), *(say(leak.title) for leak in SHOWN), say("seeds")], lines)


def free_places(
    points: Sequence[tuple[float, float, str]], x_range: Range, y_range: Range, line_labels: Mapping[str, float]
) -> list[str | None]:
    """For each (x, y, name) where its name can stand without touching another point or name; None where nowhere.

    `line_labels` are words that start at the bottom and climb up the left of x.
    """

    def on_page(x: float, y: float) -> tuple[float, float]:
        """From the axes to pixels, y pointing up."""
        (left, right), (low, high) = x_range, y_range
        return (x - left) / (right - left) * WIDTH, (y - low) / (high - low) * HEIGHT

    at = [on_page(x, y) for x, y, _ in points]
    taken: list[Box] = [(x - 7, y - 7, x + 7, y + 7) for x, y in at]
    lines = {label: on_page(x, 0.0)[0] for label, x in line_labels.items()}
    taken += [(line - LINE - 2, 0.0, line, LETTER * letters(label)) for label, line in lines.items()]
    found: list[str | None] = []
    for (x, y), (_, _, name) in zip(at, points, strict=True):
        boxes = {place: _box(place, x, y, LETTER * letters(name)) for place in PLACES}
        free = next((place for place, box in boxes.items() if _is_free(box, taken)), None)
        found.append(free)
        taken += [boxes[free]] if free else []
    return found


def letters(text: str) -> int:
    """How many letters wide a text is: a Chinese one is as wide as two."""
    return sum(1 + (east_asian_width(letter) in "WF") for letter in text)


def _box(place: str, x: float, y: float, long: float) -> Box:
    level, side = place.split()
    left = {"right": x + AWAY, "left": x - AWAY - long, "center": x - long / 2}[side]
    low = {"middle": y - LINE / 2, "top": y + AWAY - 2, "bottom": y - AWAY - LINE + 2}[level]
    return left, low, left + long, low + LINE


def _is_free(box: Box, taken: Sequence[Box]) -> bool:
    inside = box[0] >= 0 and box[2] <= WIDTH and box[1] >= 0 and box[3] <= HEIGHT
    return inside and all(box[0] >= b[2] or b[0] >= box[2] or box[1] >= b[3] or b[1] >= box[3] for b in taken)
