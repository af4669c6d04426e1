// The completions of one prompt side by side.
function drawGroup(group, results, choice, open) {
  document.getElementById("prompt").textContent = visible(group.prompt);
  const table = document.getElementById("completions");
  table.replaceChildren();
  const kinds = Object.keys(group.completions[0].kinds);
  const head = element("tr");
  const names = ["completion", "reward", ...(kinds.length > 1 ? kinds : []), "ended by", "turns", "tokens", "advantage", "turns, first to last"];
  for (const name of names) head.append(element("th", name, { scope: "col" }));
  table.append(head);
  const largest = minmax(results.flatMap((r) => known(r.turns)).map(Math.abs))[1];
  group.completions.forEach((completion, i) => {
    const row = element("tr", "", { "data-row": i, tabindex: 0, "aria-selected": i === choice.completion });
    const own = known(results[i].advantage);
    const kindTotals = kinds.map((kind) => show(total(completion.kinds[kind] ?? [])));
    const cells = [
      `#${completion.sample}`,
      show(total(rewardsOf(completion))),
      ...(kinds.length > 1 ? kindTotals : []),
      `${completion.stop ?? "–"}${completion.truncated ? " (truncated)" : ""}`,
      String(completion.states.length),
      String(own.length),
      own.length ? show(sum(own) / own.length) : "–",
    ];
    for (const cell of cells) row.append(element("td", cell));
    row.append(strip(results[i].turns, largest));
    row.addEventListener("click", () => open(i));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        open(i);
        event.preventDefault();
      }
    });
    table.append(row);
  });
}

function strip(turns, largest) {
  const cell = element("td", "", { class: "wide" });
  const bars = element("div", "", { class: "strip", role: "img", "aria-label": `advantages of turns: ${turns.map((v) => show(v)).join(", ")}` });
  turns.forEach((value, k) => {
    const bar = element("span", "", { title: `turn ${k + 1}: ${show(value)}` });
    bar.style.background = colour(value, largest);
    bars.append(bar);
  });
  cell.append(bars);
  return cell;
}

// Control characters and marks that turn the direction of text become pictures or names of themselves.
function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu, (c) => {
    const code = c.codePointAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
