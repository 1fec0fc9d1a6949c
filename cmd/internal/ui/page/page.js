// The page asks what there is, as long as it is looked at, and shows it. What
// comes from the servers gets into the page by set alone, as text.
import { age, chains, plural, shown, tree } from "./shape.js";

const at = (id) => document.getElementById(id);
const questions = {
  revoke: ["Ask this one to give up?", "Whether it does is up to its program."],
  break: ["Remove this one by force?", "The next one gets its turn immediately. The program that is removed may still be at work then."],
}; // by act

let every = 2000; // milliseconds
let lastAnswer = Date.now();
let acts = [];
let fewEnough = true; // to show all lines from the beginning

function set(element, text) {
  const safe = shown(text);
  if (element.textContent !== safe) element.textContent = safe;
}

// make makes an element of a class, with what is in it.
function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

// keyed brings the elements in a list up to date with the items. An element
// stays with its item, so that it keeps what is open, selected and in focus.
function keyed(list, items, key, create, update) {
  const wanted = new Map();
  for (const item of items) {
    let k = key(item);
    while (wanted.has(k)) k += "'";
    wanted.set(k, item);
  }
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

// row makes an element with a part for each class, which parts has by class.
function row(tag, ...kinds) {
  const element = make(tag, "row");
  element.parts = {};
  for (const kind of kinds) {
    element.parts[kind] = make(kind === "owner" || kind === "name" ? "bdi" : "span", kind);
    element.append(element.parts[kind], " ");
  }
  return element;
}

// buttons are those for the acts there are, on what targetOf returns.
function buttons(targetOf) {
  const all = make("span", "acts");
  for (const act of Object.keys(questions).filter((name) => acts.includes(name))) {
    const button = make("button", act);
    button.type = "button";
    set(button, act);
    button.setAttribute("aria-label", act + " " + shown(targetOf().owner || "unknown"));
    button.addEventListener("click", () => ask(act, targetOf()));
    all.append(button);
  }
  return all;
}

function drawTree(list, branches) {
  keyed(list, branches, (b) => b.name, newBranch, (element, b) => {
    const r = b.recipe;
    const p = element.summary.parts;
    set(p.name, b.name);
    set(p.quiet, r ? r.kind + (r.limit ? " of " + r.limit : "") + (r.dialect && r.dialect !== "curator" ? ", " + r.dialect : "") : "");
    set(p.holds, r ? holding(r) : "");
    set(p.waiting, r?.waiting ? r.waiting + " waiting" : "");
    set(p.odd, (r?.odd ?? []).join("; "));
    drawLine(element, r);
    drawTree(element.below, b.below);
    element.line.hidden = !r;
    element.below.hidden = b.below.length === 0;
  });
}

function newBranch(branch) {
  const element = make("li");
  element.summary = row("summary", "name", "quiet", "holds", "waiting", "odd");
  element.line = make("ul", "line");
  element.below = make("ul", "below");
  const details = make("details", "", element.summary, element.line, element.below);
  details.open = fewEnough || !branch.recipe;
  element.append(details);
  return element;
}

// holding says who holds a recipe, and for how long.
function holding(r) {
  if (r.closed) return "closed by " + r.closed.by + " for " + age(r.closed.age);
  if (r.queue) return plural(r.queue.items, "item", "items") + ", " + r.queue.in_hand + " in hand";
  if (r.round) return roundOf(r.round);
  if (r.keeps) return r.keeps;
  const holders = r.contenders.filter((c) => c.holds);
  if (holders.length === 0) return "";
  const more = holders.length > 1 ? " and " + (holders.length - 1) + " more" : "";
  return (holders[0].owner || "unknown") + more + ", " + since(holders[0]);
}

// roundOf says how a double barrier's round stands, as inspect does.
function roundOf(round) {
  if (round.open) return "round " + round.number + " is open: " + round.inside + " of " + round.members + " inside";
  const last = round.number > 0 ? "round " + round.number + " is over" : "no round yet";
  return last + (round.waiting > 0 ? "; " + round.waiting + " of " + round.members + " have come" : "; nobody waits");
}

// since is for how long a contender holds, if that is known, or else how long
// its node is there, its wait included.
function since(c) {
  if (c.held_for === null) return "there for " + age(c.age);
  return (c.held_at_most ? "for at most " : "for ") + age(c.held_for);
}

// drawLine shows the contenders of a recipe, and the items in hand at a queue.
function drawLine(element, r) {
  const lines = [];
  for (const item of (r?.queue?.first ?? []).filter((i) => i.in_hand)) {
    lines.push({ path: r.path, node: item.name, session: item.session, owner: item.owner, state: "in hand", kind: "item",
      age: item.held, revoked: item.revoked, orphan: item.orphan, address: item.address,
      silent_for: item.silent_for, session_timeout: item.session_timeout, holds: true, may: true });
  }
  for (const c of r?.contenders ?? []) lines.push({ ...c, path: r.path, may: !r.queue });
  if (r?.more) lines.push({ path: r.path, node: "", state: "… and " + r.more + " more" });
  keyed(element.line, lines, (l) => l.node + " " + l.session, newLine, (line, l) => {
    line.shows = l;
    const p = line.parts;
    set(p.state, l.state);
    p.state.className = l.holds ? "state holds" : "state";
    set(p.owner, l.node && (l.owner || "unknown"));
    set(p.age, l.holds && l.node && l.held_for !== undefined ? since(l) : age(l.age));
    set(p.quiet, [l.kind, l.session && !l.orphan && "session " + l.session, l.address].filter(Boolean).join(", "));
    set(p.odd, [l.orphan && "belongs to no session", l.revoked && "asked to give up",
      l.silent_for > l.session_timeout / 2 && "silent for " + age(l.silent_for) + " of " + age(l.session_timeout)].filter(Boolean).join(", "));
  });
}

function newLine(l) {
  const line = row("li", "state", "owner", "age", "quiet", "odd");
  line.shows = l;
  if (l.may) line.append(buttons(() => line.shows));
  return line;
}

function drawWaits(list, nodes) {
  keyed(list, nodes, (n) => n.node + " " + (n.wait?.for_node ?? ""), newWait, (element, n) => {
    const p = element.who.parts;
    set(p.owner, n.owner || "unknown");
    set(p.state, n.wait ? "waits " + age(n.wait.age) + " for " + n.wait.path : n.holds ? "holds " + n.holds : "");
    p.state.className = n.holds ? "state holds" : "state";
    set(p.quiet, "session " + n.session);
    drawWaits(element.below, n.below);
    element.below.hidden = n.below.length === 0;
  });
}

function newWait() {
  const element = make("li");
  element.who = row("div", "owner", "state", "quiet");
  element.below = make("ul");
  element.append(element.who, element.below);
  return element;
}

function drawCircles(perhaps, circles) {
  at(perhaps + "circling").hidden = circles.length === 0;
  keyed(at(perhaps + "circles"), circles, (c) => c.map((w) => w.session).join(), () => make("li", "", make("ul")), (element, circle) => {
    keyed(element.firstElementChild, circle, (w) => w.session + w.for + w.path, () => row("li", "owner", "state"), (line, w) => {
      set(line.parts.owner, (w.owner || "unknown") + " (" + w.session + ")");
      set(line.parts.state, "waits " + age(w.age) + " for " + w.path + ", which " + (w.for_owner || "unknown") + " (" + w.for + ") " +
        (w.for_holds ? "holds" : "waits for, too"));
    });
  });
}

function draw(seen) {
  fewEnough = seen.recipes.length <= 20;
  set(at("path"), seen.path);
  drawTree(at("tree"), tree(seen.recipes));
  drawCircles("", seen.circles);
  drawCircles("perhaps-", seen.possible_circles);
  drawWaits(at("waits"), chains(seen.waits));
  at("nobody").hidden = seen.waits.length > 0;
  set(at("more"), seen.more_waits ? "… and " + plural(seen.more_waits, "more wait", "more waits") : "");
  const notes = [plural(seen.recipes.length, "recipe", "recipes"), plural(seen.looked_at, "node was", "nodes were") + " looked at"];
  if (seen.more_recipes) notes.push(seen.more_recipes + " more recipes are not shown: name a path further down");
  if (seen.left_out) notes.push(plural(seen.left_out, "node was", "nodes were") + " left out, with what is below (--most, --connect-timeout)");
  if (seen.hidden.length > 0) notes.push("not to be listed: " + seen.hidden.join(", "));
  set(at("extent"), notes.join("; "));
}

// tell says how far what is shown can be trusted.
function tell(kind, state, detail) {
  at("state").className = kind;
  set(at("state"), state);
  set(at("age"), detail);
}

function show(answer) {
  every = answer.every * 1000;
  acts = answer.acts;
  if (answer.seen) draw(answer.seen);
  const from = answer.seen ? "what is shown is " + age(answer.age) + " old" : "nothing has been seen yet";
  if (answer.error) tell("old", "The servers cannot be asked", answer.error + "; " + from);
  else if (answer.old) tell("old", "The servers take long", from);
  else if (answer.seen) tell("live", "live", "seen " + age(answer.age) + " ago");
  document.body.dataset.state = answer.old ? "old" : "live";
}

// look asks, and asks again while the page is looked at.
let looking = false;
async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const answer = await fetch("look", { signal: AbortSignal.timeout(6000) });
    if (!answer.ok) throw new Error(await answer.text());
    show(await answer.json());
    lastAnswer = Date.now();
  } catch (err) {
    tell("old", "zkcoord does not answer", err.message + "; the last answer came " + age((Date.now() - lastAnswer) / 1000) + " ago");
    document.body.dataset.state = "gone";
  }
  looking = false;
  clearTimeout(look.timer);
  look.timer = setTimeout(look, every);
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) tell("", "looking …", "");
  look();
});

// ask has an act confirmed, of what was shown when it was asked for.
function ask(act, target) {
  const [question, warning] = questions[act];
  const { path, node, session, owner } = target;
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
    carryOut(act, { path, node, session });
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

look();
