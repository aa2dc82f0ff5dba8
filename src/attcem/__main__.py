"""`python -m attcem`."""

import sys

from attcem.cli import main

sys.exit(main())
