"""The page holds the recorded numbers, and nothing that a completion says can become more than text."""

import base64
import html
import json
import re
import shutil
import struct
import subprocess

import pytest
from recorded import record

from acpo_trl.records import RewardEntry
from acpo_trl.report import Run, demo_run, render, show
from acpo_trl.report.page import COLUMNS, embed, payload

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(BROWSER is None, reason="neither chromium nor google-chrome is installed")
HOSTILE = [
    "</script><script>document.title='broken in'</script>",
    "<img src=x onerror=\"document.title='broken in'\">",
    "<!--<script>",
    "\u202eright to left\u2066",
    "\x00\x07\x1b[31m\x7f",
    "\ud800 half",
    "\u2028\u2029",
    "&lt;b&gt;",
    "x" * 2**20,
]
# Looks at every token as a reader would, and leaves what was shown in the document.
READER = """
<script>
addEventListener("load", () => {
  document.getElementById("tab-tokens").click();
  const shown = [];
  for (const span of document.querySelectorAll("#tokens span")) {
    span.click();
    const pairs = [...document.querySelectorAll("#facts div")];
    shown.push(Object.fromEntries(pairs.map((pair) => [...pair.children].map((c) => c.textContent))));
  }
  const out = document.createElement("pre");
  out.id = "shown";
  const heading = document.getElementById("title").textContent;
  out.textContent = JSON.stringify({ title: document.title, shown, heading });
  document.body.append(out);
});
</script>
"""


def opened(page, tmp_path, reader=READER):
    """What a browser showed to a reader, of each token."""
    path = tmp_path / "page.html"
    path.write_text(page + reader, encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return json.loads(html.unescape(re.search(r'<pre id="shown">(.*?)</pre>', dom, re.DOTALL)[1]))


def test_numbers_in_the_page_are_the_recorded_ones_to_the_last_bit():
    one = record(num_tokens=50, num_turns=3)
    (group,) = payload(Run("r", [one]))["groups"]
    raw = base64.b64decode(group["completions"][0]["numbers"])
    found = struct.unpack(f"<{len(raw) // 4}f", raw)
    for place, column in enumerate(COLUMNS):
        for value, stored in zip(found[50 * place : 50 * (place + 1)], getattr(one, column), strict=True):
            if stored is None:
                assert value != value
            else:
                assert value == struct.unpack("<f", struct.pack("<f", stored))[0]


def test_keys_of_63_bits_stay_told_apart():
    (group,) = payload(Run("r", [record(sample=i) for i in range(2)]))["groups"]
    assert [c["states"] for c in group["completions"]] == [[0, 1], [0, 1]]
    assert [c["actions"] for c in group["completions"]] == [[0, 1], [2, 3]]
    silent = record(action_keys=[-1, 5])
    assert payload(Run("r", [silent]))["groups"][0]["completions"][0]["actions"] == [-1, 1]


def test_groups_are_apart_by_step_and_prompt_and_in_order():
    records = [record(step=10, group=3, sample=1), record(step=0, group=7), record(step=10, group=3, sample=0)]
    groups = payload(Run("r", records))["groups"]
    assert [(g["step"], g["group"], len(g["completions"])) for g in groups] == [(0, 7, 1), (10, 3, 2)]
    assert [c["sample"] for c in groups[1]["completions"]] == [0, 1]


def test_nothing_in_the_data_can_end_its_element():
    text = embed(HOSTILE)
    assert json.loads(text) == HOSTILE
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_the_page_asks_nobody_for_anything():
    page = render(demo_run())
    assert "default-src 'none'" in page
    assert re.findall(r"(?:src|href)\s*=|url\(|@import|fetch\(|XMLHttp", page) == []
    assert "<!--DATA-->" not in page and "<!--SCRIPT-->" not in page


@pytest.mark.slow
@in_browser
def test_every_shown_number_is_the_recorded_one_to_its_last_digit(tmp_path):
    one = record(num_tokens=40, num_turns=3)
    shown = opened(render(Run("r", [one])), tmp_path)["shown"]
    assert len(shown) == 40
    names = {"log-prob": "log_probs", "delta": "delta", "entropy": "entropy", "advantage": "advantage"}
    names |= {"credit": "credit", "ratio": "ratio"}
    for place, facts in enumerate(shown):
        assert facts["token"] == f"{place + 1} of 40" and facts["id"] == str(place)
        if one.turn_ids[place] < 0:
            assert facts["turn"] == "of the environment" and "credit" not in facts
            continue
        for name, column in names.items():
            stored = struct.unpack("<f", struct.pack("<f", getattr(one, column)[place]))[0]
            assert float(facts[name]) == float(f"{stored:.4g}"), (name, place)
        assert facts["mode"] == ("yes" if one.is_mode[place] else "no")


@pytest.mark.slow
@in_browser
def test_hostile_text_is_shown_and_not_obeyed(tmp_path):
    one = record(num_tokens=len(HOSTILE), num_turns=1, pieces=HOSTILE, prompt=HOSTILE[0] + HOSTILE[1])
    other = record(
        num_tokens=len(HOSTILE), num_turns=1, sample=1, rewards=[RewardEntry(HOSTILE[0], "outcome", 1.0, 1.0)]
    )
    found = opened(render(Run(HOSTILE[0], [one, other])), tmp_path)
    assert found["title"] == "Credit report"
    assert found["heading"] == HOSTILE[0]
    texts = [facts["text"] for facts in found["shown"]]
    assert len(texts) == len(HOSTILE)
    assert texts[0] == json.dumps(HOSTILE[0])
    assert "⟨U+202E⟩" in texts[3] and "\u202e" not in texts[3]
    assert not any(ord(char) < 32 for text in texts for char in text)


# Uses the keyboard alone, and leaves what was shown after each key.
KEYBOARD = """
<script>
addEventListener("load", () => {
  const shown = [];
  const press = (where, key) => {
    (typeof where === "string" ? document.querySelector(where) : where).dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }),
    );
    shown.push([
      document.querySelector("[role=tab][aria-selected=true]").textContent,
      document.querySelector("#facts dd")?.textContent ?? "",
      document.querySelector(".chart h2")?.textContent ?? "",
    ]);
  };
  press("#completions tr[data-row]", "Enter");
  press("#tokens", "ArrowRight");
  press("#tokens", "End");
  press("#tokens", "ArrowLeft");
  press("nav", "ArrowRight");
  press(".chart svg", "ArrowLeft");
  const out = document.createElement("pre");
  out.id = "shown";
  out.textContent = JSON.stringify(shown);
  document.body.append(out);
});
</script>
"""


@pytest.mark.slow
@in_browser
def test_the_keyboard_is_enough(tmp_path):
    run = Run("r", [record(num_tokens=9)], {"entropy": {"entropy": [(1, 0.5), (2, 0.25)]}})
    steps = opened(render(run), tmp_path, KEYBOARD)
    assert [step[0] for step in steps] == ["Completion"] * 4 + ["Run"] * 2
    assert [step[1] for step in steps[1:4]] == ["1 of 9", "9 of 9", "8 of 9"]
    assert [step[2] for step in steps[4:]] == ["entropy · step 2", "entropy · step 1"]


def test_a_notebook_gets_the_page_in_a_frame_of_its_own():
    frame = show(demo_run())._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert 'sandbox="allow-scripts"' in frame and frame.count("<") == 2
