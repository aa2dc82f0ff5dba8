"""Batches that hypothesis draws: any number of classes, most of them empty, repeats and constants among the samples."""

import torch
from hypothesis import strategies as st


@st.composite
def batches(draw, most_tokens=3):
    """Samples [n t d], responsibilities [n t k], classes [n] and their number."""
    n, d, k = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    tokens, classes = draw(st.integers(1, most_tokens)), draw(st.sampled_from([1, 2, 5, 30, 600]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    x = torch.randn(n, tokens, d, generator=generator, dtype=torch.double)
    x = x * draw(st.sampled_from([1e-3, 1.0, 50.0])) + draw(st.sampled_from([0.0, -3.0, 100.0]))
    if draw(st.booleans()):
        x[:] = x[:1]  # the same sample again and again
    if draw(st.booleans()):
        x[..., 0] = 0.7  # a feature that says nothing
    resp = torch.randn(n, tokens, k, generator=generator, dtype=torch.double).mul(3).softmax(-1)
    return x, resp, torch.randint(0, classes, (n,), generator=generator), classes
