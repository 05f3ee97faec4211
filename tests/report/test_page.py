"""The page in a real browser: texts stay texts, tables sort, variations show, and nothing is fetched."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from robust_jax.report import write_report
from tests.report.made_up_results import (
    make_answers,
    make_examples,
    make_measure_results,
    make_search_results,
    without_numbers,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>document.title = 'taken'</script>",
    "<!-- <script>",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "</p></article><iframe srcdoc='x'></iframe>",
    "a lone \ud835 surrogate and \u2028 a separator",
)


def attacked() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Results and examples with an attack in every text that comes from outside."""
    results, examples = make_search_results(30), make_examples(3, 14)
    attack = "\n".join(ATTACKS)
    results["model"] = results["suite"] = results["settings"]["prompt"] = attack
    results["templates"][0]["note"] = attack
    results["auc"][ATTACKS[0]] = results["auc"]["MD_H"]
    results["counts"][ATTACKS[1]] = {"ok": 1}
    first = examples[0]["variations"][0]
    first["extracted"] = ATTACKS[1]
    for attempt in (first, first["reference"], examples[0]["base"]):
        attempt["question"] += attack
        attempt["response"] += attack
    return results, examples


ANSWERS = make_answers(3, 400)


def browse(page: Path, folder: Path, *more: str) -> str:
    """The page's DOM after its script ran."""
    quiet = "disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync"
    options = [f"--{name}" for name in ("headless", "no-sandbox", *quiet.split(), "dump-dom")]
    command = [str(CHROMIUM), *options, *more, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()


def tampered(source: Path, target: Path, script: str) -> Path:
    """A copy without its security policy that runs a script at its end."""
    text, removed = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source.read_text(encoding="utf-8"))
    assert removed == 1
    target.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return target


class Elements(HTMLParser):
    """Counts tags and collects what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = ("src", "href", "xlink:href", "srcset", "action", "data", "poster")
        self.references += [value or "" for name, value in attrs if name in names and tag != "a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attacked")
    write_report(folder, *attacked(), ANSWERS)
    return folder


@pytest.fixture(scope="module")
def dom(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return browse(folder / "report.html", tmp_path_factory.mktemp("browser"))


ACTIONS = """
const cells = (row) => [...row.cells].map((cell) => cell.textContent);
const shown = (id) => [...document.querySelectorAll(`#${id} tbody tr`)].map(cells);
const header = (title) => [...document.querySelectorAll("#templates-table th")].find((h) => h.textContent === title);
const log = {requests: performance.getEntriesByType("resource").length, asGiven: shown("templates-table")};
header("Error under search").firstChild.click();
log.falling = shown("templates-table");
log.sort = header("Error under search").getAttribute("aria-sort");
header("Error under search").firstChild.click();
log.rising = shown("templates-table");
document.querySelectorAll("#templates-table .pager button")[1].click();
log.second = shown("templates-table");
document.getElementById("next-template").click();
document.querySelectorAll("#variations-table tbody tr")[4].click();
log.chosen = document.getElementById("chosen-template").value;
log.variation = [...document.querySelectorAll("#variation .text")].map((text) => text.textContent);
const shownIn = (id) => [...document.querySelectorAll(`#${id} tbody tr`)].map(cells);
log.slots = shownIn("slots-table");
log.values = shownIn("values-table");
showAnswers();
log.answers = shownIn("answers-table");
const filter = document.getElementById("answers-filter");
filter.value = "0001 mira wrong";
filter.oninput();
log.filtered = shownIn("answers-table");
log.range = document.querySelector("#answers-table .pager span").textContent;
[...document.querySelectorAll("#answers-table th")].find((h) => h.textContent === "Difficulty").firstChild.click();
log.hardest = shownIn("answers-table");
log.title = document.title;
const out = document.createElement("pre");
out.id = "log";
out.textContent = JSON.stringify(log);
document.body.append(out);
"""


@pytest.fixture(scope="module")
def log(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a reader's clicks do to the page, and what attacks do to it without its security policy."""
    browser = tmp_path_factory.mktemp("clicks")
    dom = browse(tampered(folder / "report.html", browser / "copy.html", ACTIONS), browser)
    found = re.search(r'<pre id="log">(.*?)</pre>', dom, re.DOTALL)
    assert found
    return json.loads(html.unescape(found[1]))


def test_the_source_holds_one_script_that_runs(folder: Path) -> None:
    source = (folder / "report.html").read_text(encoding="utf-8")
    opened = re.findall(r"<script[^>]*>", source)
    assert opened.count("<script>") == 1
    assert all(re.fullmatch(r'<script( type="application/json" id="[a-z0-9-]+")?>', tag) for tag in opened)
    assert source.count("</script>") == len(opened) == 1 + 1 + 1 + 3
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', source, re.DOTALL):
        assert "<" not in block
        json.loads(block)


def test_nothing_comes_from_outside(folder: Path) -> None:
    source = (folder / "report.html").read_text(encoding="utf-8")
    assert all(reference.startswith("#") for reference in Elements(source).references)
    assert not re.search(r"@import|url\((?!#)", source)
    assert re.search(r"""Content-Security-Policy" content="default-src 'none'""", source)


