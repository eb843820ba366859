"use strict";
// The timelines that a page shows, one or two of the same ranks, and words for what is in them.

const data = JSON.parse(document.getElementById("timeline").textContent);
const byId = (id) => document.getElementById(id);
const chart = byId("chart"), overview = byId("overview");
const KINDS = data.kinds, SEND = KINDS.indexOf("send"), RECV = KINDS.indexOf("recv");

// --- data --------------------------------------------------------------------------------------------

/** Columns of events as typed arrays; what is not there: -1. */
function read(panel) {
  const count = panel.posted.length;
  const ints = (list) => Int32Array.from(list);
  const its = { name: panel.name, source: panel.source, count };
  for (const key of ["rank", "kind", "lane", "operation", "step", "round", "chunk"]) its[key] = ints(panel[key]);
  its.bytes = Float64Array.from(panel.bytes);
  its.posted = new Float64Array(count), its.start = new Float64Array(count), its.end = new Float64Array(count);
  for (let e = 0, at = 0; e < count; ++e) {  // posted is a difference from the event before
    at += panel.posted[e];
    its.posted[e] = at, its.start[e] = at + panel.start[e], its.end[e] = its.start[e] + panel.end[e];
  }
  its.late = panel.late ? Float64Array.from(panel.late.map((ns) => (ns === null ? NaN : ns))) : null;
  its.onPath = new Uint8Array(count);
  for (const e of panel.path) its.onPath[e] = 1;
  its.duration = 1;
  for (let e = 0; e < count; ++e) its.duration = Math.max(its.duration, its.end[e]);
  // Work of each rank in order of time.
  its.work = Array.from({ length: data.ranks.length }, () => []);
  const message = (e) => its.kind[e] === SEND || its.kind[e] === RECV;
  its.from = (e) => (message(e) ? its.posted[e] : its.start[e]);
  its.to = (e) => (message(e) ? its.start[e] : its.end[e]);
  for (let e = 0; e < count; ++e) if (its.to(e) > its.from(e)) its.work[its.rank[e]].push(e);
  its.reach = its.work.map((list) => {
    list.sort((a, b) => its.from(a) - its.from(b) || a - b);
    let most = 0;
    return Float64Array.from(list, (e) => (most = Math.max(most, its.to(e))));
  });
  // Messages in order of their injection.
  const pairs = [];
  for (let i = 0; i < panel.messages.length; i += 2) pairs.push([panel.messages[i], panel.messages[i + 1]]);
  pairs.sort((a, b) => its.posted[a[0]] - its.posted[b[0]] || a[0] - b[0]);
  its.send = ints(pairs.map((pair) => pair[0])), its.recv = ints(pairs.map((pair) => pair[1]));
  its.messages = pairs.length;
  let most = 0;
  its.arrived = Float64Array.from(its.recv, (e) => (most = Math.max(most, its.end[e])));
  its.ofEvent = new Int32Array(count).fill(-1);
  for (let m = 0; m < its.messages; ++m) its.ofEvent[its.send[m]] = its.ofEvent[its.recv[m]] = m;
  return its;
}
const panels = data.panels.map(read);
const duration = Math.max(...panels.map((panel) => panel.duration));

