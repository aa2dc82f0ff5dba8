"""All pictures of a scene, in the order of the page."""

from attcem.explain.attention import attention, crossing
from attcem.explain.gates import gates
from attcem.explain.latent import neighbours, pca
from attcem.explain.look import Scene
from attcem.explain.sheet import styled
from attcem.explain.slots import slots
from attcem.types import Explanation


def draw(scene: Scene, *, tsne: bool) -> list[Explanation]:
    with styled():
        weighed = [attention(scene, sight, sight.weight) for sight in scene.sights if sight.weight is not None]
        gated = [gates(scene, sight) for sight in scene.sights if sight.gates]
        latent = [pca(scene), *([neighbours(scene)] if tsne else [])]
        return [*crossing(scene), *weighed, *slots(scene), *gated, *latent]
