"""All pictures of a scene, in the order of the page."""

from attcem.explain.attention import attention
from attcem.explain.crossing import crossing
from attcem.explain.gates import gates
from attcem.explain.latent import neighbours, pca
from attcem.explain.look import Scene
from attcem.explain.sheet import styled
from attcem.explain.slots import slots
from attcem.types import Explanation


def draw(scene: Scene, *, tsne: bool) -> list[Explanation]:
    """What crosses, attention, slots, gates and latent, as far as network and defence have them."""
    with styled():
        seen = [*crossing(scene), *attention(scene), *slots(scene), *gates(scene)]
        return [*seen, pca(scene), *([neighbours(scene)] if tsne else [])]
