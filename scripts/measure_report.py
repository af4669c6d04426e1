"""Measure the report of 200 completions of 2,000 tokens in headless Chromium: size, opening, switching a rule.

python scripts/measure_report.py [--completions 200] [--tokens 2000]
"""

import argparse
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from acpo_trl.records import Record
from acpo_trl.report import Run, demo_run, render

GROUP = 8
# Runs behind the page's own script: reads when that was done, switches what can be switched, and says so in the title.
PROBE = """
<script>
addEventListener("load", () => {
  const opened = performance.now();
  const longest = {};
  const switchTo = (id, value) => {
    const select = document.getElementById(id), started = performance.now();
    select.value = value;
    select.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    longest[id] = Math.max(longest[id] ?? 0, performance.now() - started);
  };
  document.getElementById("tab-tokens").click();
  for (const option of document.getElementById("pick-estimator").options) switchTo("pick-estimator", option.value);
  for (const option of document.getElementById("pick-rule").options) switchTo("pick-rule", option.value);
  for (const value of ["credit", "delta", "entropy", "product"]) switchTo("pick-colour", value);
  switchTo("gamma", 0.5);
  switchTo("pick-group", 0);
  document.title = JSON.stringify({ opened, ...longest });
});
</script>
"""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--completions", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=2000)
    arguments = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("measure_report: no chromium or google-chrome on PATH; install one of them")
    page = render(Run("measured", [long_record(i, arguments.tokens) for i in range(arguments.completions)]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page + PROBE, encoding="utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    figures = re.search(r"<title>(\{.*?\})</title>", shown)
    if figures is None:
        sys.exit("measure_report: the page did not come to its end")
    print(f"{arguments.completions} completions of {arguments.tokens} tokens: {len(page) / 1e6:.1f} MB")
    print(f"milliseconds until loaded, and longest switch of each control: {figures[1]}")
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, {platform.machine()}, Python {platform.python_version()}")


def long_record(index: int, num_tokens: int) -> Record:
    """A completion of the demo, as long as wished, with numbers at random."""
    chance = random.Random(index)
    model = demo_run().records[index % 2]
    num_turns = len(model.turn_advantages)
    turn_ids = [min(place * num_turns // num_tokens, num_turns - 1) for place in range(num_tokens)]

    def numbers(low: float, high: float) -> list[float | None]:
        return [chance.uniform(low, high) for _ in range(num_tokens)]

    return replace(
        model,
        group=index // GROUP,
        sample=index % GROUP,
        token_ids=[chance.randrange(150_000) for _ in range(num_tokens)],
        pieces=["".join(chance.choices("abcdefghij ", k=chance.randint(1, 7))) for _ in range(num_tokens)],
        turn_ids=turn_ids,
        log_probs=numbers(-3, 0),
        delta=numbers(0, 1),
        is_mode=[chance.random() < 0.7 for _ in range(num_tokens)],
        entropy=numbers(0, 2),
        advantage=numbers(-2, 2),
        credit=numbers(0, 3),
        ratio=numbers(0.9, 1.1),
    )


if __name__ == "__main__":
    main()
