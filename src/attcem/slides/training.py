"""Training: what the task and the penalty did over the epochs."""

from attcem.figures.training import PANELS, Panel, measured
from attcem.runs.numbers import share
from attcem.slides.page import BODY, Box, Page, Plot, Series
from attcem.slides.story import Story
from attcem.slides.tradeoff import colour, dash

MOST = 6  # curves in a chart
SHOWN = ("penalty", "task loss")  # beside validation accuracy, the first that was recorded


def training(story: Story) -> list[Page]:
    say, hero = story.say, story.hero
    panels = {panel.title: panel for panel in PANELS}
    beside = [plot for title in SHOWN if (plot := chart(story, panels[title]))][:1]
    plots = [*beside, *[plot for plot in [chart(story, panels["validation accuracy"])] if plot]]
    if not plots:
        return []
    wide = [0.42, 0.58] if len(plots) == 2 else [1.0]
    left, parts = BODY.left, []
    for place, (plot, part) in enumerate(zip(plots, wide, strict=True)):
        box = Box(left, BODY.top, BODY.width * part - 0.1, BODY.height)
        parts.append(Plot(box, plot.series, plot.across, plot.up, legend=place == len(plots) - 1, log=plot.log))
        left += BODY.width * part
    epochs = max(len(run.history) for run in hero.runs)
    ends = [run.history[-1]["val_accuracy"] for run in hero.runs if run.history and "val_accuracy" in run.history[-1]]
    said = (
        say(
            "After {epochs:epoch|epochs}, {defence} reaches {accuracy} on validation pictures",
            epochs=epochs,
            defence=story.name(hero.name),
            accuracy=share(sum(ends) / len(ends)),
        )
        if ends
        else say("How training went, epoch by epoch")
    )
    notes = say(
        "Means over seeds. A penalty is on the scale of its own defence and cannot be compared between defences; that "
        "it falls does not show that less leaks: only the attacks show that."
    )
    return [Page(say("Training"), said, tuple(parts), notes)]


def chart(story: Story, panel: Panel) -> Plot | None:
    drawn = []
    for one in story.drawn[:MOST]:
        epochs, values = measured(one.runs, panel)
        if epochs:
            line = dash(one)
            drawn.append(
                Series(story.name(one.name, 34), epochs, values.mean(0).tolist(), colour(one), one.look.marker, line)
            )
    return Plot(BODY, tuple(drawn), story.say("epoch"), story.say(panel.title), log=panel.log) if drawn else None
