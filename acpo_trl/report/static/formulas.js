// Turn estimators and credit rules, as in acpo_trl.advantages and acpo_trl.credit, for the completions of one prompt.
// A completion: {rewards: [K] number or null, states: [K], actions: [K], turns: [T] turn or -1, entropy: [T]}.
// tests/report/test_formulas.py compares each function with the Python one.
"use strict";

const EPSILON = 1e-4;
const ENTROPY_FLOOR = 1e-3;

const known = (values) => values.filter((v) => v !== null);
const sum = (values) => values.reduce((a, b) => a + b, 0);
const total = (rewards) => (known(rewards).length ? sum(known(rewards)) : null);
const isScored = (completion) => total(completion.rewards) !== null;

// (x - mean) / (std + epsilon) over the numbers among values; 0 for null, for one alone and for equal ones.
function normalize(values, epsilon = EPSILON, correction = 1) {
  const numbers = known(values);
  const [lowest, highest] = minmax(numbers);
  if (numbers.length < 2 || lowest === highest) return values.map(() => 0);
  const mean = sum(numbers.map((v) => v - lowest)) / numbers.length;
  const squares = sum(numbers.map((v) => (v - lowest - mean) ** 2));
  const std = Math.sqrt(squares / Math.max(numbers.length - correction, 1));
  return values.map((v) => (v === null ? 0 : (v - lowest - mean) / (std + epsilon)));
}

// Not Math.min(...values): a spread of many thousand tokens is too much for the stack.
function minmax(numbers) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of numbers) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}

// The same over rows of different length, all entries together.
function normalizeRows(rows, epsilon, correction) {
  const flat = normalize(rows.flat(), epsilon, correction);
  let place = 0;
  return rows.map((row) => row.map(() => flat[place++]));
}

// z-scores among the entries with equal keys.
function normalizeBy(rows, keys) {
  const groups = new Map();
  rows.forEach((row, i) =>
    row.forEach((v, k) => {
      if (!groups.has(keys[i][k])) groups.set(keys[i][k], []);
      groups.get(keys[i][k]).push([i, k, v]);
    }),
  );
  const out = rows.map((row) => row.map(() => 0));
  for (const entries of groups.values()) {
    const scores = normalize(entries.map((entry) => entry[2]));
    entries.forEach(([i, k], place) => (out[i][k] = scores[place]));
  }
  return out;
}

function rewardsToGo(rewards, gamma) {
  if (total(rewards) === null) return rewards.map(() => null);
  const returns = rewards.map((r) => r ?? 0);
  for (let k = returns.length - 2; k >= 0; k--) returns[k] += gamma * returns[k + 1];
  return returns;
}

// Without completions that are the only scored one of their group.
function compared(group) {
  const rows = group.map((c) => c.rewards);
  return group.filter(isScored).length < 2 ? rows.map((row) => row.map(() => null)) : rows;
}

function tokensOfTurns(completion) {
  const counts = completion.rewards.map(() => 0);
  for (const turn of completion.turns) if (turn >= 0) counts[turn]++;
  return counts;
}

function outcome(group, { gamma = 1 } = {}) {
  const scores = normalize(group.map((c) => total(c.rewards)));
  return group.map((c, i) => c.rewards.map((_, k) => scores[i] * gamma ** (c.rewards.length - 1 - k)));
}

function processReturns(group, { gamma = 0.95 } = {}) {
  return normalizeRows(group.map((c) => rewardsToGo(c.rewards, gamma)));
}

function discounted(group, { gamma = 0.95, failure = 0 } = {}) {
  const judged = group.map((c) => ({
    ...c,
    rewards: c.rewards.map((r, k) => (k === c.rewards.length - 1 && r === 0 ? failure : r)),
  }));
  return normalizeRows(compared(judged).map((rewards) => rewardsToGo(rewards, gamma)));
}

