"""Cut any module in two after a named submodule, and prove that the halves compose to it."""

from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.dropout import _DropoutNd

from attcem.models.graphs import copy_graph, undisturbed
from attcem.models.places import Halves, Places
from attcem.naming import nearest


def cut_module(module: nn.Module, *, at: str, example: Tensor) -> dict[str, Any]:
    """Encoder, decoder, latent shape and classes; both halves share the module's parameters.

    The cut is right after the submodule `at` returns. It is clean when exactly one tensor crosses it, the output of
    `at`; parameters, and what is computed from them alone, are fetched on the side that uses them.
    """
    if not isinstance(example, Tensor) or example.dim() < 2 or len(example) == 0:
        raise ValueError("example must be a batch of inputs, such as x of shape (2, 3, 32, 32)")
    with undisturbed(module):
        module.eval()
        logits = classify(module, example)
        halves = find(module, at, Places(module, example))
        front, back = copy_graph(halves.front, output=halves.latent), copy_graph(halves.back, latent=halves.latent)
        copy_common_buffers(module, front, back)
        encoder, decoder = fx.GraphModule(module, front, "Encoder"), fx.GraphModule(module, back, "Decoder")
        protect_input(encoder, example)
        latent = run(encoder, example)
        protect_input(decoder, latent)
        composed = run(decoder, latent)
        # same operations in the same order: equal, up to kernels that are not deterministic
        if not torch.allclose(composed, logits, rtol=1e-5, atol=1e-6):
            raise ValueError(
                f"cut at {at!r}, decoder(encoder(example)) differs from module(example) by "
                f"{float((composed - logits).abs().max()):.3g}: the forward pass must be deterministic in eval mode "
                "and free of state outside its tensors"
            )
    encoder.training = decoder.training = module.training
    return {"encoder": encoder, "decoder": decoder, "latent_shape": tuple(latent.shape[1:]), "classes": logits.shape[1]}


def classify(module: nn.Module, example: Tensor) -> Tensor:
    try:
        logits = run(module, example)
    except Exception as error:
        raise ValueError(
            f"{type(module).__name__} fails on the example of shape {tuple(example.shape)} ({error}): "
            "example must be a batch of inputs that the module takes"
        ) from error
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(example):
        found = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise ValueError(
            f"the module must return logits of shape ({len(example)}, classes), but returns {found}: wrap it in a "
            "module whose forward(x) returns them alone, such as self.module(x).logits, and cut at 'module.NAME'"
        )
    return logits


@torch.no_grad()
def run(function: nn.Module, x: Tensor) -> Any:
    """Apply without gradients, on a copy, so that nothing in place reaches the user's tensor."""
    return function(x.clone())


def find(module: nn.Module, at: str, places: Places) -> Halves:
    names = {name: child for name, child in module.named_modules(remove_duplicate=False) if name}
    if at not in names:
        raise ValueError(f"{type(module).__name__} has no submodule {at!r}: {nearest(at, places.clean())}")
    # a module registered twice is traced under its first name
    verdict = places.judge(next(name for name, child in module.named_modules() if child is names[at]))
    if isinstance(verdict, Halves):
        return verdict
    clean = ", ".join(places.clean())
    advice = f"these names give a clean cut: {clean}" if clean else "no submodule of it gives a clean cut"
    raise ValueError(f"cannot cut at {at!r}: {verdict}; {advice}")


def copy_common_buffers(module: nn.Module, front: fx.Graph, back: fx.Graph) -> None:
    """Give the decoder its own copy of a buffer that both halves read: they run on two machines."""
    common = {node.target for node in front.nodes if node.op == "get_attr"}
    for node in back.nodes:
        if node.op == "get_attr" and node.target in common:
            copied = f"copied_{node.target.replace('.', '_')}"
            # a graph module takes what it needs from the module; the caller removes it from there again
            setattr(module, copied, attrgetter(node.target)(module).clone())
            node.target = copied


@torch.no_grad()
def protect_input(half: fx.GraphModule, x: Tensor) -> None:
    """Let a half work on a copy if it writes into its input: a clean latent must stay what was released."""
    given = x.clone()
    half(given)
    # dropout writes in training only, which this run in eval mode cannot see
    dropout = any(isinstance(child, _DropoutNd) and child.inplace for child in half.modules())
    if given._version == 0 and not dropout:
        return
    graph = half.graph
    placeholder = next(node for node in graph.nodes if node.op == "placeholder")
    with graph.inserting_after(placeholder):
        copied = graph.call_method("clone", (placeholder,))
    placeholder.replace_all_uses_with(copied, delete_user_cb=lambda user: user is not copied)
    half.recompile()