@needs_browser
def test_attacks_appear_as_text(dom: str) -> None:
    elements = Elements(dom)
    assert not {"img", "iframe"} & set(elements.tags)
    assert elements.tags.count("script") == 1 + 1 + 1 + 3
    article = re.search(r'<article id="variation".*?</article>', dom, re.DOTALL)
    assert article
    for attack in ATTACKS[:5]:
        assert html.escape(attack, quote=False) in article[0]


@needs_browser
def test_the_title_stays_without_the_policy_too(log: dict[str, Any]) -> None:
    assert log["title"] != "taken" and "<script>alert(1)</script>" in log["title"]


@needs_browser
def test_the_browser_of_variations_renders(dom: str) -> None:
    table = re.search(r'<div class="paged" id="variations-table">(.*?)</tbody>', dom, re.DOTALL)
    assert table and table[1].count("<tr") == 1 + 10
    article = dom[dom.index('<article id="variation"') : dom.index("</article>", dom.index('<article id="variation"'))]
    for expected in ("This variation", "Nearest right reply", "Base problem", "<ins>", "<del>", "Variation 1 of 14"):
        assert expected in article


@needs_browser
def test_a_page_makes_no_request(log: dict[str, Any]) -> None:
    assert log["requests"] == 0


@needs_browser
def test_tables_sort_and_page(log: dict[str, Any]) -> None:
    results, _ = attacked()
    errors = {row["id"]: row["beam_error"] for row in results["templates"]}
    assert [row[0] for row in log["asGiven"]] == [row["id"] for row in results["templates"]][:25]
    rising = sorted(errors, key=lambda name: errors[name])
    assert [row[0] for row in log["falling"]] == rising[::-1][:25]
    assert log["sort"] == "descending"
    assert [row[0] for row in log["rising"]] == rising[:25]
    assert [row[0] for row in log["second"]] == rising[25:]
    assert all(row[3] == f"{100 * errors[row[0]]:.1f}%" for row in log["falling"])


@needs_browser
def test_a_click_shows_the_variation(log: dict[str, Any]) -> None:
    _, examples = attacked()
    chosen = examples[1]["variations"][4]
    assert log["chosen"] == examples[1]["template"]
    compared = [chosen, chosen["reference"], examples[1]["base"]]
    texts = [text for attempt in compared for text in (attempt["question"], attempt["response"])]
    assert log["variation"][:6] == texts


@needs_browser
def test_slots_and_values_are_shown(log: dict[str, Any]) -> None:
    results, _ = attacked()
    assert len(log["slots"]) == 10
    value = results["attribution"]["values"][0]
    assert log["values"][0][:3] == [value["template"], value["slot"], value["value"]]
    assert log["values"][0][3].replace("\u2212", "-") == f"{100 * value['error']['value']:.1f}"


@needs_browser
def test_all_answers_page_filter_and_sort(log: dict[str, Any]) -> None:
    rows = ANSWERS["rows"]
    assert len(log["answers"]) == 20
    assert log["answers"][0][:3] == [
        "0000",
        "Base problems",
        f"name = {rows[0][2][0]}, n = {rows[0][2][1]}, m = {rows[0][2][2]}",
    ]
    wanted = [row for row in rows if row[0] == 1 and row[2][0] == "Mira" and row[4] == 0]
    assert wanted and log["range"].endswith(f"of {len(wanted)}")
    assert [row[5] for row in log["filtered"]] == [row[5] for row in wanted][:20]
    hardest = sorted(wanted, key=lambda row: -(row[3] if row[3] is not None else -1))
    assert [row[5] for row in log["hardest"]] == [row[5] for row in hardest][:20]


SIZES = """
const style = getComputedStyle(document.body);
const sizes = [innerWidth, document.documentElement.scrollWidth, style.backgroundColor, style.color];
document.body.append(Object.assign(document.createElement("pre"), {id: "sizes", textContent: JSON.stringify(sizes)}));
"""


@needs_browser
def test_a_phone_in_the_dark_scrolls_downwards_alone(folder: Path, tmp_path: Path) -> None:
    page = tampered(folder / "report.html", tmp_path / "copy.html", SIZES)
    dark = "--blink-settings=preferredColorScheme=0"
    found = re.search(r'<pre id="sizes">(.*?)</pre>', browse(page, tmp_path, "--window-size=390,844", dark))
    assert found
    width, needed, paper, ink = json.loads(html.unescape(found[1]))
    assert width <= 500  # the narrowest window of some browsers
    assert needed <= width
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (paper, ink)]
    assert brightness[0] < 120 and brightness[1] > 600


@needs_browser
@pytest.mark.parametrize("kind", ["measure", "nothing"])
def test_other_pages_open(kind: str, tmp_path: Path) -> None:
    if kind == "measure":
        write_report(tmp_path, make_measure_results(1), make_examples(1, 1))
    else:
        write_report(tmp_path, without_numbers(make_search_results(2)), [])
    dom = re.sub(r"<script.*?</script>", "", browse(tmp_path / "report.html", tmp_path), flags=re.DOTALL)
    assert ("not available" in dom) == (kind == "nothing")
    assert ("Variation 1 of 1" in dom) == (kind == "measure")
    assert '<div class="paged" id="templates-table"><div class="scroll"><table>' in dom
    assert "NaN" not in dom and "undefined" not in dom
