"""The comparison at one accuracy, as `attcem compare` computes it."""

from attcem.compare import Comparison
from attcem.compare.tables import cells, headings
from attcem.slides.fit import tables
from attcem.slides.page import BODY, Box, Page, Text
from attcem.slides.pages import numbered
from attcem.slides.story import Story

SHOWN = ("defence", "seeds", "MSE", "MSE ratio", "difference", "95 % interval", "p", "verdict")


def matched(story: Story) -> list[Page]:
    say, comparison = story.say, story.comparison
    if comparison is None:
        return []
    columns = [(place, name) for place, name in enumerate(headings(comparison)) if name in SHOWN]
    found = [cells(row, comparison) for row in comparison.rows]
    lines = [[shown(story, line, place) for place, _ in columns] for line in found]
    for line, row in zip(lines, comparison.rows, strict=True):
        line[-1] = say.again(row.verdict)
    strong = [place for place, row in enumerate(comparison.rows) if row is story.row]
    heading = tuple(say(name) for _, name in columns)
    box = Box(BODY.left, BODY.top, BODY.width, BODY.height - 0.75)
    below = say(
        "Worst-case MSE at accuracy {accuracy:.4f}; differences are from {reference}, p is Holm-corrected.",
        accuracy=comparison.accuracy,
        reference=comparison.reference,
    )
    note = Text(Box(BODY.left, BODY.top + BODY.height - 0.6, BODY.width, 0.6), (below,), 16)
    notes = say(
        "Every defence is read off its own curve at the same accuracy, between its strengths, never beyond them. "
        "The intervals are bootstrapped over pictures and seeds. What cannot be told apart is called not significant."
    )
    page = Page(say("At the same accuracy"), sentence(story, comparison), (note,), notes)
    return numbered(say, page, tables(box, heading, lines, strong))


def shown(story: Story, line: list[str], place: int) -> str:
    return story.name(line[0], 34) if place == 0 else line[place]


def sentence(story: Story, comparison: Comparison) -> str:
    more = [row.defence for row in comparison.rows if row.verdict == "hides more"]
    reference = story.name(comparison.reference)
    if not more:
        return story.say("At the same accuracy, no defence hides more than {reference}", reference=reference)
    if len(more) == 1:
        return story.say(
            "At the same accuracy, only {defence} hides more than {reference}",
            defence=story.name(more[0]),
            reference=reference,
        )
    return story.say(
        "At the same accuracy, {count} of {others} defences hide more than {reference}",
        count=len(more),
        others=len(comparison.rows) - 1,
        reference=reference,
    )
