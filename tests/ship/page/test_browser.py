"""The page as a visitor meets it."""

import base64
import json
import re
import time
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from attcem.ship import read_artifact
from attcem.ship.graphs import open_session
from attcem.ship.page import read_page
from attcem.ship.randomness import draw
from tests.report.chromium import CHROMIUM, FLAGS, NEEDS_CHROMIUM, PATIENCE
from tests.ship.page.made import SENDS, server

pytestmark = NEEDS_CHROMIUM
FOCUSED = "(({ id, ariaLabel, textContent }) => id || ariaLabel || textContent)(document.activeElement)"
CAMERA = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
STREAM = """
crypto.getRandomValues = (array) => {
  window.drawn ??= 0;
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let i = 0; i < bytes.length; i++) bytes[i] = (Math.imul(window.drawn++ + 1, 2654435761) >>> 13) & 255;
  return array;
};
"""
"""Bytes that anyone can predict, in the place of the browser's generator."""


def predictable():
    """The same bytes in Python."""
    drawn = 0

    def source(count):
        nonlocal drawn
        numbers = (np.arange(drawn + 1, drawn + 1 + count, dtype=np.uint64) * 2654435761) & 0xFFFFFFFF
        drawn += count
        return ((numbers >> 13) & 255).astype(np.uint8).tobytes()

    return source


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install 'attcem[dev]'")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS + CAMERA, timeout=PATIENCE)
        yield running
        running.close()


@pytest.fixture(scope="module")
def url(paged):
    with server(paged[0]) as address:
        yield address


class Visit:
    """A page, every request that it tried, and what it complained of."""

    def __init__(self, context, url):
        self.page, self.url, self.tried, self.sent, self.broken = context.new_page(), url, [], [], []
        self.page.on("request", self.note)
        self.page.on("pageerror", lambda error: self.broken.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.broken.append(said.text))
        context.route(lambda address: not address.startswith(url), lambda route: route.abort())

    def note(self, request):
        self.tried.append(request.url)
        if request.method == "POST":
            self.sent.append(request.post_data_buffer)

    def open(self, query=""):
        self.page.goto(self.url + query)
        self.page.locator("main[aria-busy=false]").wait_for()
        self.settle(1)

    def settle(self, runs):
        """Until so many runs through both networks are over."""
        end = time.monotonic() + PATIENCE / 1000
        while self.runs() < runs:  # waiting inside the page would need what its policy forbids
            assert time.monotonic() < end
            self.page.wait_for_timeout(20)

    def runs(self):
        return int(self.page.evaluate("document.body.dataset.runs ?? 0"))

    def after(self, act):
        """Do something, and wait for what it leads to."""
        before = self.runs()
        act()
        self.settle(before + 1)
        self.page.wait_for_timeout(100)

    def says(self, text):
        """Wait until the defended lane says this of its message."""
        self.page.locator(".lane.defended .said", has_text=text).wait_for()

    def lane(self, selector, name="defended"):
        return self.page.locator(f".lane.{name} {selector}")

    def pixels(self, selector, name="defended"):
        return self.lane(selector, name).evaluate(
            "c => Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)"
        )


@contextmanager
def visiting(browser, url, query="", script="", **settings):
    context = browser.new_context(**({"locale": "en-GB"} | settings))
    context.set_default_timeout(PATIENCE)
    if script:
        context.add_init_script(script)
    visit = Visit(context, url)
    visit.open(query)
    yield visit
    context.close()
    assert visit.broken == []


def tensor(body):
    """The bytes behind a request's JSON."""
    head, _ = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    return body[-head["inputs"][0]["parameters"]["binary_data_size"] :]


@pytest.mark.slow
def test_an_example_is_sent_and_answered_and_nothing_comes_from_elsewhere(browser, url, paged):
    page = read_page(paged[0], read_artifact(paged[0]))
    with visiting(browser, url) as visit:
        visit.after(lambda: visit.page.locator("#examples button").nth(1).click())
        assert all(address.startswith(url) for address in visit.tried)
        body = visit.sent[-1]
        assert visit.lane(".big").inner_text() == f"{len(tensor(body))} bytes"
        assert f"request of {len(body)} bytes" in visit.lane(".said").inner_text()
        logits = open_session(paged[0] / "cloud.onnx").run(None, {"sent": np.frombuffer(tensor(body), np.uint8)[None]})[
            0
        ][0]
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert visit.lane(".label").inner_text() == page.classes[logits.argmax()]
        assert visit.lane(".share").first.inner_text() == f"{round(100 * shares.max())} %"
        colours = np.array(visit.pixels(".wire canvas")).reshape(-1, 4)[: len(tensor(body)), 0].astype(float)
        order = np.argsort(np.frombuffer(tensor(body), np.uint8), kind="stable")
        assert (np.diff(colours[order]) <= 0).all() and np.ptp(colours) > 0  # what is drawn is what was sent
        assert "stays here" in visit.lane(".said", "undefended").inner_text()
        assert len(visit.sent) == 2  # the first example when the page opened, and this one; never the twin's


