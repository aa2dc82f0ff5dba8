"""The equations of this run's chain, below the one that everything rests on."""

from attcem.runs.numbers import decibel, is_number, mean
from attcem.slides.chain import steps
from attcem.slides.page import ACCENT, BODY, SOFT, Box, Page, Text
from attcem.slides.story import Story

LIMIT = "MSE ≥ exp( 2 h(x|z) / d ) / (2πe),   h(x|z) = h(x) − I(x;z)"


def equations(story: Story) -> list[Page]:
    say = story.say
    chain = [step for step in steps(story.hero.runs[0]) if step.equation]
    rates = [run.bounds.get("rate_nats") for run in story.hero.runs]
    rows = [
        (say("any attack"), LIMIT, say("The less z tells of x, the larger the error of every attack, known or not."))
    ]
    rows += [(step.name, step.equation, say.again(step.about).replace("`", "")) for step in chain]
    tall = min(1.3, BODY.height / len(rows))
    parts: list[Text] = []
    for place, (name, equation, about) in enumerate(rows):
        top = BODY.top + place * tall
        parts.append(Text(Box(BODY.left, top, 2.6, tall - 0.1), (name,), 16, ACCENT, bold=True))
        parts.append(Text(Box(3.4, top - 0.03, 9.3, 0.5 * tall - 0.02), (equation,), 20, formula=True))
        parts.append(Text(Box(3.4, top + 0.5 * tall - 0.02, 9.3, 0.5 * tall - 0.08), (about,), 16, SOFT))
    measured = mean([rate for rate in rates if is_number(rate)])
    said = (
        say("What is sent tells at most {nats} nats about the picture", nats=decibel(measured))
        if is_number(measured)
        else say("Only less information in what is sent protects against every attack")
    )
    notes = say(
        "h is differential entropy, I mutual information, d the number of pixels. Nature decides h(x), the attacker "
        "the attack: all that a defence can change is I(x;z). The last lines are what this run does about it; the "
        "docs prove the first."
    )
    return [Page(say("Equations"), said, tuple(parts), notes)]
