"""The surrogates' equations (docs/surrogates.md) as loops over classes, samples, tokens, slots and dimensions."""

import math

import torch

from tests.layers.slow import slow_cross, slow_pooling, slow_slots


def classes_of(batch):
    """Class → its samples, without classes of one."""
    return {c: batch.z[batch.y == c] for c in sorted(set(batch.y.tolist())) if (batch.y == c).sum() >= 2}


def slow_total(batch, losses):
    """Σ p_c L_c / Σ p_c with p_c = M/B."""
    p = {c: (batch.y == c).sum().item() / len(batch.y) for c in losses}
    return sum(p[c] * losses[c] for c in losses) / sum(p.values()) if losses else 0.0


def slow_positions(one):
    """A sample's positions, row by row; tokens are positions, and a vector is one."""
    if one.ndim < 3:
        return [one] if one.ndim == 1 else list(one)
    return [one[:, i, j] for i in range(one.shape[1]) for j in range(one.shape[2])]


def slow_tokens(tokenise, kind, one):
    """A sample's tokens."""
    places = slow_positions(one)
    if kind == "flat":
        return [torch.stack(list(one.flatten()))]
    if kind == "pooled":
        return [sum(places) / len(places)]
    if kind == "project":
        return [tokenise.map.weight @ place + tokenise.map.bias for place in places]
    return places


def slow_norm(norm, x):
    mean = sum(x.tolist()) / len(x)
    var = sum((value - mean) ** 2 for value in x.tolist()) / len(x)
    y = (x - mean) / math.sqrt(var + 1e-5)
    return y if norm.weight is None else norm.weight * y + norm.bias


def slow_tokens_of_class(defence, own):
    return [
        slow_norm(defence.norm, token) for one in own for token in slow_tokens(defence.tokenise, defence.tokens, one)
    ]


def slow_moments(rows, weights, freedom=None):
    """Mean and variance of every dimension under the weights."""
    rows, mass = [row.tolist() for row in rows], sum(weights)
    mu, var = [], []
    for d in range(len(rows[0])):
        mu.append(sum(w * row[d] for w, row in zip(weights, rows, strict=True)) / mass)
        spread = sum(w * (row[d] - mu[d]) ** 2 for w, row in zip(weights, rows, strict=True))
        var.append(spread / (freedom or mass))
    return mu, var


def sigmoid(value):
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


def softplus(value):
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