@pytest.mark.slow
def test_the_slider_changes_what_the_attacker_sees_and_less_noise_is_never_sent(browser, url, paged):
    page = read_page(paged[0], read_artifact(paged[0]))
    own = page.defended.own
    with visiting(browser, url) as visit:
        slider, sent = visit.page.get_by_role("slider"), len(visit.sent)
        assert slider.input_value() == str(own) and slider.get_attribute("aria-valuetext") == "σ = 0.2, as audited"
        seen = [visit.pixels(".attacker canvas")]
        for place in (0, 1):
            visit.after(lambda place=place: slider.fill(str(place)))
            visit.says("less noise than audited: not sent")
            seen.append(visit.pixels(".attacker canvas"))
        assert len(visit.sent) == sent and len({str(each) for each in seen}) == 3
        clean = visit.pixels(".wire canvas")
        visit.after(lambda: slider.fill("0"))
        assert visit.pixels(".wire canvas") != clean
        visit.after(lambda: slider.fill(str(own + 2)))
        visit.says("request of")
        assert len(visit.sent) == sent + 1
        assert visit.page.locator("#trade circle").count() == 2 * len(page.defended.stops)


@pytest.mark.slow
def test_two_messages_of_one_picture_differ_and_there_are_only_so_many(browser, url):
    with visiting(browser, url) as visit:
        for _ in range(SENDS + 2):
            visit.after(lambda: visit.page.get_by_role("button", name="Send again").click())
        assert len(visit.sent) == SENDS and len({tensor(body) for body in visit.sent}) == SENDS
        assert f"sent {SENDS} times, as often as audited" in visit.lane(".said").inner_text()
        visit.after(lambda: visit.page.locator("#examples button").nth(2).click())
        assert len(visit.sent) == SENDS + 1


@pytest.mark.slow
def test_noise_comes_from_the_browsers_generator_and_is_what_python_makes_of_the_same_bytes(browser, url, paged):
    folder, _ = paged
    artifact = read_artifact(folder)
    first = read_page(folder, artifact).examples[0]
    image = np.frombuffer(base64.b64decode(first.pixels), np.uint8).reshape(1, 1, 28, 28).astype(np.float32) / 255
    with visiting(browser, url, script=STREAM) as visit:
        (body,) = visit.sent
    source = predictable()
    noise = {each.name: draw(each.distribution, (1, *each.shape), source) for each in artifact.randomness}
    wanted = open_session(folder / "device.onnx").run(None, {"image": image} | noise)[0]
    apart = np.abs(np.frombuffer(tensor(body), np.uint8).astype(int) - wanted.ravel())
    assert apart.max() <= 1 and (apart > 0).mean() < 0.2  # a value between two of the grid may be rounded otherwise


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "laplace", "uniform"])
def test_the_laws_are_pythons_and_have_the_declared_distribution(law, browser, url):
    drawing = f"async (n) => Array.from((await import('/page/randomness.js')).draw('{law}', n))"
    with visiting(browser, url) as visit:
        free = np.array(visit.page.evaluate(drawing, 50_001))
        visit.page.evaluate(f"() => {{ window.drawn = 0; {STREAM} }}")
        bound = np.array(visit.page.evaluate(drawing, 10_001), np.float32)
        visit.page.evaluate("delete crypto.getRandomValues")
    assert stats.kstest(free, {"normal": "norm", "laplace": "laplace", "uniform": "uniform"}[law]).pvalue > 1e-6
    np.testing.assert_allclose(bound, draw(law, (10_001,), chunked(predictable())), rtol=3e-7, atol=1e-7)


def chunked(source):
    """A browser's generator gives 65,536 bytes at a time: the same stream."""
    return lambda count: b"".join(source(min(65_536, count - start)) for start in range(0, count, 65_536))


@pytest.mark.slow
def test_the_keyboard_alone_is_enough(browser, url):
    with visiting(browser, url) as visit:
        page, reached = visit.page, []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(FOCUSED))
            if reached[-1] == "sigma":
                break
        assert reached[0] == "Skip to what crosses the wire" and {"English", "中文", "file", "camera"} <= set(reached)
        value = int(page.get_by_role("slider").input_value())
        visit.after(lambda: page.keyboard.press("ArrowRight"))
        assert int(page.get_by_role("slider").input_value()) == value + 1
        page.locator("#examples button").first.focus()
        page.keyboard.press("Tab")
        sent = len(visit.sent)
        visit.after(lambda: page.keyboard.press("Enter"))
        assert len(visit.sent) == sent + 1 and page.locator("#examples [aria-pressed=true]").count() == 1


