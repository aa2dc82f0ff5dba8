"""Likely questions, each with its answer from the data; a question that the runs cannot answer is left out."""

from collections.abc import Callable

from attcem.compare.tables import chance
from attcem.report.promises import cost_table
from attcem.report.tables import COLUMNS
from attcem.runs import Curve
from attcem.runs.config import options, strengths
from attcem.runs.leak import best_attack
from attcem.runs.names import with_symbol
from attcem.runs.numbers import amount, decibel, is_number, mean, mean_and_spread, percent, ratio, share, small
from attcem.slides.fit import tables
from attcem.slides.page import BODY, Box, Page, Part, Text
from attcem.slides.story import Story
from attcem.slides.title import points_lost


def questions(story: Story) -> list[Page]:
    return [page for ask in QUESTIONS if (page := ask(story))]


def is_it_chance(story: Story) -> Page | None:
    say, row, comparison = story.say, story.row, story.comparison
    if row is None or comparison is None or not is_number(row.p):
        return None
    verdict = say.again(row.verdict)
    said = say(
        "{defence} against {reference}: {verdict}, p {p} over {seeds:seed|seeds}",
        defence=story.name(row.defence),
        reference=story.name(comparison.reference),
        verdict=verdict,
        p=chance(row.p),
        seeds=row.seeds,
    )
    text = [
        say(
            "Difference in worst-case MSE at the same accuracy: {difference:+.5f}, 95 % interval {low:+.5f} to "
            "{high:+.5f}.",
            difference=row.difference,
            low=row.difference_low,
            high=row.difference_high,
        ),
        say("A rank test over the pictures (Wilcoxon) gives p {p}.", p=chance(row.wilcoxon_p)),
        say("Both p are corrected for the number of comparisons; a difference counts where both agree."),
        *(say("Note: {note}.", note=say.again(note)) for note in row.notes),
    ]
    notes = say(
        "The bootstrap draws seeds and pictures anew, ten thousand times, and always compares the same pictures."
    )
    return answer(story, say("Is it chance?"), said, text, notes)


def does_it_hurt(story: Story) -> Page | None:
    say, hero, bare = story.say, story.hero, story.bare
    if bare is None or hero.undefended:
        return None
    said = say(
        "It costs {points} points of accuracy: {after} instead of {before}",
        points=points_lost(story),
        after=share(hero.accuracy),
        before=share(bare.accuracy),
    )
    costs = cost_table([bare, hero])
    notes = say(
        "Accuracy is that of the cloud on what the device really sends, over all test pictures. "
        "Times compare only between runs on the same machine."
    )
    if costs is None:
        return answer(story, say("Does it hurt the task?"), said, [], notes)
    heading = ("", *(story.name(line[0], 30) for line in costs.lines))
    lines = [
        [say("accuracy"), *(mean_and_spread([run.accuracy for run in one.runs], ratio) for one in (bare, hero))],
        *([say(title), *cells] for title, *cells in zip(*[costs.heading, *costs.lines], strict=True)),
    ]
    del lines[1]  # the names, which stand above
    parts = tables(BODY, heading, lines)[:1]
    return Page(say("Does it hurt the task?"), said, tuple(parts), notes)


