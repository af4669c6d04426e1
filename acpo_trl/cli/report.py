"""Show the recorded credit of a run: `acpo-trl report RUN_DIR [-o page.html]`."""

import argparse
import sys
from pathlib import Path

from ..report import demo_run, load_run, render, render_text


def run(arguments: list[str], prog: str) -> None:
    """Write the page, or print the text; a mistake ends the program with one line."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, allow_abbrev=False)
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN_DIR", help="output folder of a run with `credit_log`")
    parser.add_argument("-o", "--output", type=Path, help="the page, by default credit.html in RUN_DIR")
    parser.add_argument("--text", action="store_true", help="print to the terminal instead")
    parser.add_argument("--demo", action="store_true", help="a made-up failure of five turns beside a success")
    given = parser.parse_args(arguments)
    if (given.run is None) != given.demo:
        parser.error("expected RUN_DIR, or --demo, and not both")
    try:
        found = demo_run() if given.demo else load_run(given.run)
        if given.text:
            print(render_text(found))
            return
        page = given.output or (Path("credit_demo.html") if given.demo else given.run / "credit.html")
        page.write_text(render(found), encoding="utf-8")
    except (ValueError, OSError) as error:
        sys.exit(f"{prog}: error: {error}")
    print(f"{page}: {len(found.records)} completions, {page.stat().st_size / 2**20:.1f} MB; open it in a browser.")