def slow_threshold(kind, variances, sigma, tau, gamma, progress):
    hidden = max(tau * sigma**2, 1e-8) + gamma if sigma else None
    return {
        "noise": lambda: hidden,
        "constant": lambda: 0.05,
        "schedule": lambda: math.exp(progress * math.log(hidden)),
        "quantile": lambda: sorted(variances)[(len(variances) - 1) // 2] + gamma,
    }[kind]()


def theta_of(defence, variances, progress):
    return slow_threshold(defence.threshold, variances, defence.sigma_n, defence.var_threshold, defence.gamma, progress)


def slow_hinge(defence, var, theta):
    return sum(max(0.0, math.log(v + defence.gamma) - math.log(theta)) for v in var) / len(var)


def slow_psi(defence, mu, var, theta):
    """dim gate · SNR gate · softplus term of every dimension, the gates being 1 where they are open."""
    gates, gamma = defence.gates, defence.gamma
    beta, margin, kappa, t = (float(gates[name]) for name in ("beta", "margin", "kappa", "t"))
    base = [softplus(beta * (math.log(v + gamma) - math.log(theta) - margin)) / beta for v in var]
    if defence.open_gates:
        return base
    first, _, last = gates.mlp
    logs = slow_norm(gates.norm, torch.tensor([math.log(v + gamma) for v in var], dtype=torch.double))
    hidden = torch.stack([max(row @ logs + b, 0 * b) for row, b in zip(first.weight, first.bias, strict=True)])
    dim = [sigmoid((row @ hidden + b).item()) for row, b in zip(last.weight, last.bias, strict=True)]
    snr = [sigmoid(kappa * (v / (m**2 + 1e-6) - t)) for m, v in zip(mu, var, strict=True)]
    return [d * s * b for d, s, b in zip(dim, snr, base, strict=True)]


def slow_class_gate(defence, share):
    return 1.0 if defence.open_gates else sigmoid(float(defence.gates["a"]) * (share - float(defence.gates["b"])))


@torch.no_grad()
def slow_gated(defence, batch):
    """Class → its loss."""
    found = {}
    for c, own in classes_of(batch).items():
        x = slow_tokens_of_class(defence, own)
        alpha, _ = slow_pooling(defence.attention, x)
        found[c] = slow_moments(x, alpha.tolist())
    theta = theta_of(defence, [v for _, var in found.values() for v in var], batch.progress) if found else None
    losses = {}
    for c, (mu, var) in found.items():
        if defence.form == "hinge":
            losses[c] = slow_hinge(defence, var, theta)
        else:
            psi = slow_psi(defence, mu, var, theta)
            losses[c] = slow_class_gate(defence, (batch.y == c).sum().item() / len(batch.y)) * sum(psi) / len(psi)
    return losses


@torch.no_grad()
def slow_slot(defence, batch, only=None):
    """Class → its loss; `only` some of the classes."""
    found = {}
    for c, own in classes_of(batch).items():
        if only is not None and c not in only:
            continue
        x = torch.stack(slow_tokens_of_class(defence, own))
        slots, _ = slow_slots(defence.attention, x)
        y = slow_cross(defence.cross, x, slots)
        if defence.form == "hinge":
            found[c] = [(1.0, *slow_moments(y, [1.0] * len(y), freedom=len(y) - 1))]
            continue
        resp = slow_cosine_responsibilities(float(defence.gates["sharpness"]), x, slots)
        mass = [sum(row[k] for row in resp) / len(x) for k in range(len(slots))]
        powers = [m ** float(defence.gates["power"]) for m in mass]
        found[c] = [(powers[k] / sum(powers), *slow_moments(y, [row[k] for row in resp])) for k in range(len(slots))]
    spread = [v for own in found.values() for _, _, var in own for v in var]
    theta = theta_of(defence, spread, batch.progress) if found else None
    losses = {}
    for c, components in found.items():
        losses[c] = 0.0
        for weight, mu, var in components:
            if defence.form == "hinge":
                losses[c] += weight * slow_hinge(defence, var, theta)
            else:
                losses[c] += weight * sum(slow_psi(defence, mu, var, theta)) / len(var)
        if defence.form == "mixture":
            losses[c] *= slow_class_gate(defence, (batch.y == c).sum().item() / len(batch.y))
    return losses


def slow_cosine_responsibilities(sharpness, x, slots):
    resp = []
    for one in x:
        scores = []
        for slot in slots:
            length = math.sqrt(one @ one) * math.sqrt(slot @ slot)
            scores.append(math.exp(sharpness * (float(one @ slot) / length if length else 0.0)))
        resp.append([score / sum(scores) for score in scores])
    return resp


def slow_entropy(p):
    return -sum(value * math.log(value) for value in p if value > 0)


def slow_responsibilities(defence, own):
    """Sample → token → slot, of one class."""
    tokens = [slow_tokens(defence.tokenise, defence.tokens, one) for one in own]
    if defence.assign == "class":
        return [[[1.0] for _ in row] for row in tokens]
    flat = torch.stack([token for row in tokens for token in row])
    if defence.assign == "slot":
        resp = slow_slots(defence.assigner.attention, flat)[1].tolist()
    else:
        V, U, W = (getattr(defence.assigner.scores, name).weight for name in "VUw")
        resp = []
        for token in flat:
            x = slow_norm(defence.assigner.norm, token)
            scores = [math.exp(score) for score in (W @ (torch.tanh(V @ x) * torch.sigmoid(U @ x))).tolist()]
            resp.append([score / sum(scores) for score in scores])
    count = len(tokens[0])
    return [resp[i * count : (i + 1) * count] for i in range(len(own))]


def slow_rate(cov, rows, weights, sigma):
    """½ log det(I + Σ/σ²) under the weights, or its diagonal form."""
    if cov == "diag":
        return sum(0.5 * math.log(1 + v / sigma**2) for v in slow_moments(rows, weights)[1])
    mass = sum(weights)
    mean = sum(w * row for w, row in zip(weights, rows, strict=True)) / mass
    full = sum(w * torch.outer(row - mean, row - mean) for w, row in zip(weights, rows, strict=True)) / mass
    return 0.5 * torch.logdet(torch.eye(len(full)).to(full) + full / sigma**2).item()


@torch.no_grad()
def slow_bound_losses(defence, batch, only=None):
    """Class → what is told beyond the class, per latent dimension: slots are part of K, positions count one by one."""
    losses = {}
    for c, own in classes_of(batch).items():
        if only is not None and c not in only:
            continue
        resp = slow_responsibilities(defence, own)
        by_position = defence.cov == "channel" or defence.tokens in ("spatial", "project")
        rows = [slow_positions(one) if by_position else [one.flatten()] for one in own]
        positions, decisions, slots = len(rows[0]), len(resp[0]), len(resp[0][0])
        flat_resp = [token for sample in resp for token in sample]
        pi = [sum(token[k] for token in flat_resp) / len(flat_resp) for k in range(slots)]
        told = slow_entropy(pi) - sum(slow_entropy(token) for token in flat_resp) / len(flat_resp)
        rate = 0.0
        for k in range(slots):
            # One decision for the whole sample holds at each of its positions.
            weights = [sample[t if decisions > 1 else 0][k] for sample in resp for t in range(positions)]
            rate += pi[k] * slow_rate(defence.cov, [row for sample in rows for row in sample], weights, defence.sigma_n)
        losses[c] = (decisions * told + positions * rate) / own[0].numel()
    return losses


def slow_bound(defence, batch):
    """H(π) of the classes, and what each of them tells."""
    losses = slow_bound_losses(defence, batch)
    count = {c: (batch.y == c).sum().item() for c in losses}
    share = {c: count[c] / sum(count.values()) for c in losses}
    return sum(share[c] * losses[c] for c in losses) + slow_entropy(share.values()) / batch.z[0].numel()
