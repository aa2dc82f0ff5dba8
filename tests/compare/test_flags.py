"""Flags of many runs, joined without losing what they say."""

from attcem.compare.rows import summarise_flags


def test_flags_that_differ_in_numbers_are_one_with_both_ends():
    runs = [
        ("noise", ["large gains 9%", "large gains 11%"]),
        ("noise", ["large gains 13%"]),
        ("gmm", ["large gains 2.5%"]),
    ]
    assert summarise_flags(runs) == ("large gains 2.5–13% (noise: 2 of 2 runs, gmm: 1 of 1 runs)",)


def test_numbers_of_names_and_other_words_keep_flags_apart():
    runs = [
        ("noise", ["decoder_repeat_4 is stuck"]),
        ("noise", ["decoder_repeat_16 is stuck", "noise-2 is off"]),
        ("a", []),
    ]
    assert summarise_flags(runs) == (
        "decoder_repeat_4 is stuck (noise: 1 of 2 runs)",
        "decoder_repeat_16 is stuck (noise: 1 of 2 runs)",
        "noise-2 is off (noise: 1 of 2 runs)",
    )
