"""Attention over sets [b n d] with masks [b n], True where an input counts; usable alone."""

from attcem.layers.gated_cross_attention import GatedCrossAttention
from attcem.layers.gated_pooling import GatedAttentionPooling, GatedScores
from attcem.layers.slot_attention import SlotAttention
from attcem.layers.tokens import LARGEST_FLAT, TOKENS, Tokens

__all__ = [
    "LARGEST_FLAT",
    "TOKENS",
    "GatedAttentionPooling",
    "GatedCrossAttention",
    "GatedScores",
    "SlotAttention",
    "Tokens",
]
