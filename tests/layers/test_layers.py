"""Attention layers: equal to slow loops, blind to what is masked, indifferent to order."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.layers import GatedAttentionPooling, GatedCrossAttention, SlotAttention
from tests.layers.slow import slow_cross, slow_pooling, slow_slots

EXACT = {"atol": 1e-9, "rtol": 1e-9}
WIDTH = 8


class Crossed(GatedCrossAttention):
    """Cross attention from fixed queries, so that the inputs are its context like those of the other layers."""

    def __init__(self, width):
        super().__init__(width)
        self.queries = torch.randn(3, width, generator=torch.Generator().manual_seed(5), dtype=torch.double)

    def forward(self, x, mask=None):
        return (super().forward(self.queries.to(x.dtype).expand(len(x), -1, -1), x, None, mask),)


MAKERS = {
    "gated_pooling": lambda: GatedAttentionPooling(WIDTH),
    "slot_attention": lambda: SlotAttention(WIDTH, slots=3),
    "gated_cross_attention": lambda: GatedCrossAttention(WIDTH),
    "crossed": lambda: Crossed(WIDTH),
}


def made(name, dtype=torch.double):
    torch.manual_seed(3)
    layer = MAKERS[name]().to(dtype).eval()
    for p in layer.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return layer


def call(layer, x, mask=None):
    """All outputs; cross attention looks from the inputs at a context that is made of none of them."""
    if type(layer) is GatedCrossAttention:
        context = torch.randn(len(x), 3, WIDTH, generator=torch.Generator().manual_seed(2), dtype=torch.double)
        return (layer(x, context.to(x.dtype), mask),)
    return layer(x, mask)


def sets(b, n, seed=0):
    return torch.randn(b, n, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@settings(max_examples=10)
@given(b=st.integers(1, 3), n=st.integers(1, 5), s=st.integers(1, 4), seed=st.integers(0, 99))
@torch.no_grad()
def test_equal_to_the_slow_loop(b, n, s, seed):
    x, context = sets(b, n, seed), sets(b, s, seed + 1)
    pooling, slots, cross = made("gated_pooling"), made("slot_attention"), made("gated_cross_attention")
    alpha, pooled = pooling(x)
    found, resp = slots(x)
    crossed = cross(x, context)
    for i in range(b):
        for mine, slow in zip((alpha[i], pooled[i]), slow_pooling(pooling, x[i]), strict=True):
            torch.testing.assert_close(mine, slow, **EXACT)
        for mine, slow in zip((found[i], resp[i]), slow_slots(slots, x[i]), strict=True):
            torch.testing.assert_close(mine, slow, **EXACT)
        torch.testing.assert_close(crossed[i], slow_cross(cross, x[i], context[i]), **EXACT)


@pytest.mark.parametrize("name", MAKERS)
class TestEveryLayer:
    @pytest.mark.parametrize("garbage", [0.0, 1e6, float("nan"), float("inf")])
    def test_masked_inputs_have_no_influence_on_outputs_or_gradients(self, name, garbage):
        layer, x = made(name), sets(2, 5)
        mask = torch.tensor([[True, True, False, True, False], [False, True, True, True, True]])
        dirty = x.masked_fill(~mask.unsqueeze(-1), garbage).requires_grad_()
        found = call(layer, dirty, mask)
        for mine, other in zip(found, call(layer, x, mask), strict=True):
            assert torch.equal(mine, other)
        sum(out.square().sum() for out in found).backward()
        assert dirty.grad.isfinite().all() and not dirty.grad[~mask].any() and dirty.grad[mask].any()
        assert all(p.grad.isfinite().all() for p in layer.parameters())

    def test_masked_inputs_are_as_if_they_were_not_there(self, name):
        layer, x = made(name), sets(2, 5)
        mask = torch.tensor([[True, True, True, False, False]]).expand(2, -1)
        for padded, short in zip(call(layer, x, mask), call(layer, x[:, :3]), strict=True):
            if padded.shape != short.shape:  # one row per input
                assert not padded[:, 3:].any()
                padded = padded[:, :3]
            torch.testing.assert_close(padded, short, **EXACT)

    def test_order_of_inputs(self, name):
        """Rows that belong to inputs move with them; everything else stays."""
        layer, x, order = made(name), sets(2, 6), torch.tensor([3, 0, 5, 1, 4, 2])
        for first, moved in zip(call(layer, x), call(layer, x[:, order]), strict=True):
            expected = first[:, order] if first.shape[1] == 6 else first
            torch.testing.assert_close(moved, expected, **EXACT)

    def test_a_set_in_which_nothing_counts_stays_finite(self, name):
        layer, x = made(name), sets(2, 4).requires_grad_()
        mask = torch.tensor([[False] * 4, [True] * 4])
        found = call(layer, x, mask)
        assert all(out.isfinite().all() for out in found)
        sum(out.square().sum() for out in found).backward()
        assert x.grad.isfinite().all() and not x.grad[0].any()
        assert all(p.grad.isfinite().all() for p in layer.parameters())

    def test_gradient_reaches_every_parameter(self, name):
        torch.manual_seed(0)
        layer = MAKERS[name]().train()
        sum(out.square().sum() for out in call(layer, sets(2, 5).float())).backward()
        for label, p in layer.named_parameters():
            assert p.grad is not None and p.grad.isfinite().all() and p.grad.any(), label

    def test_any_number_of_inputs_with_the_same_parameters(self, name):
        layer = made(name)
        for n in (1, 2, 50):
            assert all(out.isfinite().all() for out in call(layer, sets(1, n)))

    def test_gradients_are_right(self, name):
        layer, x = made(name), sets(1, 3).requires_grad_()
        assert torch.autograd.gradcheck(lambda x: call(layer, x), x)


def test_hidden_width_of_gated_pooling():
    widths = {width: GatedAttentionPooling(width).scores.V.out_features for width in (8, 400, 1024, 9000)}
    assert widths == {8: 64, 400: 100, 1024: 256, 9000: 512}


def test_pooling_weights_sum_to_one_over_what_counts():
    mask = torch.rand(4, 7, generator=torch.Generator().manual_seed(0)) > 0.4
    alpha, _ = made("gated_pooling")(sets(4, 7), mask)
    torch.testing.assert_close(alpha.sum(1), torch.ones(4).double())
    assert not alpha[~mask].any()


def test_slots_start_afresh_in_training_and_fixed_in_evaluation():
    layer, x = SlotAttention(WIDTH).double(), sets(1, 5)
    assert layer.epsilon.shape == (8, WIDTH) and layer.iters == 3
    assert not torch.equal(layer(x)[0], layer(x)[0])
    assert torch.equal(layer.eval()(x)[0], layer(x)[0])
    again = SlotAttention(WIDTH).double().eval()
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(x)[0], layer(x)[0])
    fixed = SlotAttention(WIDTH, fresh=False).double()
    assert torch.equal(fixed(x)[0], fixed.eval()(x)[0])


def test_slots_differ_from_each_other_and_share_every_input():
    slots, resp = made("slot_attention")(sets(2, 9))
    assert torch.cdist(slots, slots)[:, *torch.triu_indices(3, 3, 1)].min() > 1e-3
    torch.testing.assert_close(resp.sum(-1), torch.ones(2, 9).double())


def test_gates_start_nearly_closed():
    layer = GatedCrossAttention(WIDTH)
    assert layer.heads == 4 and layer.alpha_x.item() == layer.alpha_f.item() == pytest.approx(0.1)


def test_impossible_shapes_name_the_fix():
    with pytest.raises(ValueError, match="try heads=3"):
        GatedCrossAttention(6, heads=4)
    with pytest.raises(ValueError, match="at least one slot"):
        SlotAttention(6, slots=0)


def test_slot_and_cross_attention_of_512_channels_stay_below_five_million_parameters():
    layers = SlotAttention(512), GatedCrossAttention(512)
    assert sum(p.numel() for layer in layers for p in layer.parameters()) <= 4_500_000


owner = torch.tensor([2, 0, 2, 4, 0, 2])


@torch.no_grad()
def test_rows_of_one_group_are_one_set():
    slot, cross, x = made("slot_attention"), made("gated_cross_attention"), sets(6, 4)
    slots, resp = slot(x, group=owner, groups=5)
    crossed = cross(x, slots, group=owner)
    assert slots.shape == (5, 3, WIDTH) and resp.shape == (6, 4, 3)
    for g in (0, 2, 4):
        together = x[owner == g].flatten(0, 1)
        for mine, slow in zip((slots[g], resp[owner == g].flatten(0, 1)), slow_slots(slot, together), strict=True):
            torch.testing.assert_close(mine, slow, **EXACT)
        torch.testing.assert_close(crossed[owner == g].flatten(0, 1), slow_cross(cross, together, slots[g]), **EXACT)


def test_groups_that_are_empty_are_finite_and_need_not_be_counted():
    layer, x = made("slot_attention"), sets(6, 4)
    slots, resp = layer(x, group=owner, groups=7)
    assert slots.shape[0] == 7 and slots.isfinite().all()
    uncounted, again = layer(x, group=owner)
    torch.testing.assert_close(uncounted, slots[:5], **EXACT)
    torch.testing.assert_close(again, resp, **EXACT)


def test_without_groups_every_row_is_a_set():
    slot, cross, x, rows = made("slot_attention"), made("gated_cross_attention"), sets(4, 3), torch.arange(4)
    slots, resp = slot(x)
    for mine, other in zip(slot(x, group=rows, groups=4), (slots, resp), strict=True):
        torch.testing.assert_close(mine, other, **EXACT)
    torch.testing.assert_close(cross(x, slots, group=rows), cross(x, slots), **EXACT)


@pytest.mark.parametrize("garbage", [0.0, float("nan")])
def test_masked_inputs_have_no_influence_on_their_group(garbage):
    slot, cross, x = made("slot_attention"), made("gated_cross_attention"), sets(6, 4)
    mask = torch.rand(6, 4, generator=torch.Generator().manual_seed(1)) > 0.4
    dirty = x.masked_fill(~mask.unsqueeze(-1), garbage)
    slots, resp = slot(dirty, mask, group=owner, groups=5)
    crossed = cross(dirty, slots, mask, group=owner)
    assert not resp[~mask].any() and not crossed[~mask].any()
    for g in (0, 2, 4):
        own = mask[owner == g]
        short, resp_of_short = slot(x[owner == g][own].unsqueeze(0))
        torch.testing.assert_close(slots[g], short[0], **EXACT)
        torch.testing.assert_close(resp[owner == g][own], resp_of_short[0], **EXACT)
        torch.testing.assert_close(crossed[owner == g][own], cross(x[owner == g][own].unsqueeze(0), short)[0], **EXACT)


def test_a_masked_context_is_masked_for_every_row_of_the_group():
    cross, x, context = made("gated_cross_attention"), sets(6, 4), sets(5, 3, seed=9)
    keep = torch.ones(5, 3, dtype=torch.bool)
    keep[2, 1:] = False
    found = cross(x, context, None, keep, owner)
    alone = cross(x[owner == 2], context[2:3, :1].expand(3, -1, -1))
    torch.testing.assert_close(found[owner == 2], alone, **EXACT)


def test_gradients_of_groups_are_right():
    slot, cross, x = made("slot_attention"), made("gated_cross_attention"), sets(4, 2).requires_grad_()
    group = torch.tensor([1, 0, 1, 1])

    def both(x):
        slots, resp = slot(x, group=group, groups=2)
        return slots, resp, cross(x, slots, group=group)

    assert torch.autograd.gradcheck(both, x)
