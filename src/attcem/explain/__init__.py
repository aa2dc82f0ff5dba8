"""What a defence looks at: pictures of its attention, slots, gates and latent, from a run's validation images."""

import dataclasses
import json
from pathlib import Path

from attcem.defences import Defence, Guard
from attcem.experiment import load_run
from attcem.explain.look import Scene, look
from attcem.figures import style
from attcem.files import write_atomically
from attcem.models import Split
from attcem.types import Explanation

__all__ = ["explain"]


def explain(
    folder: str | Path,
    *,
    images: int = 1000,
    tsne: bool = False,
    model: Split | None = None,
    guard: Guard | Defence | None = None,
    device: str = "auto",
) -> list[Explanation]:
    """Draw what a run's defence looks at into its folder `explain/`, where its report finds it.

    At most so many validation images are looked at, never a test image. A network that was cut from your own module is
    passed as `model`, a chain with a defence of your own as `guard`.
    """
    folder = Path(folder)
    with style.styled():  # which says what to install where matplotlib is missing
        found = draw(look(*load_run(folder, model, guard, device=device), images), tsne=tsne)
    numbered = [dataclasses.replace(e, file=f"{place}-{e.file}") for place, e in enumerate(found, 1)]
    for explanation in numbered:
        write_atomically(folder / "explain" / explanation.file, explanation.png)
    written = [{"title": e.title, "caption": e.caption, "file": e.file} for e in numbered]
    write_atomically(folder / "explain" / "entries.json", json.dumps(written, indent=1, ensure_ascii=False).encode())
    for picture in (folder / "explain").glob("*.png"):  # of an earlier time
        if picture.name not in {e.file for e in numbered}:
            picture.unlink()
    return numbered


def draw(scene: Scene, *, tsne: bool) -> list[Explanation]:
    """All pictures of a scene, in the order of the page; matplotlib is imported here and not before."""
    from attcem.explain.attention import attention, crossing
    from attcem.explain.gates import gates
    from attcem.explain.latent import neighbours, pca
    from attcem.explain.sheet import styled
    from attcem.explain.slots import slots

    with styled():
        weighed = [attention(scene, sight, sight.weight) for sight in scene.sights if sight.weight is not None]
        gated = [gates(scene, sight) for sight in scene.sights if sight.gates]
        latent = [pca(scene), *([neighbours(scene)] if tsne else [])]
        return [*crossing(scene), *weighed, *slots(scene), *gated, *latent]
