// Selection, search, play of rounds, keys, pointer, print.

// --- selection and search ----------------------------------------------------------------------------

function messageAt(x, y) {
  let best = null, nearest = 6;
  panels.forEach((panel, p) => {
    for (let m = above(panel.arrived, timeOf(x - 6)); m < panel.messages; ++m) {
      const send = panel.send[m], recv = panel.recv[m];
      const x0 = xOf(panel.posted[send]);
      if (x0 > x + 6) break;
      const x1 = xOf(panel.end[recv]);
      if (x1 < x - 6 || (foundMarks && !foundMarks[p][m])) continue;
      const y0 = middle(p, panel.rank[send]), y1 = middle(p, panel.rank[recv]);
      if (y < Math.min(y0, y1) - 6 || y > Math.max(y0, y1) + 6) continue;
      const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy || 1;
      const part = Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length));
      const distance = Math.hypot(x - x0 - part * dx, y - y0 - part * dy);
      if (distance < nearest) nearest = distance, best = { panel: p, message: m };
    }
  });
  return best;
}
function workAt(x, y) {
  const time = timeOf(x), slack = 2 / scale();
  for (let p = 0; p < panels.length; ++p) {
    const panel = panels[p], r = Math.floor((y - rowTop(p, 0)) / rowHeight());
    if (r < 0 || r >= data.ranks.length || Math.abs(y - middle(p, r)) > rowHeight() * 0.4) continue;
    const list = panel.work[r];
    for (let i = above(panel.reach[r], time - slack); i < list.length && panel.from(list[i]) <= time + slack; ++i)
      if (panel.to(list[i]) >= time - slack) return { panel: p, event: list[i] };
  }
  return null;
}
function select(what, center) {
  selected = what;
  byId("details").textContent = what ? messageText(panels[what.panel], what.message) : "";
  if (what && center) {
    const panel = panels[what.panel], send = panel.send[what.message], recv = panel.recv[what.message];
    const begin = panel.posted[send], end = panel.end[recv], length = Math.max(view.to - view.from, (end - begin) * 1.5);
    if (begin < view.from || end > view.to) view.from = (begin + end - length) / 2, view.to = view.from + length;
    for (const e of [recv, send]) {
      const top = rowTop(what.panel, panel.rank[e]);
      if (top < AXIS) view.top -= AXIS - top;
      if (top + rowHeight() > shape.height) view.top += top + rowHeight() - shape.height;
    }
    clampView();
  }
  draw();
}
/** The next message in order of time, of those found if there was a search. */
function step(by) {
  if (found) {
    if (found.length === 0) return;
    let at = selected ? found.findIndex(([p, m]) => p === selected.panel && m === selected.message) : -1;
    at = at < 0 ? (by > 0 ? 0 : found.length - 1) : (at + by + found.length) % found.length;
    select({ panel: found[at][0], message: found[at][1] }, true);
    byId("found").textContent = `${at + 1} of ${found.length}`;
    return;
  }
  const p = selected ? selected.panel : 0, count = panels[p].messages;
  if (count === 0) return;
  select({ panel: p, message: selected ? (selected.message + by + count) % count : by > 0 ? 0 : count - 1 }, true);
}
function quantity(text) {
  const match = /^([\d.]+)([a-zµ]*)$/i.exec(text);
  if (!match) return NaN;
  const factors = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 };
  const factor = factors[match[2].toLowerCase().replace(/i?b$/, "")];
  return factor === undefined ? NaN : Number(match[1]) * factor;
}
/** A predicate of messages: every word holds. */
function query(text) {
  const tests = text.split(/\s+/).filter(Boolean).map((word) => {
    const pair = /^(from|to|rank|round|step|lane|operation):(\d+)$/.exec(word);
    if (pair) {
      const value = Number(pair[2]), key = pair[1];
      return (panel, m) => {
        const send = panel.send[m], recv = panel.recv[m];
        const sender = data.ranks[panel.rank[send]].number, receiver = data.ranks[panel.rank[recv]].number;
        if (key === "from") return sender === value;
        if (key === "to") return receiver === value;
        if (key === "rank") return sender === value || receiver === value;
        if (key === "step") return panel.step[send] === value || panel.step[recv] === value;
        return panel[key][send] === value;
      };
    }
    const bound = /^(bytes|wait)([<>])(.+)$/.exec(word);
    if (bound && !Number.isNaN(quantity(bound[3]))) {
      const value = quantity(bound[3]), sign = bound[2] === ">" ? 1 : -1;
      return (panel, m) => sign * ((bound[1] === "bytes" ? panel.bytes[panel.send[m]] : waited(panel, m)) - value) > 0;
    }
    if (/^\d+>\d+$/.test(word)) {
      const number = (panel, e) => data.ranks[panel.rank[e]].number;
      return (panel, m) => chunkText(panel, panel.send[m]) === word ||
        `${number(panel, panel.send[m])}>${number(panel, panel.recv[m])}` === word;
    }
    const plain = word.toLowerCase();
    return (panel, m) => {
      const send = panel.send[m];
      return `${chunkText(panel, send)} ${data.operations[panel.operation[send]].name}`.toLowerCase().includes(plain);
    };
  });
  return (panel, m) => tests.every((test) => test(panel, m));
}
function search(text) {
  found = foundMarks = null;
  byId("found").textContent = "";
  if (text.trim()) {
    const holds = query(text.trim());
    found = [], foundMarks = [];
    panels.forEach((panel, p) => {
      const marks = new Uint8Array(panel.messages);
      for (let m = 0; m < panel.messages; ++m) if (holds(panel, m)) marks[m] = 1, found.push([p, m]);
      foundMarks.push(marks);
    });
    byId("found").textContent = `${found.length} found`;
  }
  draw();
}

