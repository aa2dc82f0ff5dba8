"""The layers' equations for one set, as loops over inputs, slots and heads."""

import math

import torch


def slow_pooling(layer, x):
    V, U, w = (getattr(layer.scores, name).weight for name in "VUw")
    logits = [w[0] @ (torch.tanh(V @ one) * torch.sigmoid(U @ one)) for one in x]
    total = sum(math.exp(logit) for logit in logits)
    alpha = torch.stack([logit.exp() / total for logit in logits])
    return alpha, sum(a * one for a, one in zip(alpha, x, strict=True))


def slow_slots(layer, x):
    d = x.shape[-1]
    inputs = [layer.norm_inputs(one) for one in x]
    slots = [layer.mu + layer.log_sigma.exp() * epsilon for epsilon in layer.epsilon]
    for _ in range(layer.iters):
        queries = [layer.to_q(layer.norm_slots(slot)) / math.sqrt(d) for slot in slots]
        resp = []
        for one in inputs:
            scores = [math.exp(layer.to_k(one) @ q / d**0.25) for q in queries]
            resp.append([score / sum(scores) for score in scores])
        for s, slot in enumerate(slots):
            shares = [row[s] + layer.eps for row in resp]
            update = sum(share / sum(shares) * layer.to_v(one) for share, one in zip(shares, inputs, strict=True))
            slot = layer.gru(update.unsqueeze(0), slot.unsqueeze(0))[0]
            slots[s] = slot + layer.mlp(layer.norm_mlp(slot))
    return torch.stack(slots), torch.tensor(resp, dtype=torch.double)


def slow_cross(layer, x, context):
    size = x.shape[-1] // layer.heads
    rows = []
    for one in x:
        q = layer.to_q(layer.norm_q(one))
        seen = [layer.norm_kv(other) for other in context]
        parts = []
        for head in range(layer.heads):
            own = slice(head * size, (head + 1) * size)
            scores = [math.exp(q[own] @ layer.to_k(other)[own] / math.sqrt(size)) for other in seen]
            values = [score / sum(scores) * layer.to_v(other)[own] for score, other in zip(scores, seen, strict=True)]
            parts.append(sum(values))
        y = one + torch.tanh(layer.alpha_x) * layer.to_out(torch.cat(parts))
        rows.append(y + torch.tanh(layer.alpha_f) * layer.ff(layer.norm_ff(y)))
    return torch.stack(rows)
