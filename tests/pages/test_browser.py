"""Pages in a real browser: tables sort, the theme changes, a phone is wide enough, paper works, nothing leaves.

Screenshots are left in `.cache/pages/`, for people to look at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.render.plan_page import plan_page
from tests.bed.browser import Browser, Page, browser, missing_browser
from tests.bed.plans import plan_from
from tests.command import ROOT
from tests.pages.test_page import page_of, poisoned_cluster
from tests.validation import records

SHOTS = ROOT / ".cache" / "pages"
READABLE = Path(__file__).with_name("readable.js").read_text(encoding="utf-8")
PAGES = ("report", "plan", "poisoned")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if reason := missing_browser():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages, made once: a sick cluster with history, a plan, and records full of markup."""
    folder = tmp_path_factory.mktemp("pages")
    runs = folder / "runs"
    for place in range(4):
        records.write(runs, *records.proof(100 + 10 * place, 12, sick=place == 3, slow=0.97 if place == 3 else 1))
    gates = [
        ("smoke", "pass", "12 of 12"),
        ("pairs", "fail", "gpu-7 is slow"),
        ("training", "no_baseline", "no job yet"),
    ]
    records.write_proof(runs, records.proved(1, *gates))
    (runs / "run.json").write_text('{"format": 1,')
    plan = plan_from(
        "storage: {mounts: [{type: amlfs, path: /data, tier: 250, size_tib: 16}]}\n"
        "slurm: {partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4}]}"
    )
    pages = {
        "report": page_of(runs), "plan": plan_page(plan), "poisoned": page_of(poisoned_cluster(folder / "poisoned")),
    }  # fmt: skip
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(scope="module")
def tabs(chromium: Browser, files: dict[str, Path]) -> dict[str, Page]:
    """Each page open in a tab of its own: to load it costs as much as all that is tried on it."""
    found = {}
    for name, file in files.items():
        page = found[name] = chromium.page()
        page.size(1280, 900)
        page.media()
        page.open(file)
    return found


@pytest.fixture
def opened(request: pytest.FixtureRequest, tabs: dict[str, Page]) -> Page:
    """A page at a desk in daylight, whatever the test before did with it."""
    page = tabs[getattr(request, "param", "report")]
    page.front()
    page.size(1280, 900)
    page.media()
    page.script("delete document.documentElement.dataset.theme")
    return page


def shot(page: Page, name: str) -> None:
    """What is seen; the whole page with CYCLEFORGE_PAGES=whole, which takes seconds."""
    page.picture(SHOTS / f"{name}.png", whole=os.environ.get("CYCLEFORGE_PAGES") == "whole")


