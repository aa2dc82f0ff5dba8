"""What the free-form parts of a result must look like where readers rely on them; they may hold more."""

from typing import Any, TypedDict

Links = dict[str, dict[str, Any] | None]


class Config(TypedDict, total=False):
    """The settings of a run."""

    name: str | None
    defence: Links | list[Links | str] | str | None


class Fano(TypedDict):
    """Columns of a table: how often an image can be found at most."""

    candidates: list[float]
    queries: list[float]
    success: list[float]


class Fisher(TypedDict, total=False):
    """A floor from the Jacobian of the encoder."""

    mse: float | None


class Bounds(TypedDict, total=False):
    """What theory promises, or why it does not."""

    why: str | None
    rate_nats: float | None
    mse_floor_estimate: float | None
    relative_floor: float | None
    fisher: Fisher
    fano: Fano


class Risk(TypedDict, total=False):
    """Whom the worst case hits."""

    percentiles: dict[str, dict[str, float]]


class Client(TypedDict):
    """What an audit means for one of several clients."""

    client: int
    images: int
    classes: dict[str, int]
    accuracy: float | None
    worst: dict[str, float | None]
    mean_image_mse: float | None
    covered: float
