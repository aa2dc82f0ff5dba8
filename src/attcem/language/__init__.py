"""What a reader is told, in their language: English stands in the code where it is said, the rest in a catalogue."""

from attcem.language.catalogue import LANGUAGES, language
from attcem.language.say import Say, phrase

__all__ = ["LANGUAGES", "Say", "language", "phrase"]
