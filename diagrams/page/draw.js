// What is in view, and how it is drawn.

// --- state -------------------------------------------------------------------------------------------

const view = { from: 0, to: duration, top: 0, row: 0 };  // ns; pixels; 0: rows fill the chart
let selected = null;      // {panel, message}
let found = null;         // [[panel, message]] of a search, or null
let foundMarks = null;    // of each panel, whether a message was found
let showPath = false;
let round = null;         // the round that is played: -1 is before the first; null: none
let player = null;        // an interval while it plays
let operation = 0;        // that is played
let printing = false;
let moving = null;        // a timer, while the view has just moved

const AXIS = 22, HEAD = 20;
const gutter = 14 + 8 * Math.max(...data.ranks.map((rank) => rank.name.length));
const shape = { width: 1, height: 1, row: 1, scale: 1 };  // of the chart, in pixels; asking the document takes long
function measure() {
  shape.width = chart.clientWidth, shape.height = chart.clientHeight;
  const room = shape.height - AXIS - panels.length * (panels.length > 1 ? HEAD : 0);
  shape.row = view.row > 0 ? view.row : Math.max(2.5, Math.min(90, room / (panels.length * data.ranks.length)));
  shape.scale = (shape.width - gutter) / (view.to - view.from);
}
const rowHeight = () => shape.row;
/** The top of a rank's row. */
function rowTop(panel, rank) {
  const head = panels.length > 1 ? HEAD : 0;
  return AXIS - view.top + panel * (head + data.ranks.length * rowHeight()) + head + rank * rowHeight();
}
const contentHeight = () => rowTop(panels.length - 1, data.ranks.length) + view.top;
const scale = () => shape.scale;
const xOf = (ns) => gutter + (ns - view.from) * scale();
const timeOf = (x) => view.from + (x - gutter) / scale();
const bar = () => Math.max(3, Math.min(14, rowHeight() * 0.3));
const middle = (panel, rank) => rowTop(panel, rank) + rowHeight() / 2;

function clampView() {
  measure();
  const least = Math.max(duration * 1e-7, Math.min(4, duration));
  let length = Math.min(Math.max(view.to - view.from, least), duration * 1.02);
  view.from = Math.min(Math.max(view.from, -duration * 0.01), duration * 1.01 - length);
  view.to = view.from + length;
  view.top = Math.max(0, Math.min(view.top, contentHeight() - shape.height + 8));
  measure();
}
/** Draws the view in motion, and whole as soon as it rests. */
function move() {
  clearTimeout(moving);
  moving = setTimeout(() => { moving = null, draw(); }, 120);
  clampView(), draw();
}
function zoom(factor, at) {
  const center = at === undefined ? (view.from + view.to) / 2 : at;
  view.from = center - (center - view.from) * factor;
  view.to = center + (view.to - center) * factor;
  move();
}
function pan(ns, rows = 0) {
  view.from += ns, view.to += ns, view.top += rows;
  move();
}
function fit() {
  view.from = -duration * 0.005, view.to = duration * 1.005, view.top = 0, view.row = 0;
  clampView(), draw();
}

// --- drawing -----------------------------------------------------------------------------------------

let scheduled = false;
function draw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false, paint(); });
}
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function prepare(canvas) {
  const ratio = printing ? 3 : window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) canvas.width = width, canvas.height = height;
  const to = canvas.getContext("2d");
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  to.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return to;
}
function niceStep(length, ticks) {
  const rough = length / ticks, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  return rounds ? Math.max(1000, step) : Math.max(1, step);
}

const most = () => (moving ? 3000 : 12000);  // arrows: fewer while the view moves, so that it follows the hand
/** Messages in view, thinned where several would cover the same pixels. */
function visibleMessages(panel, p) {
  const list = [], seen = new Set(), height = shape.height;
  let hidden = 0;
  for (let m = above(panel.arrived, view.from); m < panel.messages; ++m) {
    const send = panel.send[m], recv = panel.recv[m];
    if (panel.posted[send] > view.to) break;
    if (panel.end[recv] < view.from) continue;
    const a = middle(p, panel.rank[send]), b = middle(p, panel.rank[recv]);
    if (Math.max(a, b) < AXIS || Math.min(a, b) > height) continue;
    if (panel.messages > 2000 && !(foundMarks && foundMarks[p][m])) {
      const x0 = Math.round(xOf(panel.posted[send]) / 2), x1 = Math.round(xOf(panel.end[recv]) / 2);
      const key = ((panel.rank[send] * data.ranks.length + panel.rank[recv]) * 65536 + (x0 & 65535)) * 65536 + (x1 & 65535);
      if (seen.has(key)) { ++hidden; continue; }
      seen.add(key);
    }
    list.push(m);
  }
  if (list.length > most() && !foundMarks) {
    const every = Math.ceil(list.length / most()), thin = list.filter((_, i) => i % every === 0);
    hidden += list.length - thin.length;
    return { list: thin, hidden };
  }
  return { list, hidden };
}

