"""Attention over sets [b n d] with masks [b n], True where an input counts; usable alone."""

from attcem.layers.gated_cross_attention import GatedCrossAttention
from attcem.layers.gated_pooling import GatedAttentionPooling, GatedScores
from attcem.layers.slot_attention import SlotAttention
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
