"""Where to cut a network, and what should cross there: every place trained, attacked and compared."""

from attcem.cut.candidates import Candidate, recommend, search
from attcem.cut.choose import Choice, choose
from attcem.cut.measure import Measured
from attcem.cut.places import FORMS, Place, places_of
from attcem.cut.show import advise, draw, table

__all__ = [
    "FORMS",
    "Candidate",
    "Choice",
    "Measured",
    "Place",
    "advise",
    "choose",
    "draw",
    "places_of",
    "recommend",
    "search",
    "table",
]
