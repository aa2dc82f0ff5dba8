"""Attention over sets [b n d] with masks [b n], True where an input counts; usable alone."""

from attcem.layers.gated_cross_attention import GatedCrossAttention
from attcem.layers.gated_pooling import GatedAttentionPooling
from attcem.layers.slot_attention import SlotAttention

__all__ = ["GatedAttentionPooling", "GatedCrossAttention", "SlotAttention"]
