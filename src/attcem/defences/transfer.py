"""An encoder that was protected before, brought to a new task."""

from collections.abc import Callable

from torch import nn

from attcem.defences.base import Defence


class Transfer(Defence):
    """Starts from the encoder of another, protected run, and keeps it as it is or lets it learn slowly.

    Resistance transfer (ResSFL, Li et al. 2022): protection that was expensive to learn is not learned again. Frozen,
    the encoder also keeps its running statistics. What it leaks on new data is for the audit to say.

    Args:
        start_from: folder of the run whose encoder to take; it must have the same shape.
        rate: how fast the encoder learns against the cloud half; 0 keeps it frozen.
    """

    equation = "θ ← θ*,   θ ← θ − r η ∂L/∂θ"
    strength = "rate"

    def __init__(self, start_from: str = "", rate: float = 0.0) -> None:
        super().__init__()
        if not 0 <= rate <= 1:
            raise ValueError(f"transfer rate={rate} must lie between 0 (frozen) and 1 (as fast as the cloud half)")
        self.start_from, self.rate = start_from, rate

    def attach(self, encoder: nn.Module, borrow: Callable[[str], None] | None = None) -> None:
        if borrow is not None:
            if not self.start_from:
                raise ValueError("transfer needs a run to start from: give defence.transfer.start_from=runs/<id>")
            borrow(self.start_from)
        if self.rate == 0:
            encoder.requires_grad_(False)
            encoder.register_forward_pre_hook(lambda module, _: module.eval() and None)
            return
        for parameter in encoder.parameters():
            parameter.register_hook(lambda gradient: self.rate * gradient)