// --- rounds ------------------------------------------------------------------------------------------

const lastRound = () => data.operations[operation].rounds - 1;
function showRound(which) {
  round = which === null ? null : Math.max(-1, Math.min(which, lastRound()));
  byId("round").textContent = round === null ? "" : round < 0 ? "before" : `round ${round} of 0 to ${lastRound()}`;
  showData(), draw();
}
function play(on) {
  if (player) clearInterval(player), player = null;
  if (on) {
    if (round === null || round >= lastRound()) showRound(-1);
    player = setInterval(() => {
      showRound(round + 1);
      if (round >= lastRound()) play(false);
    }, 1200);
  }
  byId("play").textContent = player ? "pause" : "play";
}
/** What each rank holds after the round that is played. */
function showData() {
  const box = byId("data");
  box.replaceChildren();
  if (round === null) return;
  const rows = data.memories[data.operations[operation].memory];
  if (!rows) {
    box.textContent = "What ranks hold is shown of collectives on up to 64 ranks, and where a walk-through is short enough to read.";
    return;
  }
  const now = rows[round + 1], before = rows[Math.max(0, round)];
  const table = document.createElement("table"), caption = table.createCaption();
  caption.textContent = `${now.label}: what each rank holds, if rank r begins with 10 (r + 1), 10 (r + 1) + 1, …` +
    (now.ranks.some((cell) => cell.includes("|")) ? " Behind | stands scratch." : "");
  now.ranks.forEach((cell, r) => {
    const row = table.insertRow(), head = document.createElement("th");
    head.textContent = `rank ${r}`, row.append(head);
    cell.forEach((word, i) => {
      const entry = row.insertCell();
      entry.textContent = word;
      if (round >= 0 && before.ranks[r][i] !== word) entry.className = "new";
    });
  });
  box.append(table);
}

// --- events ------------------------------------------------------------------------------------------

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  draw();
}
const isDark = () => document.documentElement.classList.contains("dark");
function setPath(on) {
  showPath = on;
  byId("path").setAttribute("aria-pressed", String(on));
  draw();
}
function quit() {
  play(false), byId("search").value = "", search(""), select(null), showRound(null), chart.focus();
}

