// What the page shows, made from what was seen: plain data, no elements.

// shown makes what nobody would see, or what would turn the text around it,
// visible.
export function shown(text) {
  return String(text ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu,
    (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

// age is a number of seconds as people write it.
export function age(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10) return seconds.toFixed(1) + " s";
  const whole = Math.round(seconds);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => whole >= size);
  return parts.slice(first, first + 2).map(([size, unit], i) =>
    (i === 0 ? Math.floor(whole / size) : Math.floor((whole % parts[first][0]) / size)) + " " + unit).join(" ");
}

export function plural(n, one, more) {
  return n + " " + (n === 1 ? one : more);
}

// tree arranges recipes by the segments of their paths. A segment with nothing
// but one other below it goes together with that one.
export function tree(recipes) {
  const root = { name: "", below: new Map() };
  for (const recipe of recipes) {
    let at = root;
    for (const name of recipe.path.split("/").filter(Boolean)) {
      if (!at.below.has(name)) at.below.set(name, { name, below: new Map() });
      at = at.below.get(name);
    }
    at.recipe = recipe;
  }
  const top = branches(root);
  return root.recipe ? [{ name: "/", recipe: root.recipe, below: top }] : top;
}

function branches(of) {
  return [...of.below.values()].map((branch) => {
    let name = "/" + branch.name;
    while (!branch.recipe && branch.below.size === 1) {
      branch = branch.below.values().next().value;
      name += "/" + branch.name;
    }
    return { name, recipe: branch.recipe, below: branches(branch) };
  });
}

// chains puts those who wait below those they wait for. Sessions of circles
// begin chains of their own; each session has its followers once.
export function chains(waits) {
  const followers = Map.groupBy(waits, (w) => w.for);
  const waiting = new Set(waits.map((w) => w.session));
  const drawn = new Set();
  const below = (session) => {
    if (drawn.has(session)) return [];
    drawn.add(session);
    return (followers.get(session) ?? []).map((w) => ({ owner: w.owner, session: w.session, wait: w, below: below(w.session) }));
  };
  const first = [...followers.keys()].sort((a, b) => waiting.has(a) - waiting.has(b));
  return first.flatMap((session) => {
    if (drawn.has(session)) return [];
    const [w] = followers.get(session);
    return [{ owner: w.for_owner, session, holds: followers.get(session).some((f) => f.for_holds), below: below(session) }];
  });
}