/** The first index of an ascending list whose value is above `value`. */
function above(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

const chunkText = (panel, e) => {
  const chunk = data.chunks[panel.chunk[e]];
  return chunk ? chunk.text + (chunk.reduced ? " +=" : "") : "";
};
const colourOf = (panel, e) => {
  const chunk = data.chunks[panel.chunk[e]];
  if (chunk && chunk.colour) return chunk.colour;  // of a class of computations
  return data.colours[(chunk ? chunk.origin : 0) % data.colours.length];
};
/** How long the receiver was idle until a message came, from when it could first take it. */
function waited(panel, m) {
  const recv = panel.recv[m], rank = panel.rank[recv];
  const begin = panel.start[recv], end = panel.end[recv];
  let idle = Math.max(0, end - begin);
  const list = panel.work[rank];
  for (let i = above(panel.reach[rank], begin); i < list.length && panel.from(list[i]) < end; ++i)
    idle -= Math.max(0, Math.min(end, panel.to(list[i])) - Math.max(begin, panel.from(list[i])));
  return Math.max(0, idle);
}

// --- words -------------------------------------------------------------------------------------------

const rounds = data.panels.every((panel) => panel.name === "rounds");
function timeText(ns) {
  if (rounds) return `round ${(ns / 1000).toFixed(2).replace(/\.?0+$/, "")}`;
  const size = Math.abs(ns);
  const scaled = (unit, name) => {
    const digits = size / unit;
    return `${(ns / unit).toFixed(digits < 9.995 ? 2 : digits < 99.95 ? 1 : 0)} ${name}`;
  };
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 999.5e3) return scaled(1e3, "µs");
  if (size < 999.5e6) return scaled(1e6, "ms");
  return scaled(1e9, "s");
}
function bytesText(bytes) {
  let value = bytes, unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    value /= 1024, unit = next;
  }
  return unit === "B" ? `${bytes} B` : `${value.toFixed(1)} ${unit}`;
}
const operationText = (panel, e) => {
  const o = panel.operation[e];
  return data.operations.length > 1 ? `${data.operations[o].name} (operation ${o})` : data.operations[o].name;
};
const lateText = (panel, e) => {
  if (!panel.late || Number.isNaN(panel.late[e])) return "";
  const ns = panel.late[e];
  return ns === 0 ? "ended as predicted" : `ended ${timeText(Math.abs(ns))} ${ns > 0 ? "later" : "earlier"} than predicted`;
};
function messageText(panel, m) {
  const send = panel.send[m], recv = panel.recv[m];
  const name = chunkText(panel, send);
  const lines = [
    `${name ? name + ": " : ""}rank ${data.ranks[panel.rank[send]].number} → rank ${data.ranks[panel.rank[recv]].number}, ` +
      `${bytesText(panel.bytes[send])}, ${operationText(panel, send)}, round ${panel.round[send]}` +
      (panel.lane[send] ? `, lane ${panel.lane[send]}` : "") + (panels.length > 1 ? `, ${panel.name}` : ""),
  ];
  if (!rounds) {
    lines.push(`sent at ${timeText(panel.posted[send])}, arrived at ${timeText(panel.end[recv])}: ` +
      `${timeText(panel.end[recv] - panel.posted[send])} under way`);
    const idle = waited(panel, m), unposted = panel.posted[recv] - panel.posted[send];
    lines.push(idle > 0 ? `the receiver waited ${timeText(idle)} for it` : "the receiver did not wait for it");
    if (unposted > 0) lines.push(`its receive was posted ${timeText(unposted)} after it was sent`);
  }
  lines.push(`step ${panel.step[send]} of rank ${data.ranks[panel.rank[send]].number} to step ${panel.step[recv]} of rank ` +
    `${data.ranks[panel.rank[recv]].number}`);
  const late = lateText(panel, recv);
  if (late) lines.push(late);
  return lines.join("\n");
}
function workText(panel, e) {
  const name = chunkText(panel, e);
  const what = `${KINDS[panel.kind[e]]}${name ? " " + name : ""}`;
  const lines = [`rank ${data.ranks[panel.rank[e]].number}: ${what}` + (panel.bytes[e] > 0 ? `, ${bytesText(panel.bytes[e])}` : "") +
    `, ${operationText(panel, e)}, step ${panel.step[e]}, round ${panel.round[e]}`];
  if (!rounds) lines.push(`${timeText(panel.from(e))} to ${timeText(panel.to(e))}: ${timeText(panel.to(e) - panel.from(e))}`);
  const late = lateText(panel, e);
  if (late) lines.push(late);
  return lines.join("\n");
}