let drag = null;
chart.addEventListener("wheel", (event) => {
  event.preventDefault();
  const by = event.deltaY || event.deltaX;
  if (event.shiftKey) return pan(0, by);
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return pan(event.deltaX / scale());
  zoom(Math.exp(by * 0.0015), timeOf(Math.max(event.offsetX, gutter)));
}, { passive: false });
chart.addEventListener("pointerdown", (event) => {
  drag = { x: event.offsetX, y: event.offsetY, moved: false };
  try { chart.setPointerCapture(event.pointerId); } catch { /* a pointer that has gone */ }
});
chart.addEventListener("pointermove", (event) => {
  if (drag) {
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag = { x: event.offsetX, y: event.offsetY, moved: true };
    byId("tip").hidden = true;
    return pan(-dx / scale(), -dy);
  }
  const message = messageAt(event.offsetX, event.offsetY);
  const work = message ? null : workAt(event.offsetX, event.offsetY);
  const tip = byId("tip");
  tip.hidden = !message && !work;
  if (tip.hidden) return;
  tip.textContent = message ? messageText(panels[message.panel], message.message) : workText(panels[work.panel], work.event);
  const left = Math.min(event.offsetX + 14, shape.width - tip.offsetWidth - 4);
  const below = event.offsetY + 16 + tip.offsetHeight < shape.height;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${below ? event.offsetY + 16 : Math.max(0, event.offsetY - tip.offsetHeight - 10)}px`;
});
chart.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) select(messageAt(event.offsetX, event.offsetY));
  drag = null;
});
chart.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
function moveOverview(event) {
  if (!(event.buttons & 1)) return;
  const center = ((event.offsetX - gutter) / (overview.clientWidth - gutter)) * duration;
  pan(center - (view.from + view.to) / 2);
}
overview.addEventListener("pointerdown", moveOverview);
overview.addEventListener("pointermove", moveOverview);

const keys = {
  "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), "0": fit,
  ArrowLeft: () => pan((view.from - view.to) * 0.15), ArrowRight: () => pan((view.to - view.from) * 0.15),
  ArrowUp: () => pan(0, -rowHeight()), ArrowDown: () => pan(0, rowHeight()),
  "[": () => { view.row = Math.max(2, rowHeight() / 1.25), clampView(), draw(); },
  "]": () => { view.row = Math.min(200, rowHeight() * 1.25), clampView(), draw(); },
  n: () => step(1), p: () => step(-1), c: () => setPath(!showPath), t: () => setTheme(!isDark()),
  " ": () => play(!player), ".": () => showRound(round === null ? 0 : round + 1),
  ",": () => showRound(round === null ? lastRound() : round - 1),
  "/": () => byId("search").focus(), "?": () => byId("keys").showModal(), Escape: quit,
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (event.target === byId("search")) {
    if (event.key === "Enter") event.preventDefault(), step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") quit();
    return;
  }
  if (event.target.tagName === "SELECT" || !(event.key in keys)) return;
  if (event.target.tagName === "BUTTON" && event.key === " ") return;
  event.preventDefault();
  keys[event.key]();
});
byId("search").addEventListener("input", (event) => search(event.target.value));
const click = (id, act) => byId(id).addEventListener("click", act);
click("previous", () => step(-1)), click("next", () => step(1));
click("in", () => zoom(0.7)), click("out", () => zoom(1 / 0.7)), click("fit", fit);
click("path", () => setPath(!showPath)), click("theme", () => setTheme(!isDark()));
click("play", () => play(!player)), click("back", keys[","]), click("forth", keys["."]);
click("print", () => window.print()), click("help", () => byId("keys").showModal());
byId("operation").addEventListener("change", (event) => {
  operation = Number(event.target.value);
  play(false), showRound(round === null ? null : -1);
});
let darkBefore = false;
window.addEventListener("beforeprint", () => {
  darkBefore = isDark(), printing = true;
  document.documentElement.classList.remove("dark");
  chart.style.height = `${Math.min(640, Math.max(260, contentHeight() + view.top + 10))}px`, chart.style.width = "1040px";
  clampView(), paint();
});
window.addEventListener("afterprint", () => {
  printing = false, chart.style.height = chart.style.width = "";
  setTheme(darkBefore);
});
new ResizeObserver(() => { clampView(), draw(); }).observe(chart);

// --- beginning ---------------------------------------------------------------------------------------

byId("title").textContent = data.title;
byId("classes").replaceChildren(...data.classes.map((its) => {
  const key = document.createElement("span"), colour = document.createElement("i");
  colour.style.background = its.colour;
  key.append(colour, its.name);
  return key;
}));
byId("facts").textContent = [data.facts, ...panels.map((panel) => panel.source), data.capped].filter(Boolean).join(" · ");
data.operations.forEach((its, o) => {
  if (byId("operation").length < 1000) byId("operation").add(new Option(`${o}: ${its.name}`, String(o)));
});
byId("operation").hidden = data.operations.length < 2;
byId("player").hidden = !data.operations.some((its) => its.rounds > 0);
setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
fit(), paint();