def which_knobs(story: Story) -> Page | None:
    say, curve = story.say, widest(story)
    if curve is None:
        return None
    knobs = sorted(strengths(curve.settings[0].runs[0]))
    own = [options(setting.runs[0]) for setting in curve.settings]
    turned = [key for key in knobs if len({str(each.get(key)) for each in own}) > 1]
    heading = (say("setting"), say("accuracy"), "MSE", say("MSE ratio"), "SSIM")
    wanted = [column for column in COLUMNS if column.title in ("accuracy", "MSE", "MSE ratio", "SSIM")]
    lines = [
        [
            story.name(setting.name),
            *(mean_and_spread([c.value(run, run.worst) for run in setting.runs], c.show) for c in wanted),
        ]
        for setting in curve.settings
    ]
    said = say(
        "Turning {knobs} moves the accuracy of {defence} from {low} to {high}",
        knobs=", ".join(key.rpartition(".")[2] for key in turned),
        defence=story.name(curve.name, 36),
        low=share(min(setting.accuracy for setting in curve.settings)),
        high=share(max(setting.accuracy for setting in curve.settings)),
    )
    turn = say(
        "First the noise, then the weight of the penalty, by factors of two or three, on validation pictures only."
    )
    parts: list[Part] = [*tables(Box(BODY.left, BODY.top, BODY.width, 3.9), heading, lines)[:1]]
    parts.append(Text(Box(BODY.left, 6.05, BODY.width, 0.75), (turn,), 18))
    set_to = ", ".join(with_symbol(key, value) for key, value in own[0].items() if key in knobs)
    notes = say("The weakest setting shown has {settings}. attcem tune searches by itself.", settings=set_to)
    return Page(say("Which knobs are there?"), said, tuple(parts), notes)


def widest(story: Story) -> Curve | None:
    """The hero's own curve, or where it has one strength the curve with the most; none where none has several."""
    curves = ([story.curve] if story.curve else []) + sorted(story.curves, key=lambda c: -len(c.settings))
    return next((curve for curve in curves if len(curve.settings) > 1), None)


def are_attacks_strong(story: Story) -> Page | None:
    say, bare, hero = story.say, story.bare, story.hero
    if bare is None:
        return None
    run = bare.runs[0]
    best = best_attack(run, run.attacks) or "?"
    flagged = sum(bool(each.flags) for each in story.group.runs)
    said = say(
        "Without a defence the same attacks reach {psnr} dB, {gain} dB above a blind guess",
        psnr=decibel(mean([each.worst.psnr for each in bare.runs])),
        gain=decibel(mean([each.psnr_gain for each in bare.runs])),
    )
    text = [
        say("{attacks:attack|attacks}, the best alone is {best}.", attacks=bare.attacks, best=best),
        say(
            "Under {defence} they come to {psnr} dB.",
            defence=story.name(hero.name),
            psnr=decibel(mean([each.worst.psnr for each in hero.runs])),
        )
        if hero is not bare
        else "",
        say(
            "Flagged: {flagged} of {runs:run|runs}. A flag says that an attack may find more.",
            flagged=flagged,
            runs=len(story.group.runs),
        ),
        say("What attacks find is a floor, not a ceiling."),
    ]
    notes = say("The suite is fixed and the same for every defence; nobody tuned an attack against one of them.")
    return answer(story, say("Are the attacks strong enough?"), said, text, notes)


def sent_again(story: Story) -> Page | None:
    say, hero = story.say, story.hero
    curves = [run.curves["repeats"] for run in hero.runs if len(run.curves.get("repeats", {})) > 1]
    if not curves:
        return None
    sends = sorted(curves[0], key=amount)
    once, often = (mean([curve.get(step) for curve in curves]) for step in (sends[0], sends[-1]))  # type: ignore[misc]
    said = say(
        "Sending a picture {sends} times lowers the attacker's error by {share}",
        sends=sends[-1],
        share=percent(1 - often / once),
    )
    heading = (say("sends of the same picture"), "MSE")
    lines = [[step, small(mean([curve.get(step) for curve in curves]))] for step in sends]  # type: ignore[misc]
    notes = say("Averaging removes noise, so a device needs a budget of sends: attcem send keeps one.")
    return Page(say("What if it is sent again and again?"), said, tuple(tables(BODY, heading, lines)[:1]), notes)


def answer(story: Story, question: str, said: str, text: list[str], notes: str) -> Page:
    return Page(question, said, (Text(BODY, tuple(text), 22),), notes) if text else Page(question, said, (), notes)


QUESTIONS: tuple[Callable[[Story], Page | None], ...] = (
    is_it_chance,
    does_it_hurt,
    which_knobs,
    are_attacks_strong,
    sent_again,
)
