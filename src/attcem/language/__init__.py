"""What a reader is told, in their language: English stands in the code where it is said, the rest in a catalogue."""

from attcem.language.catalogue import LANGUAGES, language
from attcem.language.say import ENGLISH, Say, phrase

__all__ = ["ENGLISH", "LANGUAGES", "Say", "language", "phrase"]
