// The records of the page, decoded when they are first looked at, and what a choice of rules makes of them.
const DATA = JSON.parse(document.getElementById("data").textContent);
const NUMBERS = ["logProb", "delta", "entropy", "advantage", "credit", "ratio"];

function decode(completion) {
  if (completion.columns) return completion;
  const bytes = Uint8Array.from(atob(completion.numbers), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const length = completion.turns.length;
  completion.columns = Object.fromEntries(NUMBERS.map((name, column) => [
    name,
    Float32Array.from({ length }, (_, t) => view.getFloat32(4 * (column * length + t), true)),
  ]));
  delete completion.numbers;
  return completion;
}

// Rewards of turns of one kind or, summed over kinds with their weights as the trainer's `kinds: mixed`, of all.
function rewardsOf(completion, kind = "all") {
  return completion.states.map((_, k) => {
    const rows = kind === "all" ? Object.values(completion.kinds) : [completion.kinds[kind] ?? []];
    const scored = rows.map((values) => values[k] ?? null).filter((v) => v !== null);
    return scored.length ? scored.reduce((a, b) => a + b, 0) : null;
  });
}

const ESTIMATOR_CHOICES = {
  trained: { label: "as trained" },
  outcome: { label: "outcome (GRPO)", gamma: 1, run: (group, gamma) => ESTIMATORS.outcome(group, { gamma }) },
  failure: { label: "discounted, failure = -1", gamma: 0.95, run: (group, gamma) => ESTIMATORS.discounted(group, { gamma, failure: -1 }) },
  discounted: { label: "discounted", gamma: 0.95, run: (group, gamma) => ESTIMATORS.discounted(group, { gamma }) },
  process: { label: "process (rewards to go)", gamma: 0.95, run: (group, gamma) => ESTIMATORS.process(group, { gamma }) },
  mt_grpo: { label: "MT-GRPO", run: (group) => ESTIMATORS.mt_grpo(group) },
  gigpo: { label: "GiGPO", gamma: 0.95, run: (group, gamma) => ESTIMATORS.gigpo(group, { gamma }) },
  gtpo: { label: "GTPO (entropy, by token)", run: (group) => ESTIMATORS.gtpo(group), byToken: true },
};
const RULE_CHOICES = {
  trained: { label: "as trained" },
  uniform: { label: "uniform (GRPO)", run: CREDIT_RULES.uniform },
  acpo: { label: "acpo", run: CREDIT_RULES.acpo },
  acpo_sapo: { label: "acpo behind SAPO's gate", run: (delta, isMode, positive) => CREDIT_RULES.acpo(delta, isMode, positive, 2) },
  acpo_as_written: { label: "acpo as written, live", run: CREDIT_RULES.acpo_as_written },
};
const SAME_RULE = { acpo_live: "acpo_as_written" };

// For each completion of a group: advantages (T), credit (T) and advantages of turns (K); null where nobody knows.
function computed(group, choice) {
  const completions = group.completions.map(decode);
  const estimator = ESTIMATOR_CHOICES[choice.estimator];
  const tables = completions.map((c) => ({
    rewards: rewardsOf(c, choice.kind), states: c.states, actions: c.actions, turns: c.turns, entropy: c.columns.entropy,
  }));
  const estimated = estimator.run ? estimator.run(tables, choice.gamma) : null;
  return completions.map((c, i) => {
    const advantage = c.turns.map((turn, t) => {
      if (turn < 0) return null;
      return estimated === null ? c.columns.advantage[t] : estimator.byToken ? estimated[i][t] : estimated[i][turn];
    });
    return { advantage, credit: creditOf(c, advantage, choice), turns: turnAdvantages(c, advantage, estimated, estimator, i) };
  });
}

function turnAdvantages(c, advantage, estimated, estimator, i) {
  if (estimated === null) return c.turnAdvantages;
  if (!estimator.byToken) return estimated[i];
  return c.states.map((_, k) => {
    const own = advantage.filter((_, t) => c.turns[t] === k);
    return own.length ? own.reduce((a, b) => a + b, 0) / own.length : null;
  });
}

function creditOf(c, advantage, choice) {
  let rule = choice.rule;
  if (rule === "trained") {
    if (choice.estimator === "trained") return Array.from(c.columns.credit, (v) => (Number.isNaN(v) ? null : v));
    rule = SAME_RULE[c.rule] ?? c.rule; // the recorded credit belongs to the recorded sign
  }
  const run = RULE_CHOICES[rule]?.run;
  return advantage.map((a, t) => (a === null || !run ? null : run(c.columns.delta[t], c.modes[t] === "1", a > 0)));
}

// Four digits, or a dash for what nobody knows.
function show(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : value.toPrecision(digits);
}

function element(name, content = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = content;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Blue for praise, orange for blame: told apart by everybody, and by its sign in the numbers.
function colour(value, largest) {
  if (value === null || !largest) return "transparent";
  const share = Math.min(Math.abs(value) / largest, 1);
  return `rgba(var(${value < 0 ? "--minus" : "--plus"}), ${(0.08 + 0.72 * share).toFixed(3)})`;
}
