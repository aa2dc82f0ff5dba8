"""A network cut in two: the encoder stays on the device, the decoder runs in the cloud."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.models.crossings import Crossing, Map, insert, read_crossing
from attcem.models.cutting import cut_module
from attcem.models.named import ACTIVATIONS, BACKBONES, SPEC, ImageData, list_cuts, named_spec
from attcem.models.units import Normalise, channel_statistics, shape_after
from attcem.naming import check_options
from attcem.types import Record


class Split(nn.Module):
    """Encoder and decoder with disjoint parameters, and what is needed to build them again."""

    spec: dict[str, Any] | None  # JSON-able description for `build_split`; None when the user's own module was cut
    latent_shape: tuple[int, ...]  # shape of one clean latent, without the batch
    classes: int
    record: Record | None  # how it was trained, for results: `fit` and `load_run` set it

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        *,
        latent_shape: tuple[int, ...],
        classes: int,
        spec: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.latent_shape, self.classes, self.spec = tuple(latent_shape), classes, spec
        self.record = None

    def forward(self, x: Float[Tensor, "b ..."]) -> Float[Tensor, "b classes"]:
        """Logits along the clean path: for tests. In deployment the latent passes a guard in between."""
        return self.decoder(self.encoder(x))


def split(
    model: str | nn.Module,
    *,
    data: ImageData | None = None,
    shape: tuple[int, int, int] | None = None,
    classes: int | None = None,
    cut: int | None = None,
    bottleneck: Map | Mapping[str, int] | int | None = None,
    crossing: Crossing | Mapping[str, Any] | str | None = None,
    width: float | None = None,
    activation: str | None = None,
    at: str | None = None,
    example: Tensor | None = None,
) -> Split:
    """Cut a network in two: a named backbone after its unit number `cut`, or any module after its submodule `at`.

    `split("vgg11_bn", data=data, cut=4, bottleneck=8)` builds a backbone (`attcem list backbones`) for the data, with
    the data's normalisation inside the encoder; without data, give `shape` and `classes`. `cut` defaults to the
    backbone's own choice, `width` to 1.0, `activation` to "sigmoid": a bounded latent, otherwise the network escapes
    additive noise by scaling up.

    `split(my_module, at="layer2", example=x)` cuts a module of yours, which keeps sharing its parameters with the two
    halves, and proves on the batch `example` that they compose to the same function. A `crossing` is then put between
    the halves, to be trained with them.
    """
    named: dict[str, Any] = {"data": data, "shape": shape, "classes": classes, "cut": cut}
    named |= {"bottleneck": bottleneck, "width": width, "activation": activation}
    own: dict[str, Any] = {"at": at, "example": example}
    if isinstance(model, str):
        refuse(own, f"split({model!r}) takes cut=, not {{}}: at= and example= cut a module of yours")
        given = {option: value for option, value in (named | {"crossing": crossing}).items() if value is not None}
        return split_named(model, **given)
    if isinstance(model, nn.Module):
        refuse(named, "split(module) takes at=, example= and crossing=, not {}: that is for a backbone given by name")
        return split_own(model, crossing=read_crossing(crossing), **own)
    raise ValueError(f"split takes the name of a backbone or an nn.Module, not {type(model).__name__}")


def split_named(name: str, *, data: ImageData | None = None, **options: Any) -> Split:
    if data is not None:
        given = {option: options.get(option) for option in ("shape", "classes")}
        refuse(given, "leave out {}: data= already says it")
        options |= {"shape": data.shape, "classes": data.classes}
    if not {"shape", "classes"} <= set(options):
        raise ValueError(f"split({name!r}) needs data=, or both shape=(channels, height, width) and classes=")
    model = build_split(named_spec(name, **options))
    if data is not None:
        mean, std = channel_statistics(data.private.x)
        model.encoder.get_submodule("normalise").load_state_dict(Normalise(mean, std).state_dict())
    return model


def split_own(module: nn.Module, *, at: str | None, example: Tensor | None, crossing: Crossing | None) -> Split:
    if at is None or example is None:
        raise ValueError('split(module) needs at="name of a submodule" and example=a batch of its inputs')
    halves = Split(**cut_module(module, at=at, example=example))
    if crossing is not None:
        encoder, decoder = nn.Sequential(OrderedDict(module=halves.encoder)), nn.Sequential()
        features, classes = halves.latent_shape, halves.classes
        latent = insert(crossing, encoder, decoder, halves.decoder, features=features, classes=classes)
        encoder.add_module("activation", nn.Sigmoid())
        where = next(halves.parameters())
        halves = Split(encoder, decoder, latent_shape=latent, classes=classes).to(where.device, where.dtype)
    halves.training = module.training
    return halves


def build_split(spec: Mapping[str, Any]) -> Split:
    """Rebuild a split from its spec, with fresh weights; these and the normalisation come from a checkpoint."""
    check_options("spec", spec, SPEC)
    if missing := [key for key in SPEC if key not in spec]:
        raise ValueError(f"spec lacks {', '.join(missing)}: it must be the .spec of a Split of a named backbone")
    checked = named_spec(**spec)
    shape, classes, cut = tuple(checked["shape"]), checked["classes"], checked["cut"]
    units = BACKBONES[checked["backbone"]](shape, classes, checked["width"])
    if isinstance(cut, bool) or not isinstance(cut, int) or not 1 <= cut < len(units):
        raise ValueError(f"cut={cut!r} does not exist in {checked['backbone']!r}; {list_cuts(units, shape)}")
    back, decoder = units[cut:], nn.Sequential()
    normalise = Normalise([0.5] * shape[0], [0.25] * shape[0])
    encoder = nn.Sequential(OrderedDict(normalise=normalise, units=units[:cut]))
    crossing, latent = read_crossing(checked["crossing"]), shape_after(encoder, shape)
    if crossing is None:
        decoder.add_module("units", back)
    else:
        latent = insert(crossing, encoder, decoder, back, features=latent, classes=classes)
    encoder.add_module("activation", ACTIVATIONS[checked["activation"]]())
    return Split(encoder, decoder, latent_shape=latent, classes=classes, spec=checked)


def check_weights(spec: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Raise unless a network of this spec has weights of these shapes; it is built without taking memory for it."""
    try:
        with torch.device("meta"):
            network = build_split(spec)
    except RuntimeError as error:
        raise ValueError(f"no network can be built from spec {dict(spec)}: {error}") from None
    wanted, found = ({name: t.shape for name, t in each.items()} for each in (network.state_dict(), weights))
    if wanted != found:
        odd = min(name for name in wanted | found if wanted.get(name) != found.get(name))
        shapes = f"{wanted.get(odd)}, not {found.get(odd)}"
        raise ValueError(f"the checkpoint does not fit its spec: {odd} should be of shape {shapes}")


def refuse(options: Mapping[str, Any], why: str) -> None:
    if given := [f"{name}=" for name, value in options.items() if value is not None]:
        raise ValueError(why.format(" and ".join(given)))
