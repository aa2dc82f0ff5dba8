"""The numbers of every setting, as means ± one standard deviation over seeds."""

from attcem.report.tables import COLUMNS
from attcem.runs import Setting
from attcem.runs.numbers import is_number, mean, mean_and_spread, percent
from attcem.slides.fit import tables
from attcem.slides.page import BODY, Page
from attcem.slides.pages import numbered
from attcem.slides.story import Story

SHOWN = ("accuracy", "MSE", "MSE ratio", "SSIM", "reid_top1")


def numbers(story: Story) -> list[Page]:
    say, hero = story.say, story.hero
    columns = [column for column in COLUMNS if column.title in SHOWN]
    lines = [[story.name(setting.name, 80), *cells(setting), str(setting.seeds)] for setting in story.settings]
    heading = (say("setting"), *(say(column.title) for column in columns), say("seeds"))
    strong = [place for place, setting in enumerate(story.settings) if setting is hero]
    found = [run.worst.reid_top1 for run in hero.runs]
    said = (
        say(
            "Under {defence}, {share} of the reconstructions still betray which picture they show",
            defence=story.name(hero.name),
            share=percent(mean(found)),
        )
        if any(map(is_number, found))
        else say("All settings, with their spread over seeds")
    )
    notes = say(
        "All but accuracy are worst cases over the attacks, picture by picture. The MSE ratio is over the error of "
        "the mean image: 1 is a blind guess, 0 the picture itself. reid_top1 is how often a reconstruction is closest "
        "to its own original among all."
    )
    return numbered(say, Page(say("Numbers"), said, (), notes), tables(BODY, heading, lines, strong))


def cells(setting: Setting) -> list[str]:
    return [
        mean_and_spread([column.value(run, run.worst) for run in setting.runs], column.show)
        for column in COLUMNS
        if column.title in SHOWN
    ]
