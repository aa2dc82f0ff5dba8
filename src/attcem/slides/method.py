"""The method: a drawing of this run's chain, from the picture to the answer, and where the attacker sits."""

from attcem.runs.config import surroundings
from attcem.runs.numbers import count
from attcem.slides.chain import Place, Step, steps
from attcem.slides.page import ACCENT, BODY, PALE, PAPER, RULE, SOFT, Arrow, Block, Box, Page, Part, Picture, Text
from attcem.slides.pictures import png_of
from attcem.slides.story import Story
from attcem.types import Result

TOP, TALL, GAP = 2.85, 1.3, 0.35  # where the row of blocks begins, how tall it is, and inches between two blocks
PICTURE, WIRE, CLOUD = 1.25, 1.05, 1.75  # widths
END = BODY.left + BODY.width


def method(story: Story) -> list[Page]:
    say, run = story.say, story.hero.runs[0]
    chain = steps(run)
    sent = [encoder(story, run), *(step.name for step in chain if step.place in (Place.CROSSING, Place.RELEASE))]
    trained = [step.name for step in chain if step.place in (Place.TRAINING, Place.ENCODER)]
    left = BODY.left + PICTURE + GAP
    right = END - CLOUD - WIRE
    parts = [*device(story, run, sent, left, right), *cloud(story, right), *training(story, trained, left, right)]
    notes = say(
        "Everything inside the frame runs on the device. Only what passes the wire leaves it, in training, in the "
        "audit and in deployment alike. The attacker taps the wire and runs the cloud; it never sees the picture."
    )
    return [Page(say("Method"), sentence(story, run, chain), tuple(parts), notes)]


def sentence(story: Story, run: Result, chain: list[Step]) -> str:
    say, sent, pictures = story.say, run.cost.get("bytes"), run.gallery.get("original")
    if not sent:
        return say("Only what passes the wire leaves the device")
    if pictures is None:
        return say("{sent} bytes leave the device for every picture, and nothing else", sent=count(sent))
    return say(
        "{sent} bytes leave the device for a picture of {pixels} bytes, and nothing else",
        sent=count(sent),
        pixels=count(pictures[0].size),
    )


def encoder(story: Story, run: Result) -> str:
    settings = surroundings(run)
    cut = settings.get("model.cut")
    units = story.say("up to unit {cut}", cut=cut) if cut else story.say("first half")
    return "\n".join([story.say("encoder"), story.hero.place[1], units])


def device(story: Story, run: Result, sent: list[str], left: float, right: float) -> list[Part]:
    """The picture, and a frame with a block for the encoder and for each link that changes what is sent."""
    say, middle = story.say, TOP + TALL / 2
    frame = Box(left - 0.15, TOP - 0.65, right - left + 0.15 - GAP, TALL + 0.9)
    wide = (right - left - GAP - 0.15 - (len(sent) - 1) * GAP) / len(sent)
    parts: list[Part] = [
        Block(frame, "", fill=PAPER, line=RULE),
        Text(Box(frame.left + 0.12, frame.top + 0.1, 4, 0.4), (say("device"),), 16, SOFT),
        *shown(story, run),
        Arrow((BODY.left + PICTURE, middle), (left, middle)),
    ]
    for place, words in enumerate(sent):
        at = left + place * (wide + GAP)
        parts.append(Block(Box(at, TOP, wide, TALL), words, 16))
        if place:
            parts.append(Arrow((at - GAP, middle), (at, middle)))
    return parts


def shown(story: Story, run: Result) -> list[Part]:
    """A picture that was attacked, or the word for it."""
    box = Box(BODY.left, TOP + (TALL - PICTURE) / 2, PICTURE, PICTURE)
    words = Text(
        Box(BODY.left, box.top + PICTURE + 0.05, PICTURE, 0.35), (story.say("picture x"),), 14, SOFT, align="center"
    )
    pictures = run.gallery.get("original")
    return [Block(box, "x") if pictures is None else Picture(box, png_of(pictures[0]), story.say("picture x")), words]


def cloud(story: Story, right: float) -> list[Part]:
    """The wire, the cloud's half, and the attacker who sits there."""
    say, middle = story.say, TOP + TALL / 2
    start, tap, at = right - GAP, right + WIRE / 2 - GAP / 2, END - CLOUD
    low = TOP + TALL + 0.95
    attacks = say("{attacks:attack|attacks}", attacks=story.hero.attacks)
    attacker = "\n".join([say("attacker"), attacks, "z → x̂"])
    return [
        Arrow((start, middle), (at, middle)),
        Text(Box(start - 0.1, middle - 0.75, at - start + 0.1, 0.65), (say("wire"), "z"), 14, SOFT, align="center"),
        Block(
            Box(at, TOP, CLOUD, TALL), "\n".join([say("cloud"), say("second half"), "z → y"]), 16, fill=PAPER, line=SOFT
        ),
        Arrow((tap, middle), (tap, low), ACCENT, dashed=True),
        Block(Box(tap - 1.1, low, END - tap + 1.1, 1.2), attacker, 16, fill=PAPER, dashed=True),
    ]


def training(story: Story, trained: list[str], left: float, right: float) -> list[Part]:
    """What shapes the encoder while it learns, below it."""
    if not trained:
        return []
    low = TOP + TALL + 0.95
    words = "\n".join([story.say("in training only"), *trained])
    return [
        Arrow((left + 0.8, low), (left + 0.8, TOP + TALL), dashed=True, colour=SOFT),
        Block(Box(left, low, min(4.2, right - left - 1.8), 1.2), words, 16, fill=PALE, line=RULE, dashed=True),
    ]
