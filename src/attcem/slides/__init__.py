"""Slides of a talk, from results alone: what was asked, how it was done, what was found and what failed."""

from attcem.slides.talk import SLIDES, Written, write_slides

__all__ = ["SLIDES", "Written", "write_slides"]
