// Makes from the state of the servers what the page shows: plain data, no
// elements.

// shown escapes invisible and bidirectional characters.
export function shown(text) {
  return String(text ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu,
    (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

// age is a number of seconds as people write it.
export function age(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10) return Math.max(0, seconds).toFixed(1) + " s";
  const whole = Math.round(seconds);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => whole >= size);
  return parts.slice(first, first + 2).map(([size, unit], i) =>
    (i === 0 ? Math.floor(whole / size) : Math.floor((whole % parts[first][0]) / size)) + " " + unit).join(" ");
}

// between is a length of time between its least and its most, in seconds.
export function between(least, most) {
  least = Math.max(0, least);
  if (most === undefined) return "at least " + age(least);
  return age(least) === age(most) ? age(most) : age(least) + " to " + age(most);
}

export function plural(n, one, more) {
  return n + " " + (n === 1 ? one : more);
}

// families are the names of the recipes for people, by kind.
const families = {
  lock: ["lock", "locks"], rwlock: ["shared lock", "shared locks"], semaphore: ["semaphore", "semaphores"], election: ["election", "elections"],
  slots: ["slots", "slots"], group: ["group", "groups"], doublebarrier: ["double barrier", "double barriers"], barrier: ["barrier", "barriers"],
  queue: ["queue", "queues"], once: ["ledger", "ledgers"], cron: ["schedule", "schedules"], shards: ["shards", "shards"],
  unknown: ["unknown recipe", "unknown recipes"], mixed: ["several recipes", "several recipes"],
};

export function family(kind, more) {
  return (families[kind] ?? [kind, kind])[more ? 1 : 0];
}

// merged applies a patch to seen: to the object, and to the objects in it.
export function merged(seen, patch) {
  for (const [name, value] of Object.entries(patch)) {
    const was = seen[name];
    const isObject = (v) => v && typeof v === "object" && !Array.isArray(v);
    if (!isObject(was) || !isObject(value)) {
      seen[name] = value;
      continue;
    }
    for (const [key, member] of Object.entries(value)) {
      if (member === null) delete was[key];
      else was[key] = member;
    }
  }
  return seen;
}

// past arranges by path what is remembered: intervals and points in their
// order, and the last kind.
export function past(seen) {
  const paths = new Map();
  const at = (path) => {
    if (!paths.has(path)) paths.set(path, { intervals: [], points: [], kind: "" });
    return paths.get(path);
  };
  const ids = (of) => Object.keys(of).map(Number).sort((a, b) => a - b);
  for (const id of ids(seen.intervals)) {
    const i = seen.intervals[id];
    at(i.path).intervals.push(i);
    at(i.path).kind = i.kind || at(i.path).kind;
  }
  for (const id of ids(seen.points)) at(seen.points[id].path).points.push(...seen.points[id].at.map(point));
  for (const p of paths.values()) p.intervals.sort((a, b) => a.begin[1] - b.begin[1]);
  return paths;
}

function point([at, holders, waiting, items, hand, dead, oldest, put, taken]) {
  return { at, holders, waiting, items, hand, dead, oldest, put, taken };
}

// until is the earliest end of an interval, or the last look at it if it still
// lasts.
export function until(i, seen) {
  if (i.end) return i.end[0];
  return seen.unseen[i.path] ?? lastLook(seen);
}

export function lastLook(seen) {
  return seen.runs.length ? seen.runs[seen.runs.length - 1][1] : 0;
}

// steps are the stretches of time of points, from look to look; there is none
// while nobody looked.
export function steps(points, seen) {
  const all = [];
  for (const [n, p] of points.entries()) {
    const run = seen.runs.find(([from, to]) => from <= p.at && p.at <= to);
    const to = Math.min(points[n + 1]?.at ?? Infinity, run ? run[1] : p.at);
    all.push({ ...p, from: p.at, to: Math.max(to, p.at) });
  }
  return all;
}

const wraps = 2 ** 32; // the servers' counters wrap at half of it
const since = (a, b) => (b - a + wraps) % (wraps / 2);

// rates are how many items a second came and went between two points of a
// queue.
export function rates(points) {
  return points.slice(1).map((p, n) => {
    const was = points[n];
    const took = Math.max(0.001, p.at - was.at);
    return { from: was.at, to: p.at, put: since(was.put, p.put) / took, taken: since(was.taken, p.taken) / took };
  });
}

// grows reports whether more items came to a queue than went, in the last 5
// minutes.
export function grows(points, now) {
  const recent = points.filter((p, n) => p.at >= now - 300 || points[n + 1]?.at > now - 300);
  if (recent.length < 2) return false;
  const first = recent[0], last = recent[recent.length - 1];
  return last.items >= first.items + Math.max(3, first.items / 10) && since(first.put, last.put) > since(first.taken, last.taken);
}

// rowsOf are the rows of the page: each path with its present and its past.
export function rowsOf(seen, now) {
  const before = past(seen);
  const inCircle = new Set(seen.circles.flat().map((w) => w.path));
  const perhaps = new Set(seen.possible_circles.flat().map((w) => w.path));
  const keepers = Object.values(seen.recipes).filter((r) => r.keys || r.jobs).map((r) => r.path);
  const rows = [];
  for (const path of new Set([...Object.keys(seen.recipes), ...before.keys()])) {
    const recipe = seen.recipes[path];
    if (recipe?.of || !recipe && keepers.some((keeper) => path.startsWith(keeper + "/"))) continue; // it is the lock of a key
    const { intervals, points, kind } = before.get(path) ?? { intervals: [], points: [], kind: "" };
    const contenders = recipe?.contenders ?? [];
    const holders = contenders.filter((c) => c.holds);
    const silent = [...contenders, ...(recipe?.queue?.first ?? []), ...(recipe?.keys ?? [])].filter((c) => seen.silent[c.session]);
    const row = {
      path, recipe, intervals, points, contenders, holders, silent: [...new Map(silent.map((c) => [c.session, c])).values()],
      kind: recipe?.kind ?? kind, waiting: recipe?.waiting ?? 0, odd: recipe?.odd ?? [],
      circle: inCircle.has(path), perhaps: perhaps.has(path), grows: Boolean(recipe?.queue) && grows(points, now),
    };
    row.lasts = new Map(intervals.filter((i) => !i.end && i.node).map((i) => [i.node, i]));
    row.heldFor = Math.max(0, ...holders.map((c) => now - (row.lasts.get(c.node)?.begin[1] || c.made)));
    row.trouble = row.circle ? 0 : row.odd.length || row.silent.length ? 1 : row.grows || row.perhaps ? 2 : row.waiting ? 3 : 4;
    rows.push(row);
  }
  return rows;
}

// keyState is the state of a key of shards.
export function keyState(k, silent) {
  return !k.owner ? "unowned" : silent[k.session] ? "silent" : k.moving ? "moving" : "owned";
}

// columns are the members of shards, and nobody if some keys have no owner:
// each with the keys that it has, and the keys still to come.
export function columns({ members, keys }, silent) {
  const owners = [...new Set([...members, ...keys.map((k) => k.owner)])].filter(Boolean);
  if (keys.some((k) => !k.owner)) owners.push("");
  return owners.map((owner) => ({
    owner, silent: keys.some((k) => k.owner === owner && silent[k.session]),
    cells: keys.flatMap((k) => {
      if (k.owner === owner) return [{ key: k.key, state: keyState(k, silent), to: k.moving ? k.desired || "nobody" : "", session: k.session }];
      return k.desired === owner && (k.moving || !k.owner) ? [{ key: k.key, state: "coming", from: k.owner || "nobody" }] : [];
    }),
  }));
}

// cameFrom maps each key that moved since a time to its former owner.
export function cameFrom(intervals, from) {
  const came = new Map(), last = new Map();
  for (const i of intervals.filter((i) => !i.nobody)) {
    const was = last.get(i.lane);
    if (was && was.owner !== i.owner && i.begin[1] >= from) came.set(i.lane, was.owner);
    last.set(i.lane, i);
  }
  return came;
}

// seats are the places of a double barrier's round: who is in, who waits for it
// to begin, and who is missing. A missing member has the name of somebody who
// was in this round, or the last, if that was seen.
export function seats({ recipe: { round }, contenders, intervals, lasts }) {
  const places = { inside: round.open, finished: round.open, waits: !round.open };
  const all = contenders.filter((c) => places[c.state])
    .map((c) => ({ owner: c.owner, state: c.state, since: c.holds ? lasts.get(c.node)?.begin[1] || c.made : c.made }));
  const more = (round.open ? round.inside + round.finished : round.waiting) - all.length;
  for (let n = 0; n < more; n++) all.push({ owner: "", state: round.open ? "inside" : "waits" });
  const held = intervals.filter((i) => !i.nobody), begun = Math.max(0, ...held.map((i) => i.begin[1]));
  const gone = held.filter((i) => i.begin[1] === begun && i.end && !all.some((s) => s.owner === i.owner));
  for (let n = 0; all.length < round.members; n++) all.push({ owner: gone[n]?.owner ?? "", state: "missing", since: gone[n]?.end[1], how: gone[n]?.how });
  return all;
}

// chips count rows by state; each is a filter.
export const chips = {
  held: ["held", "held", (r) => r.holders.length > 0],
  waited: ["waited for", "waited for", (r) => r.waiting > 0],
  growing: ["queue growing", "queues growing", (r) => r.grows],
  moving: ["shards moving", "shards moving", (r) => (r.recipe?.keys ?? []).some((k) => k.moving || !k.owner)],
  silent: ["silent", "silent", (r) => r.silent.length > 0],
  odd: ["odd", "odd", (r) => r.odd.length > 0],
  circle: ["in a circle", "in circles", (r) => r.circle],
  perhaps: ["perhaps in a circle", "perhaps in circles", (r) => r.perhaps],
};

const orders = {
  trouble: (a, b) => a.trouble - b.trouble,
  path: () => 0,
  waiting: (a, b) => b.waiting - a.waiting,
  held: (a, b) => b.heldFor - a.heldFor,
  items: (a, b) => (b.recipe?.queue?.items ?? -1) - (a.recipe?.queue?.items ?? -1),
};

// hasAll reports whether a row has all the words that are searched for.
function hasAll({ path, contenders, recipe, intervals }, words) {
  if (words.length === 0) return true;
  const text = [path, ...contenders.flatMap((c) => [c.owner, c.session, c.address]), ...(recipe?.queue?.first ?? []).flatMap((i) => [i.owner, i.session]),
    ...(recipe?.keys ?? []).flatMap((k) => [k.key, k.owner, k.session]), ...intervals.flatMap((i) => [i.owner, i.session])].join("\n").toLowerCase();
  return words.every((w) => text.includes(w));
}

// chosen are the rows to show, in their order.
export function chosen(rows, { q, f, k, s }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  return rows
    .filter((r) => hasAll(r, words) && (!k || r.kind === k) && (!f || !chips[f] || chips[f][2](r)))
    .sort((a, b) => (orders[s] ?? orders.trouble)(a, b) || (a.path < b.path ? -1 : 1));
}

// chains puts waiters below what they wait for; a hold ends after the waits
// made under it. Each hold and wait has its followers once; holds of circles
// begin chains of their own.
export function chains(waits) {
  const followers = Map.groupBy(waits, (w) => w.for_node);
  const later = new Set(waits.flatMap((w) => [w.node, ...w.delays]));
  const drawn = new Set();
  const below = (nodes) => nodes.filter((node) => !drawn.has(node) && drawn.add(node))
    .flatMap((node) => followers.get(node) ?? [])
    .map((w) => ({ owner: w.owner, session: w.session, node: w.node, wait: w, below: below([w.node, ...w.delays]) }));
  const first = [...followers.keys()].sort((a, b) => later.has(a) - later.has(b));
  return first.flatMap((node) => {
    if (drawn.has(node)) return [];
    const [w] = followers.get(node);
    return [{ owner: w.for_owner, session: w.for, node, holds: w.for_holds && w.path, below: below([node]) }];
  });
}

// around orders the waits of a circle so that each waits for the next, as far
// as possible.
export function around(waits) {
  const rest = [...waits];
  const all = rest.splice(0, 1);
  while (rest.length) {
    const next = rest.findIndex((w) => w.session === all[all.length - 1].for);
    all.push(...rest.splice(Math.max(0, next), 1));
  }
  return all;
}

// colour is one of eight classes, always the same for an owner.
export function colour(owner) {
  let n = 0;
  for (const c of owner ?? "") n = (n * 31 + c.codePointAt(0)) % 9973;
  return "c" + (n % 8);
}
