// The page asks for the state while it is visible, and shows it. Data from the
// servers gets into the page as text, never as HTML, with invisible characters
// escaped (shown).
import * as shape from "./shape.js";
const { age, between, plural, shown } = shape;

const at = (id) => document.getElementById(id);
const questions = {
  revoke: ["Ask this contender to give up?", "Its program decides whether it does."],
  break: ["Delete its claim by force?", "The next contender gets its turn immediately, although the former holder may still be at work."],
}; // by act

let every = 2000; // milliseconds
let lastAnswer = Date.now();
let acts = [];
let seen = null; // the last state of the servers
let version = 0; // of seen; 0: nothing yet
let clock = 0; // the server's clock less this machine's, in seconds
let rows = []; // of all paths

const now = () => Date.now() / 1000 + clock;

// --- elements

function set(element, text) {
  const safe = shown(text);
  if (element.textContent !== safe) element.textContent = safe;
}

// make makes an element of a class with children: elements, or text.
function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.map((c) => (c instanceof Node ? c : shown(c))));
  return element;
}

// svg makes an SVG element. Numbers are rounded, except data.
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    const isLength = typeof value === "number" && !name.startsWith("data-");
    if (value !== undefined) element.setAttribute(name, isLength ? Math.round(value * 10) / 10 : shown(value));
  }
  element.append(...children.map((c) => (c instanceof Node ? c : shown(c))));
  return element;
}

// keyed brings the elements in a list up to date with the items. An element
// stays with its item, so that it keeps what is open, selected and in focus.
function keyed(list, items, key, create, update) {
  const wanted = new Map(items.map((item) => [key(item), item]));
  const there = new Map();
  for (const element of [...list.children]) {
    if (wanted.has(element.key)) there.set(element.key, element);
    else element.remove();
  }
  let next = list.firstElementChild;
  for (const [k, item] of wanted) {
    const element = there.get(k) ?? Object.assign(create(item), { key: k });
    update(element, item);
    if (element === next) next = next.nextElementSibling;
    else list.insertBefore(element, next);
  }
}

// same remakes an element's children if of has changed, and otherwise leaves
// them.
function same(element, of, remake) {
  const key = JSON.stringify(of);
  if (element.madeOf === key) return;
  element.madeOf = key;
  element.replaceChildren(...remake());
}

// table makes a table with a caption, in a box that scrolls, or updates the
// table in a box. A cell is text, [text, class], or { of, make }: make makes
// the cell's elements, which stay until of changes.
function table(caption, heads, lines, box = newTable()) {
  set(box.caption, caption);
  box.setAttribute("aria-label", shown(caption));
  same(box.head, heads, () => heads.map((h) => (h ? Object.assign(make("th", "", h), { scope: "col" }) : make("td"))));
  keyed(box.lines, lines, (l) => l.key, () => make("tr"), (line, { cells }) => {
    while (line.children.length > cells.length) line.lastChild.remove();
    cells.forEach((c, n) => {
      const cell = line.children[n] ?? line.appendChild(make("td"));
      if (c?.make) {
        same(cell, c.of, () => [c.make()].flat());
        return;
      }
      const [text, kind] = Array.isArray(c) ? c : [c, ""];
      set(cell, text);
      if (cell.className !== kind) cell.className = kind;
    });
  });
  return box;
}

function newTable() {
  const parts = { caption: make("caption"), head: make("tr"), lines: make("tbody") };
  const box = make("div", "scroll", make("table", "", parts.caption, make("thead", "", parts.head), parts.lines));
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  return Object.assign(box, parts);
}

const swatched = (owner) => ({ of: owner, make: () => [legendOf(owner), bdi(owner)] });

const bdi = (text) => make("bdi", "", text);
const clockOf = (t) => (t ? new Date(t * 1000).toLocaleTimeString([], { hour12: false }) : "");

// --- the place in the page, which is in its URL

const start = { q: "", f: "", k: "", s: "trouble", r: "5", open: [] };
let place = placeOf(location.hash);

function placeOf(hash) {
  const p = new URLSearchParams(hash.slice(1));
  const of = Object.fromEntries(Object.entries(start).map(([k, v]) => [k, k === "open" ? p.getAll("open") : p.get(k) ?? v]));
  if (!["1", "5", "30", "120"].includes(of.r)) of.r = start.r;
  return of;
}

function go(change) {
  place = { ...place, ...change };
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(place)) {
    if (k === "open") v.forEach((path) => p.append("open", path));
    else if (v !== start[k]) p.set(k, v);
  }
  history.replaceState(null, "", "#" + p);
  draw();
}
addEventListener("hashchange", () => {
  place = placeOf(location.hash);
  draw();
});

// --- timelines

const marks = {
  released: ["released", (x, y, h) => svg("path", { class: "released", d: `M${x} ${y}v${h}` })],
  lost: ["lost: silent until its session ended", (x, y, h) => svg("path", { class: "lost", d: `M${x - 5} ${y}h10l-5 ${Math.min(h, 11)}z` })],
  crashed: ["crashed: its connection was gone, then its session", (x, y, h) => svg("path", { class: "crashed", d: `M${x - 4} ${y + h / 2 - 4}l8 8m0 -8l-8 8` })],
  broken: ["broken, by this page", (x, y, h) => svg("path", { class: "broken", d: `M${x} ${y + h / 2 - 6}l5 6l-5 6l-5 -6z` })],
  "": ["ended, not known how", (x, y, h) => svg("circle", { class: "not-known", cx: x, cy: y + h / 2, r: 3.5 })],
};

// scale tells where a time is in a drawing that is so wide, and ends ahead
// seconds from now.
function scale(width, ahead = 0) {
  const to = now() + ahead, from = now() - place.r * 60;
  const x = (t) => Math.max(0, Math.min(width, ((t - from) / (to - from)) * width));
  return { from, to, x, width };
}

let hatches = 0;
function hatched(width, height, y = 0) {
  const id = "hatch" + hatches++ % 100000;
  const pattern = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("path", { class: "hatch", d: "M0 0v6" }));
  return [svg("defs", {}, pattern), svg("rect", { class: "unknown", x: 0, y, width, height, fill: `url(#${id})` })];
}

