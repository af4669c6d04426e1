// Curves of the run: small charts with a crosshair that pointer and arrow keys move.
const INKS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES = ["", "6 3", "2 2", "8 3 2 3", "4 2", "1 3"];
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [300, 120];

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawCharts(where) {
  const charts = Object.entries(DATA.charts);
  if (!charts.length) where.append(element("p", "No log of the run was found beside its records."));
  for (const [title, series] of charts) where.append(chart(title, series));
}

function chart(title, series) {
  const box = element("div", "", { class: "chart" });
  const points = Object.values(series).flat();
  const xs = minmax(points.map((p) => p[0]));
  const ys = minmax(points.map((p) => p[1]));
  const x = (step) => (xs[1] === xs[0] ? WIDTH / 2 : ((step - xs[0]) / (xs[1] - xs[0])) * (WIDTH - 8) + 4);
  const y = (value) => (ys[1] === ys[0] ? HEIGHT / 2 : HEIGHT - 6 - ((value - ys[0]) / (ys[1] - ys[0])) * (HEIGHT - 12));
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", tabindex: 0, role: "img" });
  picture.setAttribute("aria-label", `${title}: arrow keys move through the steps`);
  const cross = svg("line", { y1: 0, y2: HEIGHT, stroke: "currentColor", "stroke-width": 1, "vector-effect": "non-scaling-stroke", opacity: 0.4 });
  const list = element("ul");
  const heading = element("h2", title);
  const range = element("small", ys[0] === ys[1] ? "" : `${show(ys[0], 3)} to ${show(ys[1], 3)}`, { class: "range", title: "lowest and highest" });
  const values = Object.entries(series).map(([name, own], place) => {
    const style = { stroke: INKS[place % INKS.length], "stroke-dasharray": DASHES[place % DASHES.length], "stroke-width": 1.8, fill: "none", "vector-effect": "non-scaling-stroke" };
    if (own.length > 1) picture.append(svg("polyline", { ...style, points: own.map((p) => `${x(p[0])},${y(p[1])}`).join(" ") }));
    else picture.append(svg("circle", { cx: x(own[0][0]), cy: y(own[0][1]), r: 3, fill: style.stroke }));
    const sign = svg("svg", { viewBox: "0 0 22 8" });
    sign.append(svg("line", { ...style, x1: 0, x2: 22, y1: 4, y2: 4 }));
    const item = element("li");
    const value = element("b");
    item.append(sign, element("span", name), value);
    list.append(item);
    return [own, value];
  });
  picture.append(cross);
  const steps = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
  let at = steps.length - 1;
  const move = (place) => {
    at = Math.max(0, Math.min(steps.length - 1, place));
    cross.setAttribute("x1", x(steps[at]));
    cross.setAttribute("x2", x(steps[at]));
    heading.textContent = `${title} · step ${steps[at]}`;
    for (const [own, value] of values) value.textContent = show(own.find((p) => p[0] === steps[at])?.[1]);
  };
  picture.addEventListener("pointermove", (event) => {
    const share = (event.clientX - picture.getBoundingClientRect().left) / picture.clientWidth;
    const wanted = xs[0] + share * (xs[1] - xs[0]);
    move(steps.reduce((best, step, place) => (Math.abs(step - wanted) < Math.abs(steps[best] - wanted) ? place : best), 0));
  });
  picture.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) {
      move(at + by);
      event.preventDefault();
    }
  });
  move(at);
  box.append(range, heading, picture, list);
  return box;
}
