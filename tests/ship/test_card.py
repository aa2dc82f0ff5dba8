"""The card beside shipped files says what an audit found, also by what anyone has for free."""

from attcem.ship.card import audit_lines
from tests.report.made import make_result


def test_the_worst_case_stands_beside_the_mean_image():
    lines = audit_lines(make_result(mse=0.02, mean_image=0.08))
    assert "| MSE ratio: 1 is nothing beyond that guess | 0.250 |" in lines
    assert "| MSE of the mean image, a free guess | 0.08000 |" in lines
