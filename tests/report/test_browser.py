"""The page as a reader meets it: in Chromium, with nothing but the file."""

import csv
import io
import re

import pytest

from attcem.compare import comparison_tables
from attcem.report import write_report

from .chromium import NEEDS_CHROMIUM, PATIENCE, draw_all
from .made import rich_result

pytestmark = NEEDS_CHROMIUM
TICK = "getComputedStyle(document.querySelector('.trade .xtick text'))"
HOSTILE = 'a|b, "c" & 50%_</script><script>window.broken = 1</script>'


def results():
    data = {"name": "fashion", "seed": 0}
    runs = [rich_result(seed=seed, accuracy=0.88 + 0.01 * seed, data=data) for seed in range(2)]
    for sigma, accuracy, mse in ((0.2, 0.87, 0.012), (1.0, 0.8, 0.04)):
        runs += [
            rich_result(seed=s, defence={"noise": {"sigma": sigma}}, mse=mse, accuracy=accuracy, data=data)
            for s in (0, 1)
        ]
    for lam, accuracy, mse in ((1, 0.875, 0.02), (4, 0.79, 0.05)):
        defence = {"noise": {"sigma": 0.1}, "gated": {"lam": lam, "note": HOSTILE}}
        runs += [
            rich_result(seed=s, defence=defence, mse=mse, accuracy=accuracy, data=data, flags=(HOSTILE,))
            for s in (0, 1)
        ]
    return runs


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    runs = results()
    path = write_report(runs, tmp_path_factory.mktemp("report") / "report.html", comparison_tables(runs, draws=200))
    return path.resolve().as_uri()


@pytest.fixture
def visit(browser, address):
    """Open the page in a window of its own; whatever it complains of or asks the network for fails the test."""
    complaints, contexts = [], []

    def opened(width=1400, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if _outside(asked.url) else None)
        page.goto(address)
        return page

    def _outside(url):
        return not url.startswith(("data:", "blob:")) and url.partition("#")[0] != address

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_charts_are_drawn_with_points_and_error_bars(visit):
    page = visit()
    draw_all(page)
    trade = page.locator(".trade .plot")
    assert trade.locator(".scatterlayer .point").count() >= 5
    assert trade.locator(".errorbar").count() >= 5
    assert "mean image" in trade.locator(".annotation-text").all_text_contents()[0]
    assert page.locator("#training .plot .main-svg").count() > 0 and page.locator("#inside .hm").count() > 0
    assert page.evaluate("window.broken") is None and overflow(page) <= 0


@pytest.mark.slow
def test_another_measure_is_drawn_when_asked_for(visit):
    page = visit()
    draw_all(page)
    axis = page.locator(".trade .plot .xtitle")
    assert "MSE" in axis.text_content()
    page.get_by_role("radio", name="SSIM").first.focus()
    page.keyboard.press("Space")
    page.locator(".trade .plot .xtitle", has_text="SSIM").wait_for()


@pytest.mark.slow
def test_training_of_one_run_shows_its_own_charts(visit):
    page = visit()
    draw_all(page)
    pick, penalty = page.locator("#training select"), page.locator("#training figure", has_text="Gate means")
    pick.select_option("no defence, seed 0")
    penalty.wait_for(state="hidden")
    page.locator("#training .key").wait_for(state="hidden")
    pick.select_option(index=9)
    penalty.wait_for()
    assert penalty.locator(".shapelayer path").count() > 0, "the epochs without a penalty are shaded"


def rows(page):
    return page.locator(".gallery tbody tr:visible")


@pytest.mark.slow
def test_the_gallery_sorts_by_leak_and_picks_a_class(visit):
    page = visit()
    assert rows(page).count() == 9 and page.locator(".gallery .count").inner_text() == "9 pictures"
    button = page.locator(".gallery thead button").nth(1)
    for rising, state in ((True, "ascending"), (False, "descending")):
        button.focus()
        page.keyboard.press("Enter")
        page.locator(f".gallery thead th:nth-child(3)[aria-sort={state}]").wait_for()
        leaks = [
            float(cell.get_attribute("data-leak"))
            for cell in page.locator(".gallery tbody tr:visible td:nth-child(3)").all()
        ]
        assert leaks == sorted(leaks, reverse=not rising) and len(set(leaks)) > 3
    page.locator(".gallery select").select_option(label="class: class 3")
    page.locator(".gallery tbody tr", has_text="class 4").first.wait_for(state="hidden")
    shown = rows(page)
    assert shown.count() >= 1
    assert {row.locator("th span").inner_text() for row in shown.all()} == {"class 3"}


@pytest.fixture
def copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])

    def press(name):
        page.locator("#numbers").get_by_role("button", name=name).click()
        page.locator("#numbers").get_by_role("button", name="Copied").wait_for()
        return page.evaluate("navigator.clipboard.readText()"), page.locator("#numbers tbody tr").count()

    return press


@pytest.mark.slow
def test_a_table_is_copied_as_csv(copied):
    text, lines = copied("CSV")
    heading, *body = csv.reader(io.StringIO(text))
    assert len(body) == lines and {len(line) for line in body} == {len(heading)}
    assert heading[:3] == ["defence", "data backbone", "accuracy ↑ better"]
    assert body[0][0] == "no defence" and body[0][2] == "0.880"


