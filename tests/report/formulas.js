// Reads groups as JSON from standard input and prints what the page's formulas make of them.
"use strict";
const { ESTIMATORS, CREDIT_RULES } = require("../../acpo_trl/report/static/formulas.js");
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
const credits = ({ rule, gate, delta, isMode, positive }) => CREDIT_RULES[rule](delta, isMode, positive, gate);
console.log(JSON.stringify({
  estimates: cases.groups.map((group) => cases.choices.map(([name, options]) => ESTIMATORS[name](group, options))),
  credits: cases.tokens.map(credits),
}));
