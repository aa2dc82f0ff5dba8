"""Attention over sets [b n d] with masks [b n], True where an input counts; usable alone."""

from attcem.layers.attention import GatedAttentionPooling, GatedCrossAttention, GatedScores, SlotAttention
from attcem.layers.tokens import TOKENS, WIDEST, Tokens, features

__all__ = [
    "TOKENS",
    "WIDEST",
    "GatedAttentionPooling",
    "GatedCrossAttention",
    "GatedScores",
    "SlotAttention",
    "Tokens",
    "features",
]
