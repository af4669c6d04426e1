// What is chosen, and what is drawn when it changes.
const choice = { view: "group", group: 0, completion: 0, estimator: "trained", kind: "all", gamma: 1, rule: "trained", colour: "product" };
const $ = (id) => document.getElementById(id);
let results = [];

function fillSelect(select, entries, value) {
  select.replaceChildren(...entries.map(([key, label]) => element("option", label, { value: key })));
  select.value = value;
}

function describeChoice(group) {
  if (choice.estimator === "trained" && choice.rule === "trained") {
    const first = group.completions[0];
    return `Recorded numbers: estimator ${first.estimator ?? "none (one advantage for the completion)"}, credit rule ${first.rule}.`;
  }
  const parts = [];
  if (choice.estimator !== "trained") parts.push(`advantages recomputed here from the rewards of turns, ${choice.kind === "all" ? "summed over kinds" : `of the kind ${choice.kind} alone`}`);
  if (RULE_CHOICES[choice.rule].run || choice.estimator !== "trained") parts.push("credit recomputed without credit_mix and normalization");
  return `Not what was trained: ${parts.join("; ")}.`;
}

function update(redraw) {
  const group = DATA.groups[choice.group];
  const kinds = Object.keys(group.completions[0].kinds);
  if (!kinds.includes(choice.kind)) choice.kind = "all";
  fillSelect($("pick-kind"), [["all", "all, summed"], ...kinds.map((kind) => [kind, kind])], choice.kind);
  choice.completion = Math.min(choice.completion, group.completions.length - 1);
  results = computed(group, choice);
  const [completion, result] = [group.completions[choice.completion], results[choice.completion]];
  const hasGamma = ESTIMATOR_CHOICES[choice.estimator].gamma !== undefined;
  $("gamma-label").hidden = !hasGamma;
  $("kind-label").hidden = choice.estimator === "trained" || Object.keys(group.completions[0].kinds).length < 2;
  $("gamma").value = choice.gamma;
  $("gamma-value").textContent = choice.gamma.toFixed(2);
  $("note").textContent = describeChoice(group);
  drawGroup(group, results, choice, (row) => {
    Object.assign(choice, { completion: row, view: "tokens" });
    update(true);
    showView();
  });
  if (redraw) {
    fillSelect($("pick-completion"), group.completions.map((c, i) => [i, `#${c.sample}, reward ${show(total(rewardsOf(c)))}`]), choice.completion);
    drawTokens(completion, result);
  }
  drawTurns(completion, result, group, results);
  paintTokens(completion, result, choice.colour);
}

function showView() {
  for (const name of ["run", "group", "tokens"]) {
    const isShown = name === choice.view;
    $(`view-${name}`).hidden = !isShown;
    $(`tab-${name}`).setAttribute("aria-selected", isShown);
    $(`tab-${name}`).tabIndex = isShown ? 0 : -1;
  }
  $("controls").hidden = choice.view === "run";
  $("facts").hidden = choice.view !== "tokens";
}

function listen() {
  const tabs = ["run", "group", "tokens"];
  for (const name of tabs) {
    $(`tab-${name}`).addEventListener("click", () => {
      choice.view = name;
      showView();
    });
  }
  document.querySelector("nav").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: 2, ArrowRight: 1 }[event.key];
    if (!by) return;
    choice.view = tabs[(tabs.indexOf(choice.view) + by) % 3];
    showView();
    $(`tab-${choice.view}`).focus();
  });
  const on = (id, key, redraw, read = (value) => value) =>
    $(id).addEventListener("input", (event) => {
      choice[key] = read(event.target.value);
      if (key === "estimator") choice.gamma = ESTIMATOR_CHOICES[choice.estimator].gamma ?? choice.gamma;
      if (key === "group") choice.completion = 0;
      update(redraw);
    });
  on("pick-group", "group", true, Number);
  on("pick-completion", "completion", true, Number);
  on("pick-estimator", "estimator", false);
  on("pick-rule", "rule", false);
  on("pick-kind", "kind", false);
  on("pick-colour", "colour", false);
  on("gamma", "gamma", false, Number);
  $("theme").addEventListener("click", () => {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
  });
  listenToTokens();
}

$("title").textContent = DATA.title;
drawCharts($("view-run"));
fillSelect($("pick-group"), DATA.groups.map((g, i) => [i, `step ${g.step}, ${g.chosen}: ${visible(g.prompt).replace(/\s+/g, " ").trim().slice(-60)}`]), 0);
fillSelect($("pick-estimator"), Object.entries(ESTIMATOR_CHOICES).map(([key, { label }]) => [key, label]), "trained");
fillSelect($("pick-rule"), Object.entries(RULE_CHOICES).map(([key, { label }]) => [key, label]), "trained");
fillSelect($("pick-colour"), [["product", "advantage × credit"], ["credit", "credit"], ["delta", "delta"], ["entropy", "entropy"]], "product");
choice.group = DATA.groups.length - 1;
// A link can say what is shown: page.html#view=tokens&estimator=gigpo&rule=acpo&completion=0
for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
  if (key in choice) choice[key] = typeof choice[key] === "number" ? Number(value) : value;
}
if (!DATA.groups[choice.group]) choice.group = DATA.groups.length - 1;
$("pick-group").value = choice.group;
for (const key of ["estimator", "rule", "colour"]) $(`pick-${key}`).value = choice[key];
listen();
update(true);
showView();
