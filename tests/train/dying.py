"""The command as it is, but for its second process, which dies without a word in the second epoch."""

import os
import signal
import sys

from attcem.cli import main
from attcem.defences import Noise

met = 0


def observe(self: Noise, batch: object) -> None:
    global met
    met += 1
    if os.environ["RANK"] == "1" and met == 8:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    Noise.observe = observe  # type: ignore[method-assign,assignment]
    sys.exit(main(sys.argv[1:]))
