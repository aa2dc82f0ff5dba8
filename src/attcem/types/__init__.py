"""The shared vocabulary: what passes between the rooms of the house."""

from attcem.types.beside import Explanation
from attcem.types.images import Batch, Images, Latent, Released
from attcem.types.people import Embed, People
from attcem.types.result import Record, Result
from attcem.types.scores import OVER_FREE, Line, Scores, Summary, Table
from attcem.types.view import Deployed, Device, Oracle, Recording, View, Workbook

__all__ = [
    "OVER_FREE",
    "Batch",
    "Deployed",
    "Device",
    "Embed",
    "Explanation",
    "Images",
    "Latent",
    "Line",
    "Oracle",
    "People",
    "Record",
    "Recording",
    "Released",
    "Result",
    "Scores",
    "Summary",
    "Table",
    "View",
    "Workbook",
]
