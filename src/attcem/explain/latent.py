"""The clean latent in two dimensions, coloured by class and by slot."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
from jaxtyping import Float, Int64
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from attcem.explain import sheet
from attcem.explain.look import Scene
from attcem.types import Explanation

WIDTH, HEIGHT, BETWEEN, MARGIN = 490, 420, 40, 14
COMPONENTS = 50  # of the latent, that t-SNE starts from


def principal(z: Float[np.ndarray, "n d"], count: int) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " c"]]:
    """Coordinates along the directions of largest variance, and the share of all variance in each."""
    centred = z - z.mean(0)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    values, vectors = np.maximum(values[::-1][:count], 0), vectors[:, ::-1][:, :count]
    upright = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])])
    total = float(np.square(centred).sum())
    return vectors * upright * np.sqrt(values), values / total if total else np.zeros_like(values)


def pca(scene: Scene) -> Explanation:
    places, share = principal(scene.z.reshape(len(scene.z), -1), 2)
    places, share = np.pad(places, ((0, 0), (0, 2 - places.shape[1]))), np.pad(share, (0, 2 - len(share)))
    spread = places.std(0)
    noise = (
        f" Release adds noise of σ={scene.sigma:g} to spreads of {spread[0]:.2g} and {spread[1]:.2g} along them: "
        "latents that fit into one ring, of radius 2σ, are hard to tell apart by these directions."
        if scene.sigma
        else " Nothing is added on release: two latents that differ at all can be told apart."
    )
    unseen = "" if scene.sights else f" The defence ({scene.chain}) looks at no images: there is no attention to draw."
    if scene.blind:
        unseen = (
            f" There is no attention to draw of {' and '.join(scene.blind)}: it treats all images of a class alike, or "
            "has not been fitted yet."
        )
    caption = (
        f"{len(scene.y):,} validation images; the two directions hold {share[0]:.0%} and {share[1]:.0%} of the "
        "variance. Tight groups of one colour tell the class and little else; wide ones tell images of a class apart, "
        f"and that is what an attacker uses.{noise}{unseen}"
    )
    title = "The clean latent, two directions of largest variance"
    return Explanation("latent-pca.png", title, caption, panels(scene, places, scene.sigma))


def neighbours(scene: Scene) -> Explanation:
    if find_spec("sklearn") is None:
        raise ValueError("--tsne needs scikit-learn: pip install scikit-learn, or leave --tsne out and look at the PCA")
    places, _ = principal(scene.z.reshape(len(scene.z), -1), COMPONENTS)
    perplexity = min(30.0, (len(places) - 1) / 3)
    found = import_module("sklearn.manifold").TSNE(2, perplexity=perplexity, init="pca", random_state=0)
    caption = (
        f"{len(scene.y):,} validation images; near means similar (perplexity {perplexity:.0f}), but distances "
        "between groups and their sizes mean nothing here: for these look at the directions of largest variance."
    )
    png = panels(scene, found.fit_transform(places).astype(float), 0.0)
    return Explanation("latent-tsne.png", "The clean latent, neighbourhoods (t-SNE)", caption, png)


def panels(scene: Scene, places: Float[np.ndarray, "n 2"], sigma: float) -> bytes:
    coloured = [("by class", scene.y, lambda c: scene.names[c])]
    for sight in scene.sights:
        if sight.resp is not None:
            slot = np.full(len(scene.y), -1)
            slot[sight.index] = sight.resp.mean(1).argmax(1)
            coloured.append((f"by foremost slot of {sight.name}", slot, lambda k: f"slot {k + 1}"))
    figure = sheet.blank(len(coloured) * (WIDTH + BETWEEN) - BETWEEN, HEIGHT)
    wide = figure.get_figwidth() * 96
    low, high = places.min(0), places.max(0)
    scale = min((np.array([WIDTH, HEIGHT]) - 2 * MARGIN) / np.maximum(high - low, 1e-12))
    dots = np.array([WIDTH, HEIGHT]) / 2 + (places - (low + high) / 2) * scale
    for column, (title, number, name) in enumerate(coloured):
        axes = figure.add_axes((column * (WIDTH + BETWEEN) / wide, 0, WIDTH / wide, 1), xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
        axes.set(title=title, xlim=(0, WIDTH), ylim=(0, HEIGHT))
        legend = legend_of(number)
        colour = np.array([legend.get(int(kind), len(sheet.KINDS)) for kind in number])
        axes.scatter(dots[:, 0], dots[:, 1], c=sheet.kinds(colour), s=14, alpha=0.67, linewidths=0)
        draw_noise(axes, 2 * sigma * scale, dots)
        names = {kind: sheet.short(name(kind)) if own < len(sheet.KINDS) else "others" for kind, own in legend.items()}
        columns = min(4, WIDTH // (40 + 7 * max(map(len, names.values()))))
        handles = [sheet.swatch(own, names[kind]) for kind, own in legend.items()]
        below = {"bbox_to_anchor": (0, 0), "ncols": columns, "handlelength": 1, "borderpad": 0}
        axes.legend(handles=handles, loc="upper left", **below)
    return sheet.png(figure)


def draw_noise(axes: Axes, radius: float, dots: Float[np.ndarray, "n 2"]) -> None:
    """The noise at its true size in the emptiest corner, or in words if it is too large to draw."""
    if radius > HEIGHT / 2 - 24:
        sheet.put_note(axes, WIDTH - 12, 14, "noise, 2σ: a ring larger than this panel", ha="right")
    elif radius >= 3:
        wide, high = 2 * radius + 96, 2 * radius + 24
        corners = [(x, y) for y in (0, HEIGHT - high) for x in (0, WIDTH - wide)]
        inside = [((dots >= corner) & (dots <= np.add(corner, (wide, high)))).all(1).sum() for corner in corners]
        x, y = corners[int(np.argmin(inside))]
        axes.add_patch(Circle((x + 12 + radius, y + high / 2), radius, fill=False, edgecolor=sheet.INK))
        sheet.put_note(axes, x + 18 + 2 * radius, y + high / 2, "noise, 2σ", ha="left")


def legend_of(number: Int64[np.ndarray, " n"]) -> dict[int, int]:
    """Kind → colour: its own number's if ten colours are enough, else one for each of the ten most frequent.

    All others, and those that are of no kind (−1), share one.
    """
    found, counts = np.unique(number[number >= 0], return_counts=True)
    most = np.sort(found[np.argsort(-counts, kind="stable")[: len(sheet.KINDS)]])
    enough = found.max(initial=0) < len(sheet.KINDS)
    legend = {int(kind): int(kind) if enough else colour for colour, kind in enumerate(most)}
    return legend | ({-1: len(sheet.KINDS)} if len(legend) < len(np.unique(number)) else {})
