"""A shape that a signature does not allow is an error in every test, and no long loop is slowed down by that."""

import pytest
import torch
from jaxtyping import TypeCheckError

from attcem.maths.dcor import double_centred
from tests import typecheck

SQUARE, OBLONG = torch.zeros(3, 3), torch.zeros(3, 2)


def test_a_wrong_shape_is_refused():
    with pytest.raises(TypeCheckError):
        double_centred(OBLONG)


def test_a_loop_is_checked_where_it_begins_and_the_next_test_again():
    for _ in range(typecheck.CHECKS):
        double_centred(SQUARE)
    double_centred(OBLONG)
    typecheck.begin()
    test_a_wrong_shape_is_refused()