@pytest.mark.slow
def test_a_screen_reader_is_told_everything(browser, url):
    with visiting(browser, url) as visit:
        page = visit.page
        assert (
            page.get_by_role("slider", name="Noise").count() == 1 and page.get_by_role("heading", level=1).count() == 1
        )
        unnamed = "e => !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())"
        for role in ("button", "img", "slider", "meter"):
            found = page.get_by_role(role).all()
            assert found and not any(each.evaluate(unnamed) for each in found), role
        said = page.get_by_role("status")
        assert re.search(
            r"With the defence: .+ from the server\. \d+ bytes, request.*squared error is 0\.\d+;", said.inner_text()
        )
        assert page.locator("#numbers th[scope=row]").count() == 8
        levels = page.evaluate("Array.from(document.querySelectorAll('h1,h2,h3'), e => Number(e.tagName[1]))")
        assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen_in_both_languages(width, scheme, browser, url):
    with visiting(browser, url, "?lang=zh-CN", viewport={"width": width, "height": 800}, color_scheme=scheme) as visit:
        page = visit.page
        assert page.evaluate("document.documentElement.lang") == "zh-CN" and page.title() == "云端看到了什么？"
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(overflow) == 0
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper))) < 200) == (scheme == "dark")
        page.get_by_role("button", name="English").click()
        assert page.title() == "What does the cloud see?" and page.evaluate(overflow) == 0
        assert "lang=en" in page.url and "With the defence" in page.get_by_role("status").inner_text()


@pytest.mark.slow
def test_a_file_is_read_as_the_device_takes_it_chosen_or_dropped(browser, url, tmp_path):
    grey = np.random.default_rng(0).integers(0, 90, (28, 28), np.uint8)
    Image.fromarray(grey).save(tmp_path / "mine.png")
    (tmp_path / "words.txt").write_text("no picture")
    with visiting(browser, url) as visit:
        visit.after(lambda: visit.page.locator("#file").set_input_files(tmp_path / "mine.png"))
        shown = np.array(visit.pixels(".device canvas")).reshape(28, 28, 4)[:, :, 0]
        np.testing.assert_array_equal(shown, grey)
        assert visit.page.locator("#picture").get_attribute("aria-label") == "Your own picture" and len(visit.sent) == 2
        visit.after(lambda: visit.page.get_by_label("Swap light and dark").check())
        assert np.array_equal(np.array(visit.pixels(".device canvas")).reshape(28, 28, 4)[:, :, 0], 255 - grey)
        visit.page.locator("#file").set_input_files(tmp_path / "words.txt")
        visit.page.get_by_text("words.txt cannot be read as a picture").wait_for()
        content = base64.b64encode((tmp_path / "mine.png").read_bytes()).decode()
        dropping = """(content) => {
          const transfer = new DataTransfer();
          const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
          transfer.items.add(new File([bytes], "mine.png", { type: "image/png" }));
          const settings = { dataTransfer: transfer, bubbles: true, cancelable: true };
          document.body.dispatchEvent(new DragEvent("drop", settings));
        }"""
        visit.after(lambda: visit.page.evaluate(dropping, content))
        assert visit.page.get_by_role("alert").is_hidden()


@pytest.mark.slow
def test_the_camera_is_rehearsed_and_only_the_picture_that_is_taken_is_sent(browser, url):
    with visiting(browser, url, permissions=["camera"]) as visit:
        page, sent = visit.page, len(visit.sent)
        visit.after(lambda: page.get_by_role("button", name="Use the camera").click())
        visit.settle(visit.runs() + 2)
        assert "not sent" in visit.lane(".said").inner_text() and len(visit.sent) == sent
        visit.after(lambda: page.get_by_role("button", name="Take the picture").click())
        visit.says("request of")
        assert len(visit.sent) == sent + 1 and page.locator("#video").is_hidden()


@pytest.mark.slow
def test_a_server_with_keys_is_asked_with_the_visitors(browser, paged):
    key = "0123456789abcdef"
    with server(paged[0], keys=key) as url, visiting(browser, url) as visit:
        assert not visit.sent and "a key is needed" in visit.lane(".said").inner_text()
        visit.page.get_by_label("This server asks for a key").fill(key)
        visit.after(lambda: visit.page.get_by_role("button", name="Use it").click())
        visit.says("request of")
        assert len(visit.sent) == 1 and visit.page.locator("#keys").is_hidden()
