"""How long a report's page takes to open and to be used, in headless Chromium.

python benchmarks/page.py runs/search/report.html
"""

import argparse
import html
import json
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ACTIONS = """
const times = {};
const timed = (name, work) => {
  const start = performance.now();
  work();
  times[name] = performance.now() - start;
};
times["page open, all scripts run"] = performance.now();
const filter = document.getElementById("answers-filter");
const header = (number) => document.querySelectorAll("#answers-table th button")[number];
timed("table of all answers made", showAnswers);
timed("answers filtered", () => { filter.value = "wrong"; filter.oninput(); });
timed("filter taken away", () => { filter.value = ""; filter.oninput(); });
timed("answers sorted by difficulty", () => header(3).click());
timed("next twenty answers", () => document.querySelectorAll("#answers-table .pager button")[1].click());
timed("another template's variations", () => document.getElementById("next-template").click());
const log = Object.assign(document.createElement("pre"), {id: "times"});
log.textContent = JSON.stringify({times, range: document.querySelector("#answers-table .pager span").textContent});
document.body.append(log);
"""


def opened(page: Path, folder: Path) -> dict:
    """What the browser measured; the page's own policy would keep the measuring script out."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    copy = folder / "page.html"
    copy.write_text(text.replace("</body>", f"<script>{ACTIONS}</script></body>"), encoding="utf-8")
    browser = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    command = [browser, *options, f"--user-data-dir={folder / 'profile'}", copy.as_uri()]
    dom = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout.decode()
    found = re.search(r'<pre id="times">(.*?)</pre>', dom, re.DOTALL)
    assert found, "the page's script did not run to its end"
    return json.loads(html.unescape(found[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds = [opened(given.page, Path(folder)) for _ in range(given.rounds)]
    print(f"{given.page.stat().st_size / 1e6:.1f} MB, answers {rounds[0]['range']}; medians of {given.rounds}")
    for name in rounds[0]["times"]:
        print(f"{name}: {statistics.median(found['times'][name] for found in rounds):,.0f} ms")


if __name__ == "__main__":
    main()