// bars draws who held, as far as it is known. Intervals of one lane overlap
// only if several can hold it.
function bars(sc, intervals, y, height, labels) {
  const all = [...hatched(sc.width, height, y)];
  const ends = [];
  for (const i of intervals) {
    const from = Math.max(i.begin[1], sc.from), to = shape.until(i, seen);
    if (to < sc.from || (i.end && i.end[1] < sc.from)) continue;
    const x = sc.x(from), width = Math.max(i.nobody ? 0.5 : 2, sc.x(to) - x);
    const what = i.nobody ? "nobody" : i.owner || "unknown";
    const data = { "data-owner": i.nobody ? "" : i.owner, "data-begin": i.begin.join(), "data-end": i.end?.join(), "data-how": i.how ?? "", "data-nobody": i.nobody };
    const title = svg("title", {}, what + ", " + lasting(i) + (i.end && !i.nobody ? ", " + marks[i.how ?? ""][0] : ""));
    if (i.nobody) {
      const middle = y + height / 2;
      all.push(svg("g", { class: "gap", ...data }, title, svg("rect", { class: "known", x, y, width, height }),
        svg("path", { class: i.nobody === "sure" ? "base-line" : "at-looks", d: `M${x} ${middle}h${width}` }),
        ...(width > 38 ? [svg("text", { class: "faint", x: x + width / 2, y: middle - 2, "text-anchor": "middle" }, age(to - i.begin[1]))] : [])));
      continue;
    }
    all.push(svg("g", { class: "hold", ...data }, title, svg("rect", { class: shape.colour(i.owner), x, y: y + 1, width, height: height - 2, rx: 2 }),
      ...(labels && width > 30 ? [svg("text", { class: "on", x: x + 4, y: y + height / 2 + 4 }, fitted(what, width - 8))] : [])));
    if (i.end && i.end[0] >= sc.from) ends.push(marks[i.how ?? ""][1](x + width, y + 1, height - 2));
  }
  return [...all, ...ends];
}

const fitted = (text, width) => (text.length * 6.2 <= width ? text : text.slice(0, Math.max(1, Math.floor(width / 6.2) - 1)) + "…");

function lasting(i) {
  const to = shape.until(i, seen);
  if (!i.begin[0] && !i.nobody) return "for at least " + age(to - i.begin[1]);
  return i.end ? "for " + between(i.end[0] - i.begin[1], i.begin[0] ? i.end[1] - i.begin[0] : undefined) : "since " + age(now() - i.begin[1]);
}

// waiters draws how many waited, as far as looks have shown it.
function waiters(sc, steps, y, height) {
  const most = Math.max(1, ...steps.map((s) => s.waiting));
  return steps.filter((s) => s.waiting > 0 && s.to >= sc.from).map((s) => {
    const x = sc.x(s.from), width = Math.max(1, sc.x(s.to) - x), tall = Math.max(2, (s.waiting / most) * height);
    return svg("g", { class: "wait", "data-waiting": s.waiting, "data-from": s.from, "data-to": s.to }, svg("title", {}, plural(s.waiting, "waits", "wait")),
      svg("rect", { class: "waiters", x, y: y + height - tall, width, height: tall }),
      ...(width > 16 && height > 10 ? [svg("text", { x: x + 2, y: y + height - 1 }, String(s.waiting))] : []));
  });
}

// plot draws values from look to look as lines, and a limit.
function plot(sc, lines, height, unit, limit) {
  const most = Math.max(1, limit ?? 0, ...lines.flatMap((l) => l.steps.filter((s) => s.to >= sc.from).map((s) => s.value)));
  const y = (v) => height - 2 - (v / most) * (height - 14);
  const all = [...hatched(sc.width, height)];
  for (const s of runsIn(sc)) all.push(svg("rect", { class: "known", x: s.x, y: 0, width: s.width, height }));
  all.push(svg("path", { class: "grid", d: `M0 ${height - 2}h${sc.width}` }));
  for (const l of lines) {
    let d = "", area = "", last = null;
    for (const s of l.steps.filter((s) => s.to >= sc.from)) {
      const x0 = sc.x(s.from), x1 = sc.x(s.to);
      d += last === s.from ? `V${y(s.value)}H${x1}` : `M${x0} ${y(s.value)}H${x1}`;
      area += `M${x0} ${height - 2}V${y(s.value)}H${x1}V${height - 2}z`;
      last = s.to;
    }
    if (l.area) all.push(svg("path", { class: "area", d: area }));
    all.push(svg("path", { class: "edge " + (l.kind ?? ""), d }));
  }
  if (limit) all.push(svg("path", { class: "edge limit", d: `M0 ${y(limit)}H${sc.width}` }));
  all.push(svg("text", { class: "faint", x: 2, y: 10 }, "most " + (unit === "s" ? age(most) : Math.round(most * 100) / 100 + (unit ?? ""))));
  return all;
}

function runsIn(sc) {
  return seen.runs.filter(([, to]) => to >= sc.from).map(([from, to]) => ({ x: sc.x(from), width: Math.max(1, sc.x(to) - sc.x(from)) }));
}

// axis draws times below or above a picture.
function axis(sc, y) {
  const step = [10, 30, 60, 300, 600, 1200, 1800].find((s) => (sc.to - sc.from) / s <= sc.width / 70) ?? 1800;
  const all = [];
  for (let t = Math.ceil(sc.from / step) * step; t < sc.to; t += step) {
    const text = new Date(t * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, ...(step < 60 ? { second: "2-digit" } : {}) });
    all.push(svg("path", { class: "grid", d: `M${sc.x(t)} ${y}v4` }), svg("text", { class: "faint", x: sc.x(t), y: y + 14, "text-anchor": sc.x(t) < 24 ? "start" : "middle" }, text));
  }
  return all;
}

