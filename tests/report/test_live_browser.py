"""The live page as a reader meets it, while runs go on."""

import pytest

from .chromium import NEEDS_CHROMIUM, PATIENCE, draw_all
from .made import rich_result
from .test_live import serving, started

pytestmark = NEEDS_CHROMIUM


@pytest.mark.slow
def test_a_live_page_shows_what_is_new_keeps_what_was_opened_and_says_when_it_ends(browser, tmp_path):
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    broken = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    banner = page.locator("#live")
    with serving(tmp_path) as server:
        going = started(tmp_path / "going")
        page.goto(server.url)
        page.get_by_text("No result yet").wait_for()
        banner.get_by_text("going: running: epoch 3 of 10, validation .710").wait_for()
        rich_result(defence={"zebra": {"lam": 1.0}}).save(going)
        page.locator(".verdict", has_text="zebra").wait_for()
        fold = page.locator("#attacks details", has_text="zebra")
        fold.locator("summary").click()
        rich_result(defence={"walrus": {"lam": 1.0}}).save(tmp_path / "before")
        page.locator(".verdict", has_text="walrus").first.wait_for()
        page.locator("#attacks details[open]", has_text="zebra").wait_for()  # the page's last script opens it again
        assert page.locator("#attacks details", has_text="walrus").get_attribute("open") is None
        draw_all(page)
        assert banner.is_hidden()
    banner.get_by_text("no longer live").wait_for()
    context.close()
    assert broken == []