def test_a_table_is_copied_as_markdown(copied):
    text, lines = copied("Markdown")
    table = text.splitlines()
    assert len(table) == lines + 2 and re.fullmatch(r"\|( --- \|)+", table[1])
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


@pytest.mark.slow
def test_a_table_is_copied_as_latex(copied):
    text, lines = copied("LaTeX")
    columns = re.match(r"\\begin\{tabular\}\{([lr]+)\}", text)[1]
    body = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len(body) == lines + 1 and text.endswith("\\end{tabular}")
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {len(columns) - 1}
    assert "$\\sigma$" in text and "$\\pm$" in text and not re.search(r"(?<!\\)[%_#]|[^\x00-\x7f]", text)


def formats(page, cell):
    """A table of this cell and another, as each of the buttons would copy it."""
    return page.evaluate(
        """(cell) => {
          const table = document.createElement('table'), row = table.insertRow();
          row.insertCell().textContent = cell;
          row.insertCell().textContent = 'next';
          return Object.fromEntries(Object.entries(FORMATS).map(([name, make]) => [name, make(read(table), table)]));
        }""",
        cell,
    )


def test_a_hostile_cell_stays_one_cell_in_every_format(visit):
    found = formats(visit(), HOSTILE)
    assert list(csv.reader(io.StringIO(found["csv"]))) == [[HOSTILE, "next"]]
    assert found["markdown"].splitlines()[0].count("|") == 3 and "<" not in found["markdown"]
    assert "\\& 50\\%\\_$<$/script$>$" in found["latex"]


@pytest.mark.slow
def test_a_copied_cell_is_no_formula_no_link_and_no_distance(visit):
    page = visit()
    for cell in ("=1+1", "+cmd()", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t=1"):
        assert next(csv.reader(io.StringIO(formats(page, cell)["csv"]))) == ["'" + cell.strip(), "next"]
    for number in ("-0.5", "+0.00500", "-1.2e-05", "-0.5 ± 0.1"):
        assert formats(page, number)["csv"] == f"{number},next"
    found = formats(page, "[a](javascript:b)\n|*c*")
    assert found["markdown"].splitlines()[0] == r"| \[a](javascript:b) &#124;\*c\* | next |"
    assert found["latex"].splitlines()[2] == r"{[}a](javascript:b) \textbar{}*c* & next \\"


@pytest.mark.slow
def test_a_number_leads_to_its_configuration(visit):
    page = visit()
    page.locator("#numbers tbody tr").nth(3).locator("th a").click()
    opened = page.locator("#runs details[open]")
    opened.wait_for()
    assert opened.count() == 1 and opened.locator("pre").first.is_visible()
    assert opened.get_attribute("id") == page.evaluate("location.hash").lstrip("#")


@pytest.mark.slow
def test_the_first_key_skips_to_the_verdict(visit):
    page = visit()
    page.keyboard.press("Tab")
    page.locator(".skip:focus").wait_for()
    page.keyboard.press("Enter")
    page.locator("#main:focus").wait_for()
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.slow
def test_every_chart_has_words_and_a_table_for_those_who_cannot_see_it(visit):
    page = visit()
    for figure in page.locator("figure.chart").all():
        plot = figure.locator(".plot")
        assert plot.get_attribute("role") == "img" and len(plot.get_attribute("aria-label")) > 20
        assert figure.locator(".behind tbody tr").count() > 0
    levels = [int(tag[1]) for tag in page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => h.tagName)")]
    assert levels[0] == 1 and levels.count(1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 768])
def test_nothing_overflows_on_any_screen(visit, width):
    page = visit(width)
    draw_all(page)
    assert overflow(page) <= 0


@pytest.mark.slow
def test_dark_charts_are_drawn_in_the_dark_theme(visit):
    page = visit(color_scheme="dark")
    draw_all(page)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    text = page.evaluate(f"{TICK}.fill")
    assert max(map(int, re.findall(r"\d+", paper))) < 60 and min(map(int, re.findall(r"\d+", text)[:3])) > 120
    page.emulate_media(color_scheme="light")
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(page.locator(".trade .xtick text").first).to_have_css("fill", "rgb(91, 94, 101)", timeout=PATIENCE)


@pytest.mark.slow
def test_it_prints_with_its_charts_as_wide_as_the_paper(visit):
    page = visit(color_scheme="dark")
    draw_all(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 900})
    assert page.locator(".contents").is_hidden() and page.locator(".flagged li").first.is_visible()
    assert (
        page.evaluate(
            "Math.max(...[...document.querySelectorAll('.plot .main-svg')].map(s => s.getBoundingClientRect().right))"
        )
        < 700
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 250)"
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.slow
def test_without_scripts_the_words_and_the_tables_remain(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address, timeout=PATIENCE)
    assert "best of 2 attacks" in page.locator(".verdict").inner_text()
    assert page.locator(".behind tbody tr").count() > 10 and page.locator(".gallery tbody tr:visible").count() > 9
    context.close()