// ticks draws the attempts of a ledger, or the slots of a schedule: slots that
// ran, slots that were left out, and the next one. What came before the oldest
// record is not known.
function ticks(sc, { jobs, schedule }, skips, height) {
  const y = height / 2, oldest = Math.min(...jobs.map((j) => j.due || j.begun)), next = schedule?.next;
  const since = schedule && jobs.length ? sc.x(oldest) - 4 : 0;
  const all = [...hatched(sc.width, height), svg("rect", { class: "known", x: since, y: 0, width: sc.width - since, height }), svg("path", { class: "grid", d: `M0 ${y}h${sc.width}` })];
  for (const [after, until, n, atUntil] of skips.filter(([, until]) => until >= sc.from)) {
    const from = sc.x(after) + 4, to = sc.x(until) + (atUntil ? 3 : -4), middle = Math.max(4, (from + to) / 2);
    all.push(svg("g", { class: "left-out", "data-after": after, "data-until": until, "data-slots": n, "data-at-until": atUntil }, svg("title", {}, leftOut([after, until, n, atUntil])),
      svg("path", { class: "at-looks", d: `M${from} ${y}H${Math.max(from, to)}` }),
      svg("circle", { class: "not-known", cx: middle, cy: y, r: 5 }), svg("path", { class: "second edge", d: `M${middle - 3.5} ${y + 3.5}l7 -7` }),
      ...(n > 1 ? [svg("text", { x: middle + 7, y: y - 3 }, String(n))] : [])));
  }
  for (const j of jobs.filter((j) => (j.due || j.begun) >= sc.from)) {
    const x = Math.max(4, sc.x(j.due || j.begun));
    const shapes = {
      done: `M${x} ${y - 7}v14`, failed: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, corrupt: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`,
      running: `M${x - 4} ${y - 5}l8 5l-8 5z`, unfinished: `M${x - 4} ${y + 5}h8l-4 -9z`,
    };
    const late = lateness(j) > lateAfter ? ", late by " + age(lateness(j)) : "";
    all.push(svg("g", { class: "tick", "data-key": j.key, "data-state": j.state, "data-late": late ? lateness(j) : undefined }, svg("title", {}, j.key + ": " + j.state + late),
      ...(late ? [svg("path", { class: "unfinished", "stroke-width": 2, d: `M${x} ${y + 9}H${sc.x(j.begun)}` })] : []),
      svg("path", { class: j.state, fill: "none", "stroke-width": 2.5, d: shapes[j.state] ?? shapes.done })));
  }
  if (!next) return all;
  const x = Math.min(sc.x(next), sc.width - 2);
  all.push(svg("g", { class: "next", "data-next": next }, svg("path", { class: "edge third", d: `M${x} ${y - 9}v18` }),
    svg("text", { class: "faint", x: x - 3, y: 10, "text-anchor": "end" }, next > now() ? "next in " + age(next - now()) : "due since " + age(now() - next))));
  return all;
}

// leftOut says how many slots were left out, and between which times.
function leftOut([after, until, n, atUntil]) {
  if (atUntil && n === 1) return "left out: " + clockOf(until);
  return (atUntil ? n + " left out, the last at " + clockOf(until) + ", after " : n + " left out, before " + clockOf(until) + " and after ") + clockOf(after);
}

// earlier is how many slots of a schedule were left out at times that are not
// known.
const earlier = (row) => (row.recipe.schedule?.left_out ?? 0) - skipsOf(row).reduce((n, s) => n + s[2], 0);
const skipsOf = (row) => seen.skips[row.path] ?? [];

const lateAfter = 5; // seconds
const lateness = (job) => (job.due && job.begun ? job.begun - job.due : 0);

// strip draws the keys of shards, coloured by owner.
function strip(width, recipe, height) {
  const keys = recipe.keys, each = width / keys.length;
  return keys.map((k, n) => {
    const state = shape.keyState(k, seen.silent);
    return keyCell({ key: k.key, state, owner: k.owner, to: k.moving ? k.desired || "nobody" : "" }, n * each, 2, Math.max(0.5, each - (each > 4 ? 1 : 0)), height - 4);
  });
}

// keyCell draws a key: filled if somebody has it, with an arrow if it moves,
// crossed if its owner is silent, and as a dashed frame if nobody has it, or if
// it is still to come.
function keyCell({ key, state, owner, to, from }, x, y, w, h) {
  const said = state === "coming" ? "comes from " + from : (owner || "nobody") + (to ? ", moves to " + to : "") + (from ? ", came from " + from : "") + (state === "silent" ? ", silent" : "");
  const framed = state === "unowned" || state === "coming";
  const cell = svg("g", { class: "key", "data-key": key, "data-owner": owner, "data-state": state, "data-to": to || undefined, "data-from": from },
    svg("title", {}, key + ": " + said),
    svg("rect", framed ? { class: "frame dashed " + state, x: x + 1, y: y + 1, width: Math.max(0.5, w - 2), height: h - 2 } : { class: shape.colour(owner), x, y, width: w, height: h }));
  if (to && !framed) cell.append(svg("path", { class: "known", d: `M${x + w} ${y}v${h}h${-Math.min(w / 2, 5)}l${Math.min(w / 2, 5)} ${-h / 2}l${-Math.min(w / 2, 5)} ${-h / 2}z` }));
  if (state === "silent") for (let at = Math.min(w, 6); at <= w; at += 8) cell.append(svg("path", { class: "cross", d: `M${x + at - Math.min(w, 6)} ${y + h}L${x + at} ${y}` }));
  if (state !== "coming" && from) cell.append(svg("path", { class: "known", d: `M${x} ${y}v${h}l${Math.min(w / 2, 5)} ${-h / 2}z` }));
  return cell;
}

const mostLabelled = 400; // keys; more are small squares without labels

// grid draws the members of shards as columns, with their keys as cells.
function grid(width, row, since) {
  const columns = shape.columns(row.recipe, seen.silent), came = shape.cameFrom(row.intervals, since);
  const beside = Math.max(1, Math.min(columns.length, Math.floor(width / 84))), wide = Math.min(190, width / beside), cell = wide - 6;
  const labelled = row.recipe.keys.length <= mostLabelled, line = labelled ? 17 : 12, inLine = labelled ? 1 : Math.max(1, Math.floor(cell / 12));
  const all = [];
  let top = 0;
  for (let band = 0; band < columns.length; band += beside) {
    const some = columns.slice(band, band + beside);
    some.forEach((c, n) => {
      const x = n * wide;
      const has = c.cells.filter((k) => k.state !== "coming").length;
      const said = (c.silent ? "silent, " : "") + plural(has, "key", "keys");
      all.push(svg("g", { class: "member", "data-member": c.owner, "data-keys": has, "data-silent": c.silent || undefined },
        svg("text", { class: c.owner ? "strong" : "strong bad", x, y: top + 12 }, fitted(c.owner || "nobody", cell)), svg("text", { class: c.silent ? "bad" : "faint", x, y: top + 26 }, fitted(said, cell))));
      c.cells.forEach((k, i) => {
        const left = x + (i % inLine) * 12, y = top + 32 + Math.floor(i / inLine) * line;
        const drawn = keyCell({ ...k, owner: k.state === "coming" ? "" : c.owner, from: k.from ?? came.get(k.key) }, left, y, labelled ? cell : 10, line - 2);
        if (labelled) drawn.append(svg("text", { class: c.owner && k.state !== "coming" ? "on" : "faint", x: left + 7, y: y + 12 }, fitted(k.state === "coming" ? k.key + " ← " + k.from : k.key + (k.to ? " → " + k.to : ""), cell - 12)));
        all.push(drawn);
      });
    });
    top += 40 + Math.max(...some.map((c) => Math.ceil(c.cells.length / inLine))) * line;
  }
  return svg("svg", { height: top, "aria-hidden": "true" }, ...all);
}

const mostSeats = 60;

// seating draws the places of a double barrier's round.
function seating(width, row) {
  const all = shape.seats(row).slice(0, mostSeats), beside = Math.max(1, Math.floor(width / 130)), wide = Math.min(190, width / beside);
  return svg("svg", { height: Math.ceil(all.length / beside) * 40, "aria-hidden": "true" }, ...all.map((s, n) => {
    const x = (n % beside) * wide, y = Math.floor(n / beside) * 40, isMissing = s.state === "missing";
    return svg("g", { class: "seat", "data-owner": s.owner, "data-state": s.state, "data-since": s.since, "data-how": s.how },
      svg("rect", { class: isMissing ? "frame dashed unowned" : "box" + (s.state === "waits" ? "" : " holds"), x: x + 1, y: y + 1, width: wide - 8, height: 34, rx: 4 }),
      svg("text", { class: isMissing ? "bad" : "strong", x: x + 7, y: y + 15 }, fitted((isMissing && s.owner ? "? " : "") + (s.owner || (isMissing ? "nobody" : "…")), wide - 20)),
      svg("text", { class: "faint", x: x + 7, y: y + 29 }, fitted({ inside: "● ", finished: "✓ ", waits: "… ", missing: "" }[s.state] + s.state + sinceOf(s), wide - 20)));
  }));
}

const sinceOf = (seat) => (seat.since ? " since " + clockOf(seat.since) : "");

function seatTable(row) {
  const round = row.recipe.round, all = shape.seats(row);
  const missing = all.filter((s) => s.state === "missing").length;
  const caption = (round.open ? "Round " + round.number : "The next round") + ": " + (round.members - missing) + " of " + round.members + (round.open ? " in" : " have come") + ", " + missing + " missing";
  return [caption, ["", "who", "since", ""], all.map((s, n) => ({ key: n, cells: [
    [s.state, s.state === "missing" ? "bad" : s.state === "waits" ? "" : "holds"], s.owner || (s.state === "missing" ? "not known" : "…"), s.since ? clockOf(s.since) + ", " + age(now() - s.since) : "",
    s.state === "missing" && s.owner ? (round.open ? "was in this round" : "was in the last round") + (s.how ? ", " + marks[s.how][0] : "") : "",
  ] }))];
}

// --- what a row shows

const exclusive = ["lock", "rwlock", "election", "barrier", "unknown", "mixed", ""];

// picture is the small drawing of a row: what changed.
function picture(row, width, height) {
  const sc = scale(width), r = row.recipe;
  const steps = shape.steps(row.points, seen);
  const of = (name) => steps.map((s) => ({ ...s, value: s[name] }));
  if (r?.keys?.length) return strip(width, r, height);
  if (r?.jobs || row.kind === "cron" || row.kind === "once") return ticks(sc, { jobs: r?.jobs ?? [], schedule: r?.schedule }, skipsOf(row), height);
  if (row.kind === "queue") return plot(sc, [{ steps: of("items"), area: true }], height);
  if (!exclusive.includes(row.kind)) return [...plot(sc, [{ steps: of("holders"), area: true }], height, "", r?.limit || r?.round?.members)];
  return [...bars(sc, row.intervals, 0, height - 7, true), ...waiters(sc, steps, height - 6, 6)];
}

// saying says in a few words who has a path, and since when.
function saying(row) {
  const r = row.recipe;
  if (!r) return "nobody; nothing is there any more";
  if (r.closed) return "closed by " + r.closed.by + " for " + age(now() - r.closed.at);
  if (r.queue) return plural(r.queue.items, "item", "items") + ", " + r.queue.in_hand + " in hand" + (r.queue.oldest ? ", oldest " + age(now() - r.queue.oldest) : "");
  if (r.round) return roundOf(r.round);
  if (r.schedule) return scheduleOf(r);
  if (r.keeps) return r.keeps;
  if (row.holders.length === 0) return "nobody";
  if (r.limit) return row.holders.length + " of " + r.limit + " held";
  const more = row.holders.length > 1 ? " and " + (row.holders.length - 1 + (r.more ?? 0)) + " more" : "";
  return (row.holders[0].owner || "unknown") + more + ", " + since(row, row.holders[0]);
}

// roundOf says how a double barrier's round stands, as inspect does.
function roundOf(round) {
  if (round.open) {
    const missing = round.members - round.inside - round.finished;
    return "round " + round.number + " is open: " + round.inside + " of " + round.members + " inside" + (round.finished ? ", " + round.finished + " finished" : "") + (missing > 0 ? ", " + missing + " missing" : "");
  }
  const last = round.number > 0 ? "round " + round.number + " is over" : "no round yet";
  return last + (round.waiting > 0 ? "; " + round.waiting + " of " + round.members + " have come" : "; nobody waits");
}

function scheduleOf(r) {
  const good = (r.jobs ?? []).find((j) => j.state === "done");
  const text = [good ? "last success " + age(now() - (good.due || good.begun)) + " ago" : r.jobs?.length ? "none ended well" : "no slot on record"];
  if (r.schedule.next) text.push(r.schedule.next > now() ? "next in " + age(r.schedule.next - now()) : "due since " + age(now() - r.schedule.next));
  if (r.schedule.left_out) text.push(r.schedule.left_out + " left out");
  return text.join(", ");
}

// since is how long a contender has held, if that is known, or else how long
// its node has been there, its wait included.
function since(row, c) {
  const i = row.lasts.get(c.node);
  if (!i?.begin[0]) return c.made ? "there for " + age(now() - c.made) : "";
  const most = now() - i.begin[0], least = now() - i.begin[1];
  return (most - least > Math.max(3, most / 10) ? "for at most " : "for ") + age(most);
}

// silence is a bar of how long a client has been silent, against its session
// timeout.
function silence(session) {
  const is = seen.silent[session];
  if (!is) return ["no", "quiet"];
  const [from, timeout] = is;
  const silent = Math.max(0, now() - from), part = Math.min(1, silent / timeout);
  return { of: [session, Math.round(part * 100), timeout], make: () => {
    const kind = part > 0.66 ? "bad" : "warn";
    const fill = make("span");
    fill.style.width = 100 * part + "%";
    const bar = make("span", "silence " + kind, fill);
    bar.setAttribute("aria-hidden", "true");
    return [bar, make("span", kind, "silent " + age(Math.min(silent, timeout)) + " of " + age(timeout))];
  } };
}

function newRow(row) {
  const element = make("li");
  const cut = row.path.lastIndexOf("/");
  const base = row.path === "/" ? "/" : row.path.slice(cut + 1);
  element.kind = make("span", "kind");
  element.now = make("span", "text");
  element.badges = make("span", "badges");
  element.drawing = svg("svg", { height: 30, "aria-hidden": "true" });
  const what = make("span", "what", make("bdi", "", make("span", "dir", row.path.slice(0, cut + 1) === "/" && base === "/" ? "" : row.path.slice(0, cut + 1)), make("span", "base", base)), element.kind);
  const summary = make("summary", "", what, make("span", "now", element.now, element.badges), make("span", "picture", element.drawing));
  element.body = make("div", "body");
  element.details = make("details", "", summary, element.body);
  element.details.addEventListener("toggle", () => {
    const open = place.open.filter((p) => p !== row.path);
    if (element.details.open) open.push(row.path);
    if (element.details.open !== place.open.includes(row.path)) go({ open });
  });
  element.append(element.details);
  visible.observe(element);
  return element;
}

const visible = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.visible = isIntersecting;
    if (isIntersecting && target.row) drawPicture(target);
  }
}, { rootMargin: "200px" });

function drawPicture(element) {
  const width = element.drawing.clientWidth;
  if (width > 0) element.drawing.replaceChildren(...picture(element.row, width, 30));
}

function updateRow(element, row) {
  element.row = row;
  const r = row.recipe;
  element.classList.toggle("in-circle", row.circle);
  set(element.kind, shape.family(row.kind) + (r?.limit ? " of " + r.limit : "") + (r?.dialect && !["curator", "mixed"].includes(r.dialect) ? ", " + r.dialect : ""));
  set(element.now, saying(row));
  element.now.className = row.holders.length ? "text holds" : "text";
  const odd = row.odd.filter((o) => !row.circle || !o.startsWith("deadlock"));
  const badges = [[row.circle, "bad", "in a circle"], [row.perhaps, "warn", "perhaps in a circle"], [row.waiting, "warn", row.waiting + " waiting"],
    [row.grows, "warn", "growing"], [row.silent.length, "bad", row.silent.length + " silent"], [odd.length, "odd", odd.join("; ")]].filter(([is]) => is);
  same(element.badges, badges, () => badges.map(([, kind, text]) => make("span", kind, text)));
  if (element.visible) drawPicture(element);
  element.details.open = place.open.includes(row.path);
  if (element.details.open) drawBody(element.body, row);
  else if (element.body.firstChild) element.body.replaceChildren();
}

// --- what an open row shows

// drawBody shows everything about a path, as pictures and as tables.
function drawBody(body, row) {
  const r = row.recipe;
  const parts = [];
  if (row.odd.length) parts.push(["odd", () => make("p", "odd"), (p) => set(p, row.odd.join("; "))]);
  parts.push(["picture", () => make("div"), (div) => {
    const drawIt = () => div.replaceChildren(...bigPicture(row, body.clientWidth - 14));
    drawIt();
    if (!div.firstChild) requestAnimationFrame(drawIt); // it has no width before it is in the page
  }]);
  const tables = { seats: r?.round && seatTable, contenders: row.contenders.length && contenderTable, kept: r?.slots?.kept?.length && keptTable, items: r?.queue && itemTable,
    jobs: (r?.jobs || r?.schedule) && jobTable, keys: r?.keys && keyTable, held: row.intervals.length && heldTable };
  for (const [name, of] of Object.entries(tables)) {
    if (of) parts.push([name, newTable, (box) => table(...of(row), box)]);
  }
  keyed(body, parts, ([name]) => name, ([, create]) => create(), (element, [, , update]) => update(element));
}

function bigPicture(row, width) {
  if (width <= 0) return [];
  const sc = scale(width), r = row.recipe, steps = shape.steps(row.points, seen);
  const of = (name) => steps.map((s) => ({ ...s, value: s[name] }));
  const figure = (title, height, children, scale = sc) => {
    const drawn = typeof children === "function" ? children(scale) : children;
    const drawing = svg("svg", { height: height + 18, "aria-hidden": "true" }, ...drawn, ...axis(scale, height));
    return make("div", "big", make("p", "quiet", title), drawing);
  };
  if (row.kind === "queue") {
    const rates = shape.rates(row.points);
    return [
      figure("items (line), in hand (orange)", 60, plot(sc, [{ steps: of("items"), area: true }, { steps: of("hand"), kind: "second" }], 60)),
      figure("age of the oldest item that nobody has", 44, plot(sc, [{ steps: steps.map((s) => ({ ...s, value: s.oldest ? s.to - s.oldest : 0 })), area: true }], 44, "s")),
      figure("items a second: in (line), out (orange)", 44, plot(sc, [{ steps: rates.map((s) => ({ ...s, value: s.put })) }, { steps: rates.map((s) => ({ ...s, value: s.taken })), kind: "second" }], 44, "/s")),
    ];
  }
  if (r?.keys?.length) {
    const lanes = Map.groupBy(row.intervals, (i) => i.lane ?? "");
    const legend = "who has each key: → moves away; dashed: still to come, or nobody's; striped: its member is silent; notched on the left: came in the time shown";
    const drawing = [...r.keys].filter((k) => lanes.has(k.key)).slice(0, 60).flatMap((k, n) => [...bars(sc, lanes.get(k.key), n * 15, 13, false), svg("text", { class: sc.x(lanes.get(k.key)[0].begin[1]) < 3 ? "on" : "", x: 3, y: n * 15 + 11 }, fitted(k.key, 90))]);
    return [make("div", "big", make("p", "quiet", legend), grid(width, row, sc.from)), figure("who had each key", Math.min(60, r.keys.length) * 15, drawing)];
  }
  if (r?.jobs || r?.schedule) {
    const next = r.schedule?.next, ahead = next > now() ? Math.min(1.1 * (next - now()), place.r * 15) : 0;
    const signs = "done |, failed ×, under way ▷, unfinished △";
    return [figure(row.kind === "cron" ? "slots: " + signs + ", left out ⊘, next ┆; a line below says how late" : "attempts: " + signs, 40,
      (sc) => ticks(sc, { jobs: r.jobs ?? [], schedule: r.schedule }, skipsOf(row), 40), scale(width, ahead))];
  }
  if (!exclusive.includes(row.kind)) {
    const lanes = [...Map.groupBy(row.intervals.filter((i) => !i.nobody && (!i.end || i.end[1] >= sc.from)), (i) => i.node)].slice(-40);
    const most = r?.limit || r?.round?.members;
    const seats = r?.round ? [make("div", "big", make("p", "quiet", "who is in, and who is missing: ? was in " + (r.round.open ? "this round" : "the last round")), seating(width, row))] : [];
    const who = lanes.flatMap(([, intervals], n) => bars(sc, intervals, n * 17, 15, true));
    return [...seats, figure("how many hold" + (most ? ", of " + most : "") + "; waiting (orange)", 50, plot(sc, [{ steps: of("holders"), area: true }, { steps: of("waiting"), kind: "second" }], 50, "", most)),
      ...(lanes.length ? [figure("who", lanes.length * 17, who)] : [])];
  }
  const several = row.kind === "rwlock" && row.intervals.some((i) => i.node && i.node.includes("read"));
  const lanes = several ? [...Map.groupBy(row.intervals.filter((i) => !i.end || i.end[1] >= sc.from), (i) => i.node ?? "")].slice(-20).map(([, all]) => all) : [row.intervals];
  const height = lanes.length * 24;
  return [figure("who held it; who waited is below, as a count", height + 16, [...lanes.flatMap((l, n) => bars(sc, l, n * 24, 22, true)), ...waiters(sc, steps, height + 1, 13)])];
}

function legendOf(owner) {
  return svg("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: shape.colour(owner), width: 10, height: 10 }));
}

function contenderTable(row) {
  const round = Boolean(row.recipe?.round);
  return ["Who is there", ["", "owner", "", "silent", "session", "address", "actions"], row.contenders.map((c) => ({ key: c.node + " " + c.session, cells: [
    [c.state + (c.slot !== undefined ? " " + c.slot : "") + (["read", "write"].includes(c.kind) ? " (" + c.kind + ")" : "") + (c.revoked ? ", asked to give up" : ""), c.holds ? "holds" : ""],
    { of: c.owner, make: () => bdi(c.owner || "unknown") }, c.holds && !round ? since(row, c) : c.made ? age(now() - c.made) : "",
    c.orphan ? ["belongs to no session", "bad"] : silence(c.session), c.orphan ? "" : c.session, c.address ?? "",
    actions({ ...c, path: row.path }, c.holds && !row.recipe.queue),
  ] }))];
}

function keptTable(row) {
  return ["Kept for owners that are away", ["slot", "owner", "for"], row.recipe.slots.kept.map((k) => ({ key: k.slot, cells: [String(k.slot), k.owner, age(Math.max(0, k.until - now())) + " more"] }))];
}

// actions are the buttons beside a contender: one for its details, and beside a
// holder one that asks it to give up. Force is in the details only.
function actions(target, holds) {
  return { of: [target.node, target.session, target.owner, holds, acts], make: () => {
    const details = button("details", () => showNode(target));
    details.setAttribute("aria-label", "details of " + shown(target.owner || "unknown"));
    return [details, " ", ...(holds && acts.includes("revoke") ? [actButton("revoke", target)] : [])];
  } };
}

function button(text, click) {
  const b = make("button", "", text);
  b.type = "button";
  b.addEventListener("click", click);
  return b;
}

function actButton(act, target) {
  const b = button(act, () => ask(act, target));
  b.className = act;
  b.setAttribute("aria-label", act + " " + shown(target.owner || "unknown"));
  return b;
}

function itemTable(row) {
  const q = row.recipe.queue;
  return ["First of " + plural(q.items, "item", "items") + (q.dead ? "; " + plural(q.dead, "dead letter", "dead letters") : ""),
    ["item", "data", "priority", "delivered", "age", "in hand of", "silent", "actions"], q.first.map((i) => ({ key: i.name, cells: [
      i.name, [i.data, "wide"], String(i.priority), String(i.deliveries), age(now() - i.put),
      i.in_hand ? [(i.owner || i.session || "unknown") + (i.since ? " for " + age(now() - i.since) : "") + (i.revoked ? ", asked to give it back" : ""), "holds"] : "",
      i.in_hand ? (i.orphan ? ["belongs to no session", "bad"] : silence(i.session)) : "",
      i.in_hand && acts.length ? actions({ path: row.path, node: i.name, session: i.session, owner: i.owner }, true) : "",
    ] }))];
}

const stateKinds = { done: "holds", failed: "bad", unfinished: "warn", corrupt: "bad" };

function jobTable(row) {
  const r = row.recipe, isCron = Boolean(r.schedule);
  const lines = (r.jobs ?? []).map((j) => ({ key: j.key, at: j.due || j.begun, cells: [
    [j.state, stateKinds[j.state] ?? ""], j.key, String(j.attempt), clockOf(j.begun), j.took ? age(j.took) : "",
    ...(isCron ? [lateness(j) > lateAfter ? age(lateness(j)) : ""] : []), j.by, [j.error ?? "", "wide"],
  ] }));
  for (const s of isCron ? skipsOf(row) : []) lines.push({ key: "left out " + s, at: s[0] + (s[1] - s[0]) / 2, cells: [["left out", "warn"], leftOut(s), "", "", "", "", "", ""] });
  const before = isCron ? earlier(row) : 0;
  const caption = (isCron ? "Slots" : "Jobs") + (before > 0 ? "; " + before + " more left out, before the first look at them" : "");
  return [caption, ["state", isCron ? "slot" : "job", "attempt", "begun", "took", ...(isCron ? ["late by"] : []), "by", "error"], lines.sort((a, b) => b.at - a.at)];
}

function keyTable({ recipe: r }) {
  return [plural(r.keys.length, "key", "keys") + " of " + plural(r.members.length, "member", "members"), ["key", "owner", "state", "since", "silent"], r.keys.map((k) => ({ key: k.key, cells: [
    k.key, k.owner ? swatched(k.owner) : ["nobody", "bad"],
    k.moving ? ["moves to " + (k.desired || "nobody"), "warn"] : k.error ? [k.error, "warn"] : k.state, k.since ? age(now() - k.since) : "", k.session ? silence(k.session) : "",
  ] }))];
}

const mostLines = 100;

function heldTable(row) {
  const lanes = row.intervals.some((i) => i.lane);
  const lines = row.intervals.slice(-mostLines).reverse().map((i) => ({ key: i.path + i.lane + i.node + i.begin, cells: [
    ...(lanes ? [i.lane] : []),
    i.nobody ? [i.nobody === "sure" ? "nobody" : "nobody, at the moments of looks", "quiet"] : swatched(i.owner || "unknown"),
    clockOf(i.begin[1]), i.end ? clockOf(i.end[0]) : "", lasting(i), i.nobody || !i.end ? "" : [marks[i.how ?? ""][0], i.how === "crashed" ? "bad" : i.how === "lost" ? "warn" : ""],
  ] }));
  return ["Who held it" + (row.intervals.length > mostLines ? ", the last " + mostLines : ""), [...(lanes ? ["key"] : []), "holder", "from", "until", "how long", "ended"], lines];
}

// --- details of a node, on request

async function showNode(target) {
  set(at("node-owner"), target.owner || "unknown");
  const silent = seen.silent[target.session];
  const facts = [["path", target.path], ["node", target.node], ["session", target.session], ["address", target.address || "not known"],
    ["there since", target.made ? clockOf(target.made) + ", " + age(now() - target.made) : "not known"], ["silent", silent ? age(now() - silent[0]) + " of " + age(silent[1]) : "no longer than normal"]];
  at("node-facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", bdi(value))]));
  set(at("node-data"), "…");
  at("node-asks").replaceChildren(...(acts.includes("revoke") && target.session ? [actButton("revoke", target)] : []));
  at("node-force").open = false;
  at("node-force").hidden = !acts.includes("break");
  at("node-break").replaceChildren(...(acts.includes("break") ? [actButton("break", target)] : []));
  at("node").showModal();
  try {
    const q = new URLSearchParams({ path: target.path, node: target.node, session: target.session });
    const answer = await fetch("node?" + q, { signal: AbortSignal.timeout(10000) });
    const told = await answer.json();
    at("node-data").textContent = told.error ? shown(told.error) : told.data_base64 ? "base 64: " + told.data_base64 : dataOf(told.data ?? "");
  } catch (err) {
    set(at("node-data"), err.message);
  }
}
at("node-close").addEventListener("click", () => at("node").close());

// dataOf is a node's data as people read it: JSON is indented.
function dataOf(data) {
  let text = data;
  try {
    text = JSON.stringify(JSON.parse(data), null, 2);
  } catch { /* it is text */ }
  return text.split("\n").map(shown).join("\n") || "(empty)";
}

// --- who waits for whom

// drawCircles draws each circle as a ring of contenders that wait for each
// other.
function drawCircles(perhaps, circles) {
  at(perhaps + "circling").hidden = circles.length === 0;
  keyed(at(perhaps + "circles"), circles, (c) => c.map((w) => w.node).join(), () => make("li"), (element, circle) => {
    same(element, circle, () => ring(shape.around(circle), perhaps ? " possible" : ""));
  });
}

function ring(waits, kind) {
  const tall = 58, height = waits.length * tall + 8;
  const all = [];
  waits.forEach((w, n) => {
    const y = n * tall + 6;
    const last = n === waits.length - 1;
    all.push(svg("g", { "data-session": w.session, "data-path": w.path }, svg("rect", { class: "box", x: 26, y, width: 300, height: 24, rx: 4 }), svg("text", { x: 34, y: y + 16 }, fitted((w.owner || "unknown") + " (" + w.session + ")", 286))));
    all.push(svg("path", { class: "circle" + kind, d: last ? `M40 ${y + 24}v12H10V18H22` : `M40 ${y + 24}v${tall - 28}` }));
    all.push(last ? svg("path", { class: "circle-head" + (kind && " possible-head"), d: "M20 13l7 5l-7 5z" }) : svg("path", { class: "circle-head" + (kind && " possible-head"), d: `M35 ${y + tall - 6}h10l-5 7z` }));
    all.push(svg("text", { class: "faint", x: 50, y: y + 40 }, fitted("waits for " + w.path, 270)));
  });
  const what = make("ul", "", ...waits.map((w) => make("li", "", bdi((w.owner || "unknown") + " (" + w.session + ")"), " waits " + (w.made ? "since " + clockOf(w.made) + " " : "") + "for ", link(w.path),
    ", which " + (w.for_owner || "unknown") + " (" + w.for + ") " + (w.for_holds ? "holds" : "waits for, too"))));
  const first = waits.find((w) => w.for_holds) ?? waits[0];
  const advice = make("p", "", "To do: open ", link(first.path), " and ask its holder to give up, or run ", make("code", "", "zkcoord revoke --force-after 30s " + quoted(first.path)), ".");
  return [svg("svg", { width: 330, height: height + 12, viewBox: `0 0 330 ${height + 12}`, "aria-hidden": "true" }, ...all), make("div", "", what, ...(kind ? [] : [advice]))];
}

// quoted is one word for a shell.
const quoted = (text) => (/^[\w/.:@%+=,-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'");

// link leads to a path's row.
function link(path) {
  const to = button(path, () => {
    drawn = Infinity;
    go({ q: "", f: "", k: "", open: [...new Set([...place.open, path])] });
    [...at("rows").children].find((li) => li.key === path)?.scrollIntoView({ block: "center" });
  });
  to.className = "link";
  return to;
}

const mostDrawn = 300; // waits

function drawWaits() {
  at("waiting").hidden = seen.waits.length === 0;
  same(at("waits"), seen.waits, () => {
    const lines = [];
    const add = (nodes, depth, above) => {
      for (const n of nodes) {
        const here = lines.length;
        lines.push({ n, depth, above });
        add(n.below, depth + 1, here);
      }
    };
    add(shape.chains(seen.waits), 0, -1);
    const some = lines.slice(0, mostDrawn), red = new Set(seen.circles.flat().map((w) => w.node));
    const drawing = some.flatMap(({ n, depth, above }, i) => {
      const x = 4 + Math.min(depth, 12) * 18, y = i * 26;
      const text = (n.owner || "unknown") + (n.wait ? " waits for " + n.wait.path : n.holds ? " holds " + n.holds : "");
      return [
        ...(above >= 0 ? [svg("path", { class: red.has(n.node) ? "circle" : "link", d: `M${x - 10} ${above * 26 + 22}V${y + 12}H${x}` })] : []),
        svg("g", { class: "party", "data-node": n.node }, svg("rect", { class: "box" + (n.wait ? "" : " holds"), x, y: y + 1, width: Math.min(620, text.length * 6.4 + 14), height: 21, rx: 4 }), svg("text", { x: x + 7, y: y + 16 }, fitted(text, 600))),
      ];
    });
    const height = some.length * 26 + 4;
    const box = make("div", "scroll", svg("svg", { width: 680, height, viewBox: `0 0 680 ${height}`, "aria-hidden": "true" }, ...drawing));
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Who waits for whom, drawn");
    const all = table("Waits", ["who", "session", "waits for", "of", "since"], seen.waits.slice(0, mostDrawn).map((w) => ({ key: w.node + w.for_node,
      cells: [w.owner || "unknown", w.session, w.path, (w.for_owner || "unknown") + (w.for_holds ? "" : ", who waits, too"), clockOf(w.made)] })));
    return [box, make("details", "", make("summary", "", "as a table"), all)];
  });
  const more = seen.more_waits + Math.max(0, seen.waits.length - mostDrawn);
  set(at("more"), more ? "… and " + plural(more, "more wait", "more waits") : "");
}

// --- the head

function drawHead() {
  set(at("path"), seen.path);
  const all = Object.entries(shape.chips).map(([name, [one, many, is]]) => ({ name, n: name === "circle" ? seen.circles.length : name === "perhaps" ? seen.possible_circles.length : rows.filter(is).length, one, many }))
    .map((c) => (c.name === "circle" || c.name === "perhaps" ? { ...c, one: c.one.replace("in a ", ""), many: c.many.replace("in ", "") } : c))
    .filter((c) => c.n > 0 || place.f === c.name);
  all.unshift({ name: "", n: rows.length, one: "path", many: "paths" });
  keyed(at("chips"), all, (c) => c.name, (c) => button("", () => go({ f: place.f === c.name ? "" : c.name })), (b, c) => {
    set(b, plural(c.n, c.one, c.many));
    b.dataset.chip = c.name;
    b.className = ["circle", "odd", "silent"].includes(c.name) ? "bad" : "";
    b.setAttribute("aria-pressed", String(place.f === c.name));
  });
  const kinds = [...Map.groupBy(rows, (r) => r.kind)].filter(([kind]) => kind).sort(([a], [b]) => (a < b ? -1 : 1));
  keyed(at("kind"), [["", rows], ...kinds], ([k]) => k, ([k]) => Object.assign(make("option"), { value: k }), (option, [k, of]) => {
    set(option, k ? plural(of.length, shape.family(k), shape.family(k, true)) : "everything");
  });
  for (const [id, value] of [["search", place.q], ["kind", place.k], ["sort", place.s], ["range", place.r]]) {
    if (at(id).value !== value && document.activeElement !== at(id)) at(id).value = value;
  }
}

// The first rows are drawn at once; the other rows, and the waits below them,
// once these are shown.
let drawn = 60;

let some = []; // the chosen rows, in their order

function drawRows() {
  keyed(at("rows"), some.slice(0, drawn), (r) => r.path, newRow, updateRow);
  if (drawn >= some.length) {
    drawWaits();
    return;
  }
  drawn += 200;
  setTimeout(drawRows);
}

function draw() {
  if (!seen) return;
  rows = shape.rowsOf(seen, now());
  drawHead();
  drawCircles("", seen.circles);
  drawCircles("perhaps-", seen.possible_circles);
  some = shape.chosen(rows, place);
  drawRows();
  at("none").hidden = some.length > 0 || rows.length === 0;
  drawAxis();
  const notes = [plural(rows.length, "path", "paths"), plural(seen.looked_at, "node was", "nodes were") + " looked at"];
  if (seen.runs.length) notes.push("remembered since " + clockOf(Math.max(seen.runs[0][0], now() - seen.keep)));
  if (seen.dropped) notes.push(plural(seen.dropped, "interval was", "intervals were") + " dropped early, because there were too many");
  if (seen.more_recipes) notes.push(seen.more_recipes + " more paths are not shown: name a path further down");
  if (seen.left_out) notes.push(plural(seen.left_out, "node was", "nodes were") + " left out, with what is below (--most, --connect-timeout)");
  if (seen.hidden.length > 0) notes.push("may not be listed: " + seen.hidden.join(", "));
  set(at("extent"), notes.join("; "));
}

function drawAxis() {
  const drawing = at("axis").firstElementChild;
  if (drawing.clientWidth > 0) drawing.replaceChildren(...axis(scale(drawing.clientWidth), 0));
}
addEventListener("resize", () => draw());

// --- asking

// tell says whether what is shown is current.
function tell(kind, state, detail) {
  at("state").className = kind;
  set(at("state"), state);
  set(at("age"), detail);
}

function show(answer) {
  const told = performance.now();
  every = answer.every * 1000;
  acts = answer.acts;
  clock = answer.now - Date.now() / 1000;
  if (answer.seen) seen = answer.whole ? answer.seen : shape.merged(seen, answer.seen);
  version = answer.version;
  if (seen) draw();
  if (seen && !performance.getEntriesByName("first picture").length) {
    performance.mark("first picture");
    performance.measure("drawing", { start: told, end: "first picture" });
  }
  const from = seen ? "what is shown is " + age(answer.age) + " old" : "nothing has been seen yet";
  if (answer.error) tell("old", "The servers cannot be asked", answer.error + "; " + from);
  else if (answer.old) tell("old", "The servers take long", from);
  else if (seen) tell("live", "live", "seen " + age(answer.age) + " ago");
  document.body.dataset.state = answer.old ? "old" : "live";
}

// look asks for the state, again and again while the page is visible.
let looking = false;
async function look() {
  if (looking || document.hidden) return;
  looking = true;
  let pause = every;
  try {
    const answer = await fetch("look?has=" + version, { signal: AbortSignal.timeout(6000) });
    if (!answer.ok) throw new Error(await answer.text());
    const told = await answer.json();
    show(told);
    lastAnswer = Date.now();
    pause = told.seen && told.whole && told.age * 1000 > every ? 0 : every;
  } catch (err) {
    tell("old", "zkcoord does not answer", err.message + "; the last answer came " + age((Date.now() - lastAnswer) / 1000) + " ago");
    document.body.dataset.state = "gone";
  }
  looking = false;
  clearTimeout(look.timer);
  look.timer = setTimeout(look, pause);
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) tell("", "looking …", "");
  look();
});

// ask asks to confirm an act on the target that was shown when its button was
// pressed.
function ask(act, target) {
  const [question, warning] = questions[act];
  const { path, node, session, owner, made } = target;
  at("node").close();
  set(at("question"), question);
  set(at("warning"), warning);
  set(at("go"), act);
  at("go").className = act;
  set(at("target-path"), path);
  set(at("target-owner"), owner || "unknown");
  set(at("target-session"), session);
  set(at("target-node"), node);
  at("go").onclick = () => {
    at("confirm").close();
    carryOut(act, { path, node, session, made });
  };
  at("confirm").showModal();
}
at("cancel").addEventListener("click", () => at("confirm").close());

async function carryOut(act, target) {
  set(at("told"), "");
  try {
    const answer = await fetch("act/" + act, { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify(target), signal: AbortSignal.timeout(60000) });
    const { error } = await answer.json();
    if (error) set(at("told"), act + ": " + error);
  } catch (err) {
    set(at("told"), act + ": " + err.message);
  }
  look();
}

// --- the tools

at("search").addEventListener("input", () => go({ q: at("search").value }));
at("tools").addEventListener("submit", (e) => e.preventDefault());
for (const [id, name] of [["kind", "k"], ["sort", "s"], ["range", "r"]]) at(id).addEventListener("change", () => go({ [name]: at(id).value }));

const ranges = { 1: "5", 2: "30", 3: "120" };
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  const typing = ["INPUT", "SELECT"].includes(e.target.tagName);
  if (e.key === "Escape") {
    document.activeElement.blur();
    go({ q: "", f: "", k: "" });
    return;
  }
  if (typing || !at("keys").checked) return;
  if (e.key === "/") {
    e.preventDefault();
    at("search").focus();
  } else if (ranges[e.key]) {
    go({ r: ranges[e.key] });
  } else if (e.key === "j" || e.key === "k") {
    const all = [...at("rows").querySelectorAll("summary")];
    const is = all.indexOf(document.activeElement);
    all[Math.max(0, Math.min(all.length - 1, is + (e.key === "j" ? 1 : -1)))]?.focus();
  }
});

const signs = [["c0", "held; one colour is one owner"], ["gap", "nobody held it, and for how long"], ["looks", "nobody held it at the moments of looks"], ["unknown", "not known"],
  ...Object.entries(marks).map(([how, [text]]) => [how, text])];
at("signs").append(...signs.map(([kind, text]) => {
  const drawing = svg("svg", { "aria-hidden": "true" });
  if (kind in marks) drawing.append(svg("rect", { class: "c7", y: 2, width: 24, height: 14 }), marks[kind][1](24, 2, 14));
  else if (kind === "unknown") drawing.append(...hatched(44, 18));
  else if (kind === "c0") drawing.append(svg("rect", { class: "c0", y: 2, width: 44, height: 14, rx: 2 }));
  else drawing.append(svg("path", { class: kind === "gap" ? "base-line" : "at-looks", d: "M0 12h44" }), ...(kind === "gap" ? [svg("text", { class: "faint", x: 8, y: 10 }, "12 s")] : []));
  return make("li", "", drawing, text);
}));

look();
