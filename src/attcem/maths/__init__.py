"""One equation, one pure function; tensors in, tensors out, entropies in nats."""

from attcem.maths.moments import Moments, covariance, moments
from attcem.maths.segments import segment_count, segment_softmax, segment_sum

__all__ = [
    "Moments",
    "covariance",
    "moments",
    "segment_count",
    "segment_softmax",
    "segment_sum",
]
