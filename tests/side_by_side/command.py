"""`python -m tests.side_by_side.command run …`: the command itself, with attacks of seconds here and in its helpers."""

import os
import signal
import sys

from attcem import side_by_side
from attcem.attacks import SUITES, Suite
from attcem.cli import main
from tests.side_by_side import helper

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell may have it ignored
    side_by_side.HELPER = [sys.executable, "-m", "tests.side_by_side.helper"]
    SUITES["smoke"] = Suite("smoke", 1, getattr(helper, os.environ["SUITE"]), seen=4_000)
    sys.exit(main(sys.argv[1:]))
