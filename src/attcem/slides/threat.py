"""The threat model: who attacks, and what it has."""

from attcem.config import GRANTS
from attcem.language import phrase
from attcem.slides.fit import tables
from attcem.slides.page import BODY, Box, Page, Part, Text
from attcem.slides.story import Story

HAS = {
    phrase("public pictures of the same kind, with labels"): "public",
    phrase("what the device sends of the attacked pictures"): "public",
    phrase("the cloud's half of the network, with its gradients"): "logits",
    phrase("the device to ask: any picture in, what it would send out"): "queries",
    phrase("the weights of the device's half"): "weights",
    phrase("the private pictures, and the labels of the attacked ones"): "",
}
"""What an attacker may have, and the grant that gives it; nothing gives the last."""
TITLES = {
    "black_box": phrase("The attacker is the cloud: it sees what is sent, and runs its own half"),
    "query": phrase("The attacker is the cloud, and may ask the device about any picture of its own"),
    "white_box": phrase("The attacker is the cloud, and has everything but the pictures: even the device's weights"),
}


def threat(story: Story) -> list[Page]:
    say = story.say
    known = [model for model in dict.fromkeys(run.threat for run in story.group.runs) if model in GRANTS]
    if not known:
        return []
    lines = [[say(what), *("✓" if grant in GRANTS[model] else "–" for model in known)] for what, grant in HAS.items()]
    aim = say(
        "It follows the protocol, and wants the picture back. What counts is the worst case: "
        "for every picture the attack that came closest."
    )
    notes = say(
        "A defence that holds only while its weights are secret should say so, because devices end up in the hands of "
        "attackers. An attack that needs more than this model grants was left out."
    )
    heading = (say("the attacker has"), *known)
    box = Box(BODY.left, BODY.top, BODY.width, 3.6)
    parts: tuple[Part, ...] = (
        *tables(box, heading, lines)[:1],
        Text(Box(BODY.left, 5.75, BODY.width, 1.0), (aim,), 20),
    )
    return [Page(say("Threat model"), say(TITLES[known[0]]), parts, notes)]
