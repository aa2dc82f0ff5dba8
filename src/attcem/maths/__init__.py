"""One equation, one pure function; tensors in, tensors out, entropies in nats."""

from attcem.maths.dct import block_filter, cosines, zigzag
from attcem.maths.draws import DISTRIBUTIONS, gaussian_like
from attcem.maths.gates import THRESHOLDS, Circumstances, class_gate, excess, hinge, snr_gate, variance_threshold
from attcem.maths.moments import Moments, covariance, merge, moments, segment_count, segment_softmax, segment_sum
from attcem.maths.rate import assignment_information, diagonal_rate, entropy, full_rate, gram_rate, rate_bound, widen
from attcem.maths.sparse import apart

__all__ = [
    "DISTRIBUTIONS",
    "THRESHOLDS",
    "Circumstances",
    "Moments",
    "apart",
    "assignment_information",
    "block_filter",
    "class_gate",
    "cosines",
    "covariance",
    "diagonal_rate",
    "entropy",
    "excess",
    "full_rate",
    "gaussian_like",
    "gram_rate",
    "hinge",
    "merge",
    "moments",
    "rate_bound",
    "segment_count",
    "segment_softmax",
    "segment_sum",
    "snr_gate",
    "variance_threshold",
    "widen",
    "zigzag",
]
