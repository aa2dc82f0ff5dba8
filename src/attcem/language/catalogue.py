"""The catalogues: one TOML file per language, from English templates to its own."""

import tomllib
from functools import cache
from pathlib import Path

from attcem.language.say import ENGLISH, Say
from attcem.naming import look_up

HERE = Path(__file__).parent
LANGUAGES = {"en": "English", "zh": "简体中文"}


@cache
def language(code: str) -> Say:
    """What says everything in this language; ValueError for one that there is no catalogue of."""
    look_up("language", code, LANGUAGES)
    if code == "en":
        return ENGLISH
    return Say(code, **tomllib.loads((HERE / f"{code}.toml").read_text(encoding="utf-8")))
