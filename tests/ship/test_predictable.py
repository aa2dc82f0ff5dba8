"""Noise from a small generator is no noise: one message gives its state away, and with it all the others."""

import os

import numpy as np
import pytest

from attcem import shipped
from attcem.ship import read_artifact
from attcem.ship.predictability import congruential_modulus, predictable_messages, predictable_source
from attcem.ship.randomness import draw
from attcem.ship.release import open_release

MULTIPLIER, MODULUS = 16_807, 2**31 - 1  # std::minstd_rand0, which onnxruntime draws from
SIGMA, LATENT = 0.3, 64
UNKNOWN = 1 << 16  # states to try; all 2³¹ take minutes instead of a second
KNOWN = 0x5A5A0000 & ~(UNKNOWN - 1)  # the other bits, so that a test can wait for the search


def states(first, count):
    """The states of the generator that come after the given ones, in columns."""
    rows = np.empty((len(first), count), np.uint64)
    now = np.asarray(first, np.uint64)
    for place in range(count):
        now = now * np.uint64(MULTIPLIER) % np.uint64(MODULUS)
        rows[:, place] = now
    return rows


def noise_from(first, count):
    """Box and Muller's normal numbers from the states after the given ones."""
    uniform = states(first, count).astype(np.float64) / MODULUS
    radius, angle = np.sqrt(-2 * np.log(uniform[:, ::2])), 2 * np.pi * uniform[:, 1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 2)
    return pairs.reshape(len(first), 2 * pairs.shape[1])[:, :count]


class NaiveDevice:
    """Adds noise as an exported graph does that draws by itself; clean latents lie in [0, 1]."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self, latent):
        noise = noise_from([self.state], latent.size)[0]
        self.state = int(states([self.state], latent.size)[0, -1])
        return (latent + SIGMA * noise).astype(np.float32)


def find_states(message, slack=0.0):
    """Every state whose noise leaves a possible latent: what an attacker does who knows σ, generator and range."""
    candidates = np.arange(KNOWN, KNOWN + UNKNOWN, dtype=np.uint64)
    for count in (8, len(message) // 2 * 2):
        latents = message[:count] - SIGMA * noise_from(candidates, count)
        possible = ((latents >= -1e-5 - slack) & (latents <= 1 + 1e-5 + slack)).all(1)
        candidates = candidates[possible]
    return candidates


def test_one_message_of_a_naive_device_gives_away_all_its_noise():
    latents = np.random.default_rng(0).random((3, LATENT))
    device = NaiveDevice(KNOWN + 12_345)
    messages = [device(latent) for latent in latents]
    (state,) = find_states(messages[0])
    assert state == KNOWN + 12_345
    thief = NaiveDevice(int(state))
    for message, latent in zip(messages, latents, strict=True):
        recovered = message - thief(np.zeros(LATENT))
        assert np.abs(recovered - latent).max() < 1e-4


def test_the_same_attack_finds_no_state_in_our_noise():
    latent = np.random.default_rng(0).random(LATENT)
    for _ in range(3):
        assert not len(find_states(latent + SIGMA * draw("normal", (LATENT,))))


def test_the_same_attack_on_the_messages_of_a_shipped_device_finds_no_state(audited):
    """Twelve messages as one, on their grid: enough to find the naive device's state, and none of ours."""
    artifact = read_artifact(audited)
    release, low = open_release(audited, artifact), artifact.wire.low
    step = (artifact.wire.high - low) / 255
    pictures = np.random.default_rng(0).random((12, 1, 28, 28), dtype=np.float32)
    ours = low + step * np.concatenate([release(picture)[0] for picture in pictures])
    naive = NaiveDevice(KNOWN + 12_345)(np.random.default_rng(0).random(ours.size))
    assert find_states(low + step * np.rint((naive - low) / step), step).tolist() == [KNOWN + 12_345]
    assert not len(find_states(ours, step))


def test_our_source_and_our_devices_are_found_unpredictable(audited):
    artifact = read_artifact(audited)
    picture = np.zeros((1, 28, 28), np.float32)
    assert predictable_source(lambda: os.urandom) == []
    assert predictable_messages(lambda: open_release(audited, artifact), picture) == []


class Congruential:
    """Bytes that are the states of a generator, one after the other."""

    def __init__(self, seed, multiplier=MULTIPLIER, increment=0, modulus=MODULUS, size=4):
        self.state, self.rule, self.size = seed, (multiplier, increment, modulus), size

    def __call__(self, count):
        multiplier, increment, modulus = self.rule
        content = b""
        while len(content) < count:
            self.state = (multiplier * self.state + increment) % modulus
            content += self.state.to_bytes(self.size, "little")
        return content[:count]


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"multiplier": 1_103_515_245, "increment": 12_345, "modulus": 2**31},
        {"multiplier": 6_364_136_223_846_793_005, "increment": 1_442_695_040_888_963_407, "modulus": 2**64, "size": 8},
    ],
)
def test_a_congruential_generator_is_found_even_if_it_starts_anywhere(rule):
    (reason,) = predictable_source(lambda: Congruential(int.from_bytes(os.urandom(3)) + 1, **rule))
    assert "linear congruence" in reason


def test_a_seeded_device_is_found(audited):
    artifact = read_artifact(audited)
    picture = np.zeros((1, 28, 28), np.float32)
    seeded = predictable_messages(lambda: open_release(audited, artifact, Congruential(7, size=4)), picture)
    assert seeded == ["two devices that were started apart send the same first message: they share a seed"]
    frozen = predictable_messages(lambda: open_release(audited, artifact, lambda count: b"\x55" * count), picture)
    assert len(frozen) == 2
    assert any("share a seed" in reason for reason in predictable_source(lambda: np.random.default_rng(0).bytes))
    assert any("same bytes again" in reason for reason in predictable_source(lambda: bytes))


def test_the_audit_of_an_artifact_asks_for_this(audited, monkeypatch):
    artifact = read_artifact(audited)
    assert shipped.predictable_noise(audited, artifact) == []
    monkeypatch.setattr(shipped, "open_release", lambda *given: open_release(*given, Congruential(7)))
    assert len(shipped.predictable_noise(audited, artifact)) == 1


def test_unrelated_words_have_no_modulus():
    for _ in range(50):
        assert congruential_modulus(np.frombuffer(os.urandom(256), np.uint32).tolist()) is None
