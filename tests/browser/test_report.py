"""The report in a real browser: it renders, the slider moves, nothing is fetched, nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from streaming.history.tables import History
from streaming.report import write_report
from tests.streaming.driving import Driver
from tests.streaming.writing import write_batches

pytestmark = pytest.mark.browser

CHROMIUM = "/usr/bin/chromium"
SIZES = (12, 1000)
DESK: Final[ViewportSize] = {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def history(root: Path, brokers: int) -> History:
    """Brokers in six racks, a failure that is healed, loads, a rebalance that is proposed, with odd names in it."""
    driver = Driver('[policy]\napproval = ["rebalance"]\nsettle = "0s"\n')
    ids = range(1, brokers + 1)
    weighed = [{"topic": "orders", "partition": p, "size": 10**9 * (1 + p % 7)} for p in range(4 * brokers)]
    batches = [
        driver.racks({f"r{r}": [b for b in ids if b % 6 == r] for r in range(6)}),
        driver.batch(
            driver.event("topic_created", topic="orders", partitions=4 * brokers, replication_factor=3),
            driver.event("topic_created", topic="logs", partitions=brokers, replication_factor=2),
            minute=1,
        ),
        driver.batch(driver.event("broker_left", broker_id=3, reason="failed", minute=2), minute=2),
        driver.batch(minute=40),
        driver.batch(driver.event("broker_joined", broker_id=brokers + 1, rack="</script>r0", minute=41), minute=41),
        driver.batch(driver.event("load_observed", partitions=weighed, minute=41.5), minute=41.5),
        driver.batch(driver.event("rebalance_requested", event_id="<b>even</b>", minute=42), minute=42),
    ]
    write_batches(root, *batches)
    return History(str(root))


@pytest.fixture(scope="session", params=SIZES)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    folder = tmp_path_factory.mktemp(f"report-{request.param}")
    file = folder / "report.html"
    file.write_text(write_report(history(folder / "tables", request.param), "c"), encoding="utf-8")
    return request.param, file


@dataclass
class Opened:
    """A page, where its slider stood at first, and everything that it complained about or asked for since."""

    page: Page
    brokers: int
    shown: str = ""
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session", params=["light", "dark"])
def loaded(browser: Browser, report: tuple[int, Path], request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Loaded once for all tests: that takes ten times as long as what a test does with the page."""
    brokers, file = report
    page = browser.new_page(color_scheme=request.param)
    found = Opened(page, brokers)
    page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda asked: found.requests.append(asked.url))
    page.set_viewport_size(DESK)
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
    found.shown = page.locator("#slider").input_value()
    yield found
    page.close()


@pytest.fixture
def opened(loaded: Opened, report: tuple[int, Path]) -> Iterator[Opened]:
    """The page as a reader finds it: at a desk, its slider where it stood, the keyboard before everything."""
    page = loaded.page
    page.set_viewport_size(DESK)
    if page.locator("#slider").input_value() != loaded.shown:
        page.locator("#slider").fill(loaded.shown)
    page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    yield loaded
    assert loaded.complaints == []
    assert [url for url in loaded.requests if not url.startswith(("data:", "blob:"))] == [report[1].as_uri()]


def drawn(page: Page, chart: str) -> int:
    return page.locator(f"#{chart} .main-svg").count()


def test_it_renders_every_chart(opened: Opened) -> None:
    page = opened.page
    for chart in ("replicas", "leaders", "load-disk", "rack-chart", "matrix", "timeline", "then"):
        assert drawn(page, chart) > 0, chart
        assert page.locator(f"#{chart}").get_attribute("aria-label"), chart
    assert "rebalance requested by event <b>even</b>" in page.locator("section").first.inner_text()
    assert f"on {opened.brokers + 1} brokers" in str(page.locator("#replicas").get_attribute("aria-label"))
    assert page.locator("#brokers tbody tr").count() == opened.brokers + 1
    assert page.locator("#load-cpu").is_hidden(), "nobody observed any"
    assert f"Bytes on disk on {opened.brokers} brokers" in str(page.locator("#load-disk").get_attribute("aria-label"))
    header = page.locator("#moves thead th").all_text_contents()
    assert header[5] == "bytes copied"
    assert header[6].startswith("takes off broker ")
    rows = [row.locator("td").all_text_contents() for row in page.locator("#moves tbody tr").all()[:40]]
    assert {(row[4] == "preferred leader") is (row[5] == "0") for row in rows} == {True}, "what is copied has bytes"
    names = page.evaluate("JSON.parse(document.getElementById('data').textContent).brokers.map(b => b.rack)")
    assert "</script>r0" in names


