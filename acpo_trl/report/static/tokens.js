// One completion: its turns as bars, its tokens in colour, and the numbers of the token at hand.
const MAX_SHOWN = 20000; // characters of one token

function drawTurns(completion, result, group, results) {
  const where = document.getElementById("turn-bars");
  where.replaceChildren();
  const largest = minmax(results.flatMap((r) => known(r.turns)).map(Math.abs))[1];
  const counts = tokensOfTurns({ rewards: completion.states, turns: completion.turns });
  const rewards = rewardsOf(completion);
  result.turns.forEach((value, k) => {
    const box = element("button", "", { class: "turn", role: "listitem" });
    const bar = element("div", "", { class: "bar" });
    const fill = element("i");
    const share = value === null || !(largest > 0) ? 0 : Math.min(Math.abs(value) / largest, 1) * 50;
    fill.style.height = `${share}%`;
    fill.style[value < 0 ? "top" : "bottom"] = "50%";
    fill.style.background = `rgb(var(${value < 0 ? "--minus" : "--plus"}))`;
    bar.append(fill);
    box.append(element("span", `turn ${k + 1} `), element("b", show(value)), bar);
    const credits = known(result.credit.filter((_, t) => completion.turns[t] === k));
    const credit = credits.length ? sum(credits) / credits.length : null;
    for (const text of [`credit ${show(credit)}`, `reward ${show(rewards[k])}`, `${counts[k]} tokens`]) box.append(element("small", text));
    const first = completion.turns.indexOf(k);
    box.addEventListener("click", () => first >= 0 && pickToken(first, true));
    where.append(box);
  });
}

const TOKEN = { spans: [], at: -1, completion: null, result: null };

function drawTokens(completion, result) {
  const where = document.getElementById("tokens");
  const inside = document.createDocumentFragment();
  TOKEN.spans = completion.pieces.map((piece, t) => {
    const span = document.createElement("span");
    const text = visible(piece.length > MAX_SHOWN ? `${piece.slice(0, MAX_SHOWN)}… (${piece.length} characters)` : piece);
    span.textContent = text;
    span.dataset.token = t;
    if (completion.turns[t] < 0) span.className = "env";
    else if (t === 0 || completion.turns[t - 1] !== completion.turns[t]) span.className = "starts";
    inside.append(span);
    return span;
  });
  where.replaceChildren(inside);
  Object.assign(TOKEN, { at: -1, completion, result });
  document.getElementById("facts").replaceChildren();
}

function paintTokens(completion, result, by) {
  const values = completion.turns.map((turn, t) => {
    if (turn < 0) return null;
    if (by === "delta" || by === "entropy") return completion.columns[by][t];
    const credit = result.credit[t];
    return credit === null ? null : by === "credit" ? credit : result.advantage[t] * credit;
  });
  const largest = by === "delta" ? 1 : minmax(known(values).map(Math.abs))[1];
  TOKEN.spans.forEach((span, t) => {
    if (completion.turns[t] < 0) return;
    const value = values[t];
    const share = value === null || !(largest > 0) ? 0 : Math.min(Math.abs(value) / largest, 1);
    span.style.background = by === "product" ? colour(value, largest) : `rgba(var(--scale), ${(0.72 * share).toFixed(3)})`;
  });
  TOKEN.result = result;
  const legend = document.getElementById("legend");
  const ramp = element("i");
  const ends = by === "product" ? [show(-largest), show(largest)] : ["0", show(largest)];
  ramp.style.background = by === "product"
    ? "linear-gradient(to right, rgba(var(--minus), .8), transparent, rgba(var(--plus), .8))"
    : "linear-gradient(to right, transparent, rgba(var(--scale), .72))";
  legend.replaceChildren(document.createTextNode(ends[0]), ramp, document.createTextNode(ends[1]));
  if (TOKEN.at >= 0) pickToken(TOKEN.at);
}

function pickToken(t, scrolls = false) {
  const { spans, completion, result } = TOKEN;
  if (!spans[t]) return;
  spans[TOKEN.at]?.classList.remove("current");
  TOKEN.at = t;
  spans[t].classList.add("current");
  if (scrolls) spans[t].scrollIntoView({ block: "nearest" });
  const at = (name) => show(completion.columns[name][t]);
  const [turn, advantage, credit] = [completion.turns[t], result.advantage[t], result.credit[t]];
  const logProb = completion.columns.logProb[t];
  const facts = {
    token: `${t + 1} of ${spans.length}`,
    text: visible(JSON.stringify(completion.pieces[t].slice(0, 200))),
    id: completion.ids[t],
    turn: turn < 0 ? "of the environment" : turn + 1,
    ...(turn >= 0 && {
      "log-prob": at("logProb"),
      probability: show(Math.exp(logProb)),
      delta: at("delta"),
      mode: completion.modes[t] === "1" ? "yes" : "no",
      entropy: at("entropy"),
      advantage: show(advantage),
      credit: show(credit),
      "advantage × credit": show(credit === null || advantage === null ? null : advantage * credit),
      ratio: at("ratio"),
    }),
  };
  document.getElementById("facts").replaceChildren(
    ...Object.entries(facts).map(([name, value]) => {
      const pair = element("div");
      pair.append(element("dt", name), element("dd", value));
      return pair;
    }),
  );
}

function listenToTokens() {
  const where = document.getElementById("tokens");
  const pick = (event) => {
    const token = event.target.dataset?.token;
    if (token !== undefined) pickToken(Number(token));
  };
  where.addEventListener("pointerover", pick);
  where.addEventListener("click", pick);
  where.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key];
    const to = { Home: 0, End: TOKEN.spans.length - 1 }[event.key] ?? (by && TOKEN.at + by);
    if (to === undefined) return;
    pickToken(Math.max(0, Math.min(TOKEN.spans.length - 1, to)), true);
    event.preventDefault();
  });
}