function paint() {
  measure();
  const to = prepare(chart), { width, height } = shape;
  const back = style("--back"), text = style("--text"), soft = style("--soft"), line = style("--line");
  to.fillStyle = back, to.fillRect(0, 0, width, height);
  to.font = "12px system-ui, 'DejaVu Sans', sans-serif", to.textBaseline = "middle";
  // Rows.
  for (let p = 0; p < panels.length; ++p) {
    for (let r = 0; r < data.ranks.length; ++r) {
      const top = rowTop(p, r);
      if (top > height || top + rowHeight() < AXIS) continue;
      if (r % 2 === 0) to.fillStyle = style("--row"), to.fillRect(gutter, top, width - gutter, rowHeight());
    }
  }
  // Axis.
  to.strokeStyle = line, to.lineWidth = 1;
  const step = niceStep(view.to - view.from, Math.max(2, (width - gutter) / 110));
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round(xOf(at)) + 0.5;
    if (x < gutter) continue;
    to.beginPath(), to.moveTo(x, AXIS), to.lineTo(x, height), to.stroke();
  }
  to.save();
  to.beginPath(), to.rect(gutter, AXIS, width - gutter, height - AXIS), to.clip();
  let hidden = 0;
  for (let p = 0; p < panels.length; ++p) hidden += paintPanel(to, panels[p], p, width, height);
  to.restore();
  // What covers the rows that were scrolled away.
  to.fillStyle = back, to.fillRect(0, 0, width, AXIS);
  to.fillStyle = soft, to.textAlign = "center";
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = xOf(at);
    if (x >= gutter && x < width - 20) to.fillText(at === 0 && !rounds ? "0" : timeText(at), Math.max(x, gutter + 12), AXIS / 2);
  }
  to.textAlign = "left";
  const every = Math.max(1, Math.ceil(14 / rowHeight()));
  for (let p = 0; p < panels.length; ++p) {
    if (panels.length > 1) {
      to.fillStyle = text;
      const y = rowTop(p, 0) - HEAD / 2;
      if (y > AXIS) to.fillText(panels[p].name, 4, y);
    }
    to.fillStyle = soft;
    for (let r = 0; r < data.ranks.length; r += every) {
      const y = middle(p, r);
      if (y > AXIS + 4 && y < height) to.fillText(data.ranks[r].name, 8, y);
    }
  }
  if (hidden > 0) {
    const note = `${hidden} messages lie under others: zoom in`;
    to.fillStyle = back, to.fillRect(width - to.measureText(note).width - 12, height - 20, width, 20);
    to.fillStyle = soft, to.textAlign = "right", to.fillText(note, width - 6, height - 10), to.textAlign = "left";
  }
  chart.dataset.hidden = hidden;
  paintOverview();
}

const faded = (panel, e) => round !== null && (panel.operation[e] !== operation || panel.round[e] !== round);

function paintPanel(to, panel, p, width, height) {
  const thick = bar(), pathColour = style("--path"), work = style("--work"), wait = style("--wait"), mark = style("--mark");
  // Ranks at work, and the line on which they wait.
  for (let r = 0; r < data.ranks.length; ++r) {
    const y = middle(p, r);
    if (y + rowHeight() < AXIS || y - rowHeight() > height) continue;
    to.globalAlpha = 1, to.strokeStyle = wait, to.lineWidth = 1;
    to.beginPath(), to.moveTo(Math.max(gutter, xOf(0)), y), to.lineTo(Math.min(width, xOf(panel.duration)), y), to.stroke();
    const list = panel.work[r];
    let last = -1;
    for (let i = above(panel.reach[r], view.from); i < list.length; ++i) {
      const e = list[i], from = panel.from(e);
      if (from > view.to) break;
      const x = xOf(from), end = xOf(panel.to(e));
      if (end - last < 0.5) continue;  // nothing of it would be seen
      last = end;
      const kind = panel.kind[e], message = kind === SEND || kind === RECV;
      const colour = message ? work : colourOf(panel, e);
      const tall = KINDS[kind] === "compute" ? Math.min(rowHeight() * 0.72, 34) : message ? thick * 0.6 : thick;
      const long = Math.max(end - x, 0.8);
      to.globalAlpha = faded(panel, e) ? 0.15 : 1;
      if (KINDS[kind] === "copy") {
        to.strokeStyle = colour, to.lineWidth = 1.2;
        to.strokeRect(x, y - tall / 2, long, tall);
      } else {
        const gap = KINDS[kind] === "compute" && long > 3 ? 0.8 : 0;  // between neighbours
        to.fillStyle = colour, to.fillRect(x, y - tall / 2, long - gap, tall);
      }
      if (showPath && panel.onPath[e]) {
        to.strokeStyle = pathColour, to.lineWidth = 1.6;
        to.strokeRect(x, y - tall / 2 - 1, long, tall + 2);
      }
      const name = KINDS[kind] === "compute" ? chunkText(panel, e) : "";
      if (name && long > 6.8 * name.length + 2) {
        to.fillStyle = "#ffffff", to.textAlign = "center";
        to.fillText(name, (Math.max(x, gutter) + Math.min(end, width)) / 2, y), to.textAlign = "left";
      }
    }
  }
  // Messages, one path for each colour.
  const { list, hidden } = visibleMessages(panel, p);
  const paths = new Map(), few = list.length <= 1500;
  const pathOf = (key) => {
    if (!paths.has(key)) paths.set(key, new Path2D());
    return paths.get(key);
  };
  const arrow = (path, m) => {
    const send = panel.send[m], recv = panel.recv[m];
    const x0 = xOf(panel.posted[send]), x1 = xOf(panel.end[recv]);
    const y0 = middle(p, panel.rank[send]), y1 = middle(p, panel.rank[recv]);
    path.moveTo(x0, y0), path.lineTo(x1, y1);
    if (!few) return;
    const length = Math.hypot(x1 - x0, y1 - y0) || 1, ux = (x1 - x0) / length, uy = (y1 - y0) / length, head = 7;
    path.moveTo(x1 - head * ux - 3 * uy, y1 - head * uy + 3 * ux), path.lineTo(x1, y1);
    path.lineTo(x1 - head * ux + 3 * uy, y1 - head * uy - 3 * ux);
  };
  for (const m of list) {
    const send = panel.send[m];
    const dim = faded(panel, send) || (foundMarks && !foundMarks[p][m]);
    arrow(pathOf(colourOf(panel, send) + (dim ? "-" : "+")), m);
  }
  for (const [key, path] of paths) {
    to.globalAlpha = key.endsWith("-") ? 0.1 : list.length > 4000 && !foundMarks ? 0.4 : 1;
    to.strokeStyle = key.slice(0, -1), to.lineWidth = round !== null && key.endsWith("+") ? 2 : few ? 1.3 : 0.8, to.stroke(path);
  }
  to.globalAlpha = 1;
  if (showPath) {
    const path = new Path2D();
    for (const m of list) if (panel.onPath[panel.send[m]] && panel.onPath[panel.recv[m]]) arrow(path, m);
    to.strokeStyle = pathColour, to.lineWidth = 2.4, to.stroke(path);
  }
  if (list.length <= 150) labels(to, panel, p, list);
  if (selected && selected.panel === p) {
    const path = new Path2D();
    arrow(path, selected.message);
    to.strokeStyle = mark, to.lineWidth = 3, to.stroke(path);
  }
  return hidden;
}

