"""The Chromium of this machine, if it has one."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 120_000


def draw_all(page):
    """Bring every chart of an open part into sight and wait until it is drawn."""
    for number in range(page.locator(".plot").count()):
        plot = page.locator(".plot").nth(number)
        if plot.is_visible():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for(state="attached")
