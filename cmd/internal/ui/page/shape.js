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

// chains puts those who wait below what they wait for: a hold ends after the
// grants that were asked for under it. Each hold and wait has its followers
// once; holds of circles begin chains of their own.
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