/** Names of messages, where there is room. */
function labels(to, panel, p, list) {
  const taken = [];
  const back = style("--back");
  for (const m of list) {
    const send = panel.send[m], recv = panel.recv[m], name = chunkText(panel, send);
    if (!name || faded(panel, send)) continue;
    const x0 = xOf(panel.posted[send]), x1 = xOf(panel.end[recv]);
    const y0 = middle(p, panel.rank[send]), y1 = middle(p, panel.rank[recv]);
    const long = to.measureText(name).width + 6;
    if (Math.hypot(x1 - x0, y1 - y0) < long + 14) continue;
    for (const part of [0.5, 0.35, 0.65, 0.25, 0.75]) {
      const box = [x0 + (x1 - x0) * part - long / 2, y0 + (y1 - y0) * part - 8, long, 16];
      if (taken.some((b) => box[0] < b[0] + b[2] && b[0] < box[0] + box[2] && box[1] < b[1] + b[3] && b[1] < box[1] + box[3])) continue;
      taken.push(box);
      to.globalAlpha = 0.85, to.fillStyle = back, to.fillRect(...box), to.globalAlpha = 1;
      to.fillStyle = colourOf(panel, send), to.textAlign = "center";
      to.fillText(name, box[0] + long / 2, box[1] + 8), to.textAlign = "left";
      break;
    }
  }
}

/** Everything in small: how busy all ranks are, and which part is in view. */
function paintOverview() {
  const to = prepare(overview), width = overview.clientWidth, height = overview.clientHeight;
  const cells = Math.max(1, Math.floor((width - gutter) / 2));
  if (!paintOverview.busy || paintOverview.busy.length !== cells) {
    const busy = new Float64Array(cells), each = duration / cells;
    for (const list of panels[0].work) {
      for (const e of list) {
        const from = panels[0].from(e), end = panels[0].to(e);
        for (let c = Math.max(0, Math.floor(from / each)); c < cells && c * each < end; ++c)
          busy[c] += (Math.min(end, (c + 1) * each) - Math.max(from, c * each)) / each;
      }
    }
    paintOverview.busy = busy.map((value) => value / data.ranks.length);
  }
  to.fillStyle = style("--work");
  paintOverview.busy.forEach((value, c) => {
    const tall = Math.min(1, value) * (height - 6);
    to.fillRect(gutter + c * 2, height - 3 - tall, 2, tall);
  });
  const x = (ns) => gutter + ((width - gutter) * Math.min(Math.max(ns, 0), duration)) / duration;
  to.strokeStyle = style("--mark"), to.lineWidth = 1.5;
  to.strokeRect(x(view.from), 1.5, Math.max(2, x(view.to) - x(view.from) - 1), height - 3);
  to.fillStyle = style("--soft"), to.font = "11px system-ui, sans-serif", to.textBaseline = "middle";
  to.fillText("at work", 8, height / 2);
}