def wide(page: Page) -> tuple[int, int]:
    """How wide the content is, and how wide the window."""
    found = page.script("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    return found[0], found[1]


@pytest.mark.parametrize("opened", PAGES, indirect=True)
def test_a_page_loads_nothing_and_complains_of_nothing(opened: Page) -> None:
    opened.script("new Promise(done => setTimeout(done, 50))")
    assert opened.messages == []
    assert [re.sub(r".*/", "", address) for address in opened.requests] in ([f"{name}.html"] for name in PAGES)
    assert opened.script("performance.getEntriesByType('resource').length") == 0
    assert opened.script("typeof window.hacked") == "undefined"
    assert opened.script("document.images.length") == 0


def test_the_policy_of_a_page_stops_what_it_did_not_bring(chromium: Browser, files: dict[str, Path]) -> None:
    """The proof that the test above would notice."""
    opened = chromium.page()
    opened.open(files["plan"])
    opened.script(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        " document.body.append(s);"
        " const i = document.createElement('img'); i.src = 'https://example.com/x.png'; document.body.append(i) })()"
    )
    opened.script("new Promise(done => setTimeout(done, 50))")
    assert opened.script("typeof window.hacked") == "undefined"
    assert len([message for message in opened.messages if "Content Security Policy" in message]) == 2


def test_a_click_sorts_a_table_and_another_one_turns_it_round(opened: Page) -> None:
    names = "[...document.querySelectorAll('#pairs tbody tr')].map(row => row.cells[0].textContent)"
    values = "[...document.querySelectorAll('#pairs tbody tr')].map(row => Number(row.cells[1].dataset.sort))"
    head = "#pairs th:nth-child(2)"
    before = opened.script(names)
    opened.click(f"{head} button")
    assert opened.script(values) == sorted(opened.script(values))
    assert opened.script(f"document.querySelector('{head}').getAttribute('aria-sort')") == "ascending"
    opened.click(f"{head} button")
    assert opened.script(values) == sorted(opened.script(values), reverse=True)
    assert opened.script(f"document.querySelector('{head}').getAttribute('aria-sort')") == "descending"
    opened.click("#pairs th:nth-child(1) button")
    assert opened.script(names) == sorted(before, key=lambda name: int(name.removeprefix("gpu-")))
    assert opened.script(f"document.querySelector('{head}').hasAttribute('aria-sort')") is False


def test_what_has_no_value_stays_at_the_end(opened: Page) -> None:
    column = "[...document.querySelectorAll('#storage tbody tr')].map(row => row.cells[4].dataset.sort)"
    for _ in range(2):
        opened.click("#storage th:nth-child(5) button")
        assert opened.script(column)[-1] == ""
        assert "" not in opened.script(column)[:-1]


def test_the_theme_follows_the_reader(opened: Page) -> None:
    color = "getComputedStyle(document.body).backgroundColor"
    light = opened.script(color)
    opened.click(".theme")
    dark = opened.script(color)
    assert (light, dark) == ("rgb(245, 246, 248)", "rgb(14, 19, 24)")
    assert opened.script("document.querySelector('.theme').textContent") == "Light"
    opened.click(".theme")
    assert opened.script(color) == light


@pytest.mark.parametrize("opened", ["report", "plan"], indirect=True)
def test_the_theme_is_that_of_the_system_at_first(opened: Page, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["opened"]
    shot(opened, name)
    opened.media(scheme="dark")
    assert opened.script("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 24)"
    shot(opened, f"{name}-dark")


@pytest.mark.parametrize(
    ("opened", "width"),
    [("report", 390), ("report", 768), ("plan", 390), ("plan", 768), ("poisoned", 320)],
    indirect=["opened"],
)
def test_a_phone_does_not_scroll_sideways(width: int, opened: Page, request: pytest.FixtureRequest) -> None:
    opened.size(width, 800, phone=True)
    content, window = wide(opened)
    assert content <= window == width
    if width == 390:
        shot(opened, f"{request.node.callspec.params['opened']}-phone")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("kind", "width", "phone"),
    [
        pytest.param("screen", 390, True, id="phone"),
        pytest.param("screen", 1280, False, id="desk"),
        # A4 across without its margins, at the 96 dots an inch of CSS.
        pytest.param("print", 1032, False, id="paper"),
    ],
)
@pytest.mark.parametrize("opened", ["report", "plan"], indirect=True)
def test_everything_can_be_read(opened: Page, kind: str, width: int, phone: bool, scheme: str) -> None:
    """Contrast, size, nothing cut off, whole words on paper, no head of a column without words."""
    opened.size(width, 800, phone=phone)
    opened.media(kind=kind, scheme=scheme)
    assert opened.script(READABLE) == []


def test_what_cannot_be_read_is_found(opened: Page) -> None:
    """The proof that the test above would notice."""
    opened.size(1032, 800)
    opened.media(kind="print")
    opened.script(
        "(() => { const bad = document.createElement('div'); bad.id = 'bad'; bad.innerHTML ="
        " '<p>pale</p><p>tiny</p><p>far</p><section id=none><table><tr><th></th></tr><tr><td>twolines</td></tr></table>"
        "</section>'; const set = (place, style) => Object.assign(bad.querySelectorAll('p, td')[place].style, style);"
        " set(0, {color: '#999'}); set(1, {fontSize: '6px'}); set(2, {marginLeft: '1400px'});"
        " set(3, {display: 'block', width: '20px', minWidth: 0}); document.querySelector('main').append(bad) })()"
    )
    complaints = opened.script(READABLE)
    opened.script("document.getElementById('bad').remove()")
    assert {each.partition(":")[0] for each in complaints} == {
        "contrast", "small", "beyond the edge", "wider than the window", "no title", "a word on two lines",
    }  # fmt: skip


def test_paper_is_light_and_has_no_buttons(opened: Page) -> None:
    opened.click(".theme")  # dark on the screen
    opened.media(kind="print")
    assert opened.script("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in ("nav", ".theme"):
        assert opened.script(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none"
    ink = opened.script("getComputedStyle(document.querySelector('h2')).color")
    assert ink == "rgb(23, 33, 43)"
    opened.size(1032, 700)  # A4 across without its margins, at the 96 dots an inch of CSS
    content, window = wide(opened)
    assert content <= window
    document = opened.pdf()
    assert document.startswith(b"%PDF")
    (SHOTS / "report.pdf").write_bytes(document)


def tip(page: Page) -> str:
    return str(page.script("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"))


def test_the_pointer_tells_the_pair_below_it(opened: Page) -> None:
    opened.hover("svg[data-heat]", 0.5, 0.3)
    found = re.fullmatch(r"(gpu-\d+) – (gpu-\d+)\n([\d.]+) GB/s", tip(opened))
    assert found, tip(opened)
    assert found[1] != found[2]
    measured = {
        tuple(each["nodes"]): each["points"][0][1] for each in records.pairs(132, records.names(12), "gpu-7")["series"]
    }
    assert float(found[3]) == measured.get((found[1], found[2]), measured.get((found[2], found[1])))
    opened.hover("h1")
    assert tip(opened) == ""


def test_a_curve_is_beside_its_floor_and_what_is_published(opened: Page) -> None:
    texts = "[...document.querySelectorAll('#collectives figure:first-child :is(svg text, .legend li)')]"
    found = opened.script(f"{texts}.map(text => text.textContent)")
    assert {"floor 384 GB/s", "expected 456 GB/s", "16 GiB", "run 133", "the 3 runs before", "published"} <= set(found)


def test_the_pointer_tells_the_value_of_a_point(opened: Page) -> None:
    opened.hover("#collectives svg circle:last-of-type")
    assert re.fullmatch(r"run 133\n16 GiB: [\d.]+ GB/s", tip(opened)), tip(opened)


def test_the_outliers_have_names_and_dots(opened: Page) -> None:
    rows = "[...document.querySelectorAll('#spread tbody tr')]"
    named = dict(opened.script(f"{rows}.map(row => [row.cells[0].textContent, row.cells[5].textContent])"))
    assert named["hbm read"].startswith("gpu-3: ")
    assert named["gemm fp16"].startswith("gpu-11: ")
    assert named["peer copy"] == ""
    opened.hover("#spread tbody tr:nth-child(4) circle.tone-fail")
    assert tip(opened).startswith("gpu-3: 2")


def test_every_part_can_be_reached_from_the_top(opened: Page) -> None:
    links = opened.script("[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href'))")
    assert links == opened.script("[...document.querySelectorAll('section[id]')].map(s => '#' + s.id)")
    assert links == ["#nodes", "#proof", "#jobs", "#collectives", "#pairs", "#spread", "#storage", "#time", "#history",
                     "#comparison", "#checks", "#surroundings", "#files"]  # fmt: skip


@pytest.mark.parametrize("opened", ["plan"], indirect=True)
def test_nothing_is_drawn_outside_its_box(opened: Page) -> None:
    """Texts of the picture of a plan end before the box that they are in."""
    outside = opened.script(
        "(() => { const svg = document.querySelector('svg.plan');"
        " const boxes = [...svg.querySelectorAll('rect.zone:not(.outer)')].map(b => b.getBoundingClientRect());"
        " return [...svg.querySelectorAll('text')].filter(text => { const t = text.getBoundingClientRect();"
        " const box = boxes.find(b => t.x >= b.x && t.x <= b.right && t.y >= b.y && t.y <= b.bottom);"
        " return box && t.right > box.right }).map(text => text.textContent) })()"
    )
    assert outside == []