function mtGrpo(group, { alpha = 1 } = {}) {
  const last = group.map((c) => (c.rewards.length ? c.rewards[c.rewards.length - 1] : null));
  const byOutcome = normalize(last);
  const intermediate = group.map((c) => c.rewards.map((r, k) => (k === c.rewards.length - 1 ? null : r)));
  const byTurn = normalizeBy(intermediate, intermediate.map((row) => row.map((_, k) => k)));
  return group.map((c, i) => {
    const counts = tokensOfTurns(c);
    const first = counts.findIndex((n) => n > 0);
    const own = byTurn[i].slice();
    for (let k = 0; k < first; k++) {
      own[first] += own[k];
      own[k] = 0;
    }
    if (own.length) own[own.length - 1] += byOutcome[i];
    for (let k = own.length - 2; k >= 0; k--) own[k] += alpha * own[k + 1];
    return own;
  });
}

function gigpo(group, { omega = 1, gamma = 0.95 } = {}) {
  const rewards = compared(group);
  const scored = rewards.map((row) => total(row) !== null);
  const acts = group.map((c, i) => c.actions.map((action) => scored[i] && action !== -1));
  const returns = rewards.map((row, i) => rewardsToGo(row, gamma).map((v, k) => (acts[i][k] ? v : null)));
  const count = (test) => {
    const counts = new Map();
    group.forEach((c, i) =>
      c.states.forEach((state, k) => {
        if (acts[i][k] && test(k)) counts.set(state, (counts.get(state) ?? 0) + 1);
      }),
    );
    return counts;
  };
  const [first, every] = [count((k) => k === 0), count(() => true)];
  const starts = acts.filter((row) => row[0]).length;
  group.forEach((c, i) => {
    // Compared once more with the first turns of all, the completions would count twice.
    const state = c.states[0];
    if (acts[i][0] && first.get(state) === every.get(state) && first.get(state) === starts) returns[i][0] = null;
  });
  const episodes = normalize(rewards.map(total));
  const steps = normalizeBy(returns, group.map((c) => c.states));
  return acts.map((row, i) => row.map((is, k) => (is ? episodes[i] + omega * steps[i][k] : 0)));
}

// Advantages of tokens, (T); 0 for those of the environment.
function gtpo(group, { alpha1 = 1, alpha2 = 0.1 } = {}) {
  const columns = new Map();
  const weights = group.map((c) => {
    const value = total(c.rewards);
    let place = 0;
    return c.turns.map((turn, t) => {
      if (turn < 0) return null;
      place++;
      if (value === null) return null;
      const entropy = Math.max(c.entropy[t], ENTROPY_FLOOR);
      const entry = { success: value > 0, key: `${value > 0} ${place}`, weight: value > 0 ? entropy : 1 / entropy };
      const column = columns.get(entry.key) ?? { count: 0, sum: 0 };
      columns.set(entry.key, { count: column.count + 1, sum: column.sum + entry.weight });
      return entry;
    });
  });
  const rewards = weights.map((row) =>
    row.map((entry) => {
      if (entry === null) return null;
      const { count, sum: all } = columns.get(entry.key);
      return (entry.success ? 1 : -1) * (alpha1 + (alpha2 * entry.weight * count) / all);
    }),
  );
  return normalizeRows(rewards, 1e-8, 0);
}

// Credit of a token by its delta, whether it is the mode, and the sign of its advantage.
const offMode = (positive, delta) => 3 * (positive ? delta : 1 - delta);
const CREDIT_RULES = {
  uniform: () => 1,
  acpo: (delta, isMode, positive, gate = 1) =>
    Math.max(isMode ? (positive ? 2 + delta - gate * (1 - delta) : (1 + gate) * (1 - delta)) : offMode(positive, delta), 0),
  acpo_as_written: (delta, isMode, positive) =>
    isMode ? (positive ? 2 + delta : 1 - delta) : offMode(positive, delta),
};

const ESTIMATORS = { outcome, process: processReturns, discounted, mt_grpo: mtGrpo, gigpo, gtpo };
if (typeof module !== "undefined") module.exports = { ESTIMATORS, CREDIT_RULES };
