"""Where the attention at the cut looks is drawn for who has one, and only for them."""

import numpy as np
import pytest

from attcem import Guard, Noise, split
from attcem.explain import draw
from attcem.explain.look import look
from attcem.figures.style import styled


@pytest.mark.parametrize("name", ["attention", "slot"])
def test_every_token_is_drawn_on_a_picture_of_each_class(small, name):
    model = split("vgg11_bn", data=small, cut=4, width=0.1, crossing={name: {"tokens": 3, "width": 8}})
    scene = look(model, Guard(Noise(0.1)), small, 80)
    index, maps = scene.looks
    assert sorted(scene.y[index]) == sorted(set(scene.y)) and maps.shape == (len(index), 3, 7, 7)
    np.testing.assert_allclose(maps.sum((2, 3)), 1, rtol=1e-5)
    with styled():
        first, *_ = draw(scene, tsne=False)
    assert first.file == "crossing.png" and "no token looks at" in first.caption.lower()
    assert first.png.startswith(b"\x89PNG")


def test_a_map_has_nothing_to_show(small):
    model = split("vgg11_bn", data=small, cut=4, width=0.1, bottleneck=4)
    scene = look(model, Guard(Noise(0.1)), small, 80)
    assert scene.looks is None
    with styled():
        assert [found.file for found in draw(scene, tsne=False)] == ["latent-pca.png"]
