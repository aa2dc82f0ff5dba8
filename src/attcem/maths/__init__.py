"""One equation, one pure function; tensors in, tensors out, entropies in nats."""

from attcem.maths.moments import Moments, covariance, moments
from attcem.maths.rate import assignment_information, diagonal_rate, entropy, full_rate, gram_rate, rate_bound
from attcem.maths.segments import segment_count, segment_softmax, segment_sum

__all__ = [
    "Moments",
    "assignment_information",
    "covariance",
    "diagonal_rate",
    "entropy",
    "full_rate",
    "gram_rate",
    "moments",
    "rate_bound",
    "segment_count",
    "segment_softmax",
    "segment_sum",
]