def test_a_proposal_is_not_drawn_as_done(opened: Opened) -> None:
    page = opened.page
    assert page.locator("h1").inner_text() == "c version 7: rebalance (proposed)"
    for chart in ("replicas", "leaders", "load-disk", "rack-chart"):
        names = page.evaluate(f"document.getElementById('{chart}').data.map((trace) => trace.name)")
        assert names == ["before", "as proposed"], chart
    versions = page.evaluate("JSON.parse(document.getElementById('data').textContent).timeline.versions")
    assert [versions[-1][side] for side in ("low", "high")] == [versions[-2][side] for side in ("low", "high")]
    assert "replicas would move" in page.locator("#told").inner_text()


def test_it_begins_with_how_the_cluster_is(opened: Opened) -> None:
    lines = opened.page.locator("dl")
    said = dict(zip(lines.locator("dt").all_inner_texts(), lines.locator("dd").all_inner_texts(), strict=True))
    partitions = said.pop("Partitions")
    assert partitions.endswith(" not preferred")
    assert not partitions.startswith("0 under replicated"), "broker 3 is dead, and its heal is not carried out"
    assert said.pop("Carrying out").endswith(" partitions are not where they are planned (versions 4)")
    assert said == {
        "Newest version": "7, of 2026-01-01 00:42:00 UTC",
        "Planning": "not stopped",
        "Waits for approval": "version 7: rebalance requested by event <b>even</b>",
        "Brokers": f"{opened.brokers + 1}: broker 3 dead",
    }
    urgent = lines.locator("dd.urgent").all_inner_texts()
    assert len(urgent) == 4


def test_the_slider_goes_through_the_history_by_keyboard(opened: Opened) -> None:
    page = opened.page
    slider = page.locator("#slider")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("#told").inner_text().startswith("Version 1, 2026-01-01 00:00:00 UTC, membership: ")
    assert page.locator("#then").get_attribute("aria-label") == "after version 1: 0 brokers hold none replicas each"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#shown").inner_text() == "4"
    told = page.locator("#told").inner_text()
    assert "heal: grace of broker 3 over" in told
    assert slider.get_attribute("aria-valuetext") == told
    assert f": {opened.brokers - 1} brokers hold" in str(page.locator("#then").get_attribute("aria-label"))


def test_the_counts_at_the_end_are_those_of_the_layout(opened: Opened) -> None:
    page = opened.page
    page.locator("#slider").fill(str(page.locator("#slider").get_attribute("max")))
    shown = page.evaluate("document.getElementById('then').data[0].y.reduce((a, b) => a + b, 0)")
    assert shown == 4 * opened.brokers * 3 + opened.brokers * 2


def test_a_screen_reader_finds_its_way(opened: Opened) -> None:
    page = opened.page
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").inner_text() == page.title() == "c version 7: rebalance (proposed)"
    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert [page.locator("label[for=slider]").count(), page.locator("[aria-live=polite]").count()] == [1, 1]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the plan"
    assert page.locator("table caption").count() == page.locator("table").count() == 2


def test_on_a_phone_nothing_sticks_out(opened: Opened) -> None:
    page = opened.page
    page.set_viewport_size({"width": 375, "height": 740})
    page.wait_for_timeout(500)  # the charts follow the window
    assert page.evaluate("document.querySelector('#replicas .main-svg').getBoundingClientRect().width") <= 375
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_text_can_be_read_in_both_schemes(opened: Opened) -> None:
    """WCAG's contrast of text on its ground: at least 4.5."""
    contrast = opened.page.evaluate("""() => {
      const light = (colour) => {
        const parts = colour.match(/\\d+/g).map((v) => v / 255);
        const [r, g, b] = parts.map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const style = getComputedStyle(document.body);
      const [low, high] = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    }""")
    assert contrast >= 4.5
