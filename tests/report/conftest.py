"""One browser for all tests of a file that look at a page."""

import pytest

from .chromium import CHROMIUM, FLAGS, PATIENCE


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install 'attcem[dev]'")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE)
        yield running
        running.close()
