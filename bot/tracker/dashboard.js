"use strict";
// Strangers' words are in the data: every text is set as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = data.rows;
  const byId = new Map(rows.map((row) => [row.id, row]));
  const changed = new Map(data.changes.map((change) => [change.id, change]));
  const ROW_PX = 31;
  const MARKS = { g: "✓", b: "✗", m: "±", o: "!", t: "…", e: "…", i: "–", u: "–", x: "–" };
  const WORDS = {
    g: "passes", b: "fails as reported", m: "passes and fails: flaky", o: "another failure", t: "timeout",
    e: "out of memory", i: "cannot run: the API moved", u: "cannot run: not available here", x: "did not run: our failure",
  };
  const $ = (id) => document.getElementById(id);
  const number = new Intl.NumberFormat("en");

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  }

  const titleOf = (verdict) => data.titles[verdict] ?? verdict;
  const nameOf = (row) => (/^\d+$/.test(row.id) ? `#${row.id}` : row.id);
  const linkTo = (url, text) =>
    /^https:\/\//.test(url ?? "") ? make("a", { href: url, rel: "noreferrer" }, text) : document.createTextNode(text);
  const issueButton = (id) => {
    const row = byId.get(id);
    const label = row ? `${nameOf(row)} ${row.title}` : id;
    return make("button", { type: "button", class: "plain", onclick: () => show(id) }, label);
  };

  // ---------------------------------------------------------------------------------------------- filters

  const form = $("filters");
  const FIELDS = ["q", "state", "verdict", "toolchain", "fixed", "regressed", "order"];
  const field = (name) => form.elements.namedItem(name);
  const releases = Object.entries(data.releases).flatMap(([toolchain, versions]) =>
    versions.map((version, at) => ({ toolchain, version, at })));
  // The newest releases stand beside the verdict: on a narrow screen, the last columns are out of sight.
  const newestFirst = Object.keys(data.releases).flatMap((name) =>
    releases.filter((one) => one.toolchain === name).reverse());

  function fillOptions(name, pairs) {
    for (const [value, text] of pairs) field(name).append(make("option", { value }, text));
  }
  const counts = new Map();
  for (const row of rows) counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1);
  const kinds = data.order.filter((kind) => counts.has(kind));
  fillOptions("verdict", kinds.map((kind) => [kind, `${titleOf(kind)} (${counts.get(kind)})`]));
  fillOptions("toolchain", [...new Set(rows.map((row) => row.toolchain).filter(Boolean))].sort().map((t) => [t, t]));
  for (const key of ["fixed", "regressed"]) {
    const seen = new Set(rows.filter((row) => row[key]).map((row) => `${row.toolchain} ${row[key]}`));
    const known = releases.map((one) => `${one.toolchain} ${one.version}`);
    const rank = (text) => (known.indexOf(text) < 0 ? known.length : known.indexOf(text));
    fillOptions(key, [...seen].sort((a, b) => rank(b) - rank(a)).map((text) => [text, text]));
  }

  const texts = new Map(rows.map((row) => [row, [
    nameOf(row), row.title, (row.labels ?? []).join(" "), row.signature, row.headline, (row.passes ?? []).join(" "), row.why,
  ].join("\n").toLowerCase()]));

  let shown = rows;
  let columns = [];
  const codeOf = (row, column) => (row.toolchain === column.toolchain ? row.cells?.[column.at] ?? "." : ".");

  function readFilters() {
    return Object.fromEntries(FIELDS.map((name) => [name, field(name).value]));
  }

  function filter() {
    const wanted = readFilters();
    const words = wanted.q.toLowerCase().split(/\s+/).filter(Boolean);
    shown = rows.filter((row) =>
      (!wanted.state || row.open === (wanted.state === "open")) &&
      (!wanted.verdict || row.verdict === wanted.verdict) &&
      (!wanted.toolchain || row.toolchain === wanted.toolchain) &&
      (!wanted.fixed || `${row.toolchain} ${row.fixed}` === wanted.fixed) &&
      (!wanted.regressed || `${row.toolchain} ${row.regressed}` === wanted.regressed) &&
      words.every((word) => texts.get(row).includes(word)));
    const orders = {
      verdict: (a, b) => data.order.indexOf(a.verdict) - data.order.indexOf(b.verdict),
      confidence: (a, b) => (b.confidence ?? 0) - (a.confidence ?? 0),
      changed: (a, b) => Number(changed.has(b.id)) - Number(changed.has(a.id)),
    };
    if (orders[wanted.order]) shown.sort(orders[wanted.order]);
    columns = newestFirst.filter((one) => shown.some((row) => codeOf(row, one) !== "."));
    $("count").value = `${number.format(shown.length)} of ${number.format(rows.length)} issues`;
    for (const tile of $("tiles").querySelectorAll("button")) {
      tile.setAttribute("aria-pressed", String(tile.dataset.verdict === wanted.verdict));
    }
    drawHead();
    $("scroll").scrollTop = 0;
    drawRows(true);
  }

  // ---------------------------------------------------------------------------------------------- the table

  const head = $("grid").tHead;
  const body = $("grid").tBodies[0];
  let drawn = "";

  function isFirstOfGroup(at) {
    return at > 0 && columns[at].toolchain !== columns[at - 1].toolchain;
  }

  function drawHead() {
    const many = new Set(columns.map((one) => one.toolchain)).size > 1;
    head.replaceChildren(make("tr", { "aria-rowindex": 1 },
      make("th", { scope: "col", class: "first" }, "Issue"),
      make("th", { scope: "col" }, "Verdict"),
      ...columns.map((one, at) => make("th", { scope: "col", class: isFirstOfGroup(at) ? "r group" : "r" },
        make("span", {}, many ? `${one.toolchain} ${one.version}` : one.version)))));
    $("grid").setAttribute("aria-rowcount", String(shown.length + 1));
  }

  function drawRow(row, at) {
    const note = changed.has(row.id) ? " ● changed" : "";
    return make("tr", { "aria-rowindex": at + 2 },
      make("th", { scope: "row" }, make("button", {
        type: "button", "data-at": at, title: row.title, onclick: () => show(row.id),
      }, `${nameOf(row)} ${row.title}`)),
      make("td", { class: "verdict" }, titleOf(row.verdict) + (row.open ? "" : ", closed") + note),
      ...columns.map((column, place) => {
        const code = codeOf(row, column);
        const group = isFirstOfGroup(place) ? " group" : "";
        if (code === ".") return make("td", { class: `c${group}` });
        return make("td", { class: `c ${code}${group}`, title: `${column.toolchain} ${column.version}: ${WORDS[code]}` },
          MARKS[code]);
      }));
  }

  function pad(count) {
    const cell = make("td", { colspan: columns.length + 2 });
    cell.style.height = `${count * ROW_PX}px`;
    return make("tr", { class: "pad", "aria-hidden": "true" }, cell);
  }

  function drawRows(force = false) {
    const view = $("scroll");
    const first = Math.max(0, Math.floor(view.scrollTop / ROW_PX) - 8);
    const last = Math.min(shown.length, first + Math.ceil(innerHeight / ROW_PX) + 16);
    const window = `${first}-${last}`;
    if (!force && window === drawn) return;
    drawn = window;
    const focused = document.activeElement?.dataset?.at;
    body.replaceChildren(
      ...(first > 0 ? [pad(first)] : []),
      ...shown.slice(first, last).map((row, at) => drawRow(row, first + at)),
      ...(last < shown.length ? [pad(shown.length - last)] : []));
    if (focused !== undefined) body.querySelector(`button[data-at="${focused}"]`)?.focus({ preventScroll: true });
  }

  function moveFocus(event) {
    const at = Number(event.target.dataset?.at);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || Number.isNaN(at) || event.target.dataset.at === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(shown.length - 1, at + step));
    const view = $("scroll");
    const top = next * ROW_PX;
    const room = view.clientHeight - head.offsetHeight - ROW_PX;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top > view.scrollTop + room) view.scrollTop = top - room;
    drawRows(true);
    body.querySelector(`button[data-at="${next}"]`)?.focus({ preventScroll: true });
  }

  // ---------------------------------------------------------------------------------------------- one issue

  const dialog = $("detail");

  function describeFix(row) {
    const by = /^[0-9a-f]{40}$/.test(row.fixed_by ?? "") ? `commit ${row.fixed_by.slice(0, 12)}` : row.fixed_by;
    return [by, row.fixed && (by ? `first released in ${row.fixed}` : row.fixed),
      row.not_in && `not in ${row.not_in.join(", ")}`].filter(Boolean).join(", ");
  }

  function show(id) {
    const row = byId.get(id);
    if (!row) return;
    const change = changed.get(id);
    const facts = [
      ["Verdict", `${titleOf(row.verdict)}${row.confidence ? `, confidence ${row.confidence.toFixed(2)}` : ""}`],
      ["In words", row.headline],
      ["Changed", change ? `from ${titleOf(change.before)} to ${titleOf(change.after)} (${change.why})` : ""],
      ["Fixed in", describeFix(row)],
      ["Regressed in", row.regressed],
      ["Cannot run because", row.why],
      ["Failure", row.signature],
      ["Guilty pass", (row.passes ?? []).join(", ")],
      ["Compiler", row.toolchain],
      ["Labels", (row.labels ?? []).join(", ")],
      ["State", row.open ? "open" : "closed"],
      ["Answered", row.answered],
    ].filter(([, text]) => text);
    const cells = (data.releases[row.toolchain] ?? []).map((version, at) => [version, row.cells?.[at] ?? "."])
      .filter(([, code]) => code !== ".");
    const parts = [
      make("h2", { id: "detail-title" }, `${nameOf(row)} ${row.title}`),
      make("p", { class: "bar" },
        row.page ? make("a", { href: row.page }, "Report with all runs") : null,
        row.url ? linkTo(row.url, "Issue") : null),
      make("dl", {}, ...facts.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])),
    ];
    if (cells.length) {
      parts.push(make("ul", { class: "cells", "aria-label": "Releases" },
        ...cells.map(([version, code]) => make("li", { class: code }, `${version} ${WORDS[code]}`))));
    }
    if (row.like) {
      parts.push(make("h3", {}, "Behaves like"), make("ul", {}, ...row.like.map((other) =>
        make("li", {}, issueButton(other), row.same?.includes(other) ? ": the same failure, by runs of both testcases" : ""))));
    }
    parts.push(make("p", { class: "bar" }, make("button", { type: "button", onclick: () => dialog.close() }, "Close")));
    dialog.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    writeLink({ id });
  }

  dialog.addEventListener("close", () => writeLink({}));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  // ---------------------------------------------------------------------------------------------- permalinks

  function writeLink({ id }) {
    const parts = Object.entries(readFilters()).filter(([, value]) => value);
    const hash = new URLSearchParams([...parts, ...(id ? [["id", id]] : [])]).toString();
    history.replaceState(null, "", hash ? `#${hash}` : `${location.pathname}${location.search}`);
  }

  function readLink() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const name of FIELDS) field(name).value = wanted.get(name) ?? "";
    for (const name of FIELDS) if (field(name).value === "" && field(name).options) field(name).selectedIndex = 0;
    filter();
    if (wanted.get("id")) show(wanted.get("id"));
    else if (dialog.open) dialog.close();
  }

  function choose(name, value) {
    field(name).value = value;
    filter();
    writeLink({});
    $("issues").scrollIntoView();
  }

  // ---------------------------------------------------------------------------------------------- the other parts

  function drawTiles() {
    $("tiles").append(...kinds.map((kind) => make("li", {}, make("button", {
      type: "button", "data-verdict": kind, "aria-pressed": "false",
      onclick: () => choose("verdict", field("verdict").value === kind ? "" : kind),
    }, make("strong", {}, number.format(counts.get(kind))), titleOf(kind)))));
  }

  function makeTable(heads, lines) {
    return make("table", { class: "list" },
      make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((cell, at) =>
        make(at ? "td" : "th", at ? { class: typeof cell === "number" ? "number" : "" } : { scope: "row" },
          typeof cell === "number" ? number.format(cell) : cell))))));
  }

  function drawChanges() {
    const lines = data.changes.map((one) => [issueButton(one.id), titleOf(one.before), titleOf(one.after), one.why]);
    $("changes").append(lines.length
      ? makeTable(["Issue", "Before", "Now", "Why it ran again"], lines.slice(0, 200))
      : make("p", { class: "soft" }, data.sweep.sweep > 1 ? "No verdict changed." : "This is the first sweep."));
    if (lines.length > 200) $("changes").append(make("p", { class: "soft" }, `and ${lines.length - 200} more: order by “changed first”`));
  }

  function drawReleases() {
    const tally = new Map(releases.map((one) => [`${one.toolchain} ${one.version}`, { fixed: 0, regressed: 0, b: 0, g: 0 }]));
    for (const row of rows) {
      for (const key of ["fixed", "regressed"]) {
        const found = row[key] && tally.get(`${row.toolchain} ${row[key]}`);
        if (found) found[key] += 1;
      }
      const versions = data.releases[row.toolchain] ?? [];
      for (let at = 0; at < (row.cells?.length ?? 0); at += 1) {
        const code = row.cells[at];
        if (code === "b" || code === "g") tally.get(`${row.toolchain} ${versions[at]}`)[code] += 1;
      }
    }
    const lines = [...tally].map(([name, one]) => {
      const cell = (key) => (one[key]
        ? make("button", { type: "button", class: "plain", onclick: () => choose(key, name) }, number.format(one[key]))
        : "");
      return [name, cell("fixed"), cell("regressed"), one.b, one.g];
    }).reverse();
    $("releases").append(makeTable(["Release", "Fixed in", "Regressed in", "Fail there", "Pass there"], lines));
  }

  function drawClusters() {
    const seen = new Set();
    const groups = [];
    for (const row of rows) {
      if (!row.like || seen.has(row.id)) continue;
      const group = [row.id, ...row.like].filter((id) => byId.has(id));
      group.forEach((id) => seen.add(id));
      groups.push(group);
    }
    $("clusters").append(groups.length
      ? make("ul", {}, ...groups.slice(0, 100).map((group) => make("li", {},
        ...group.flatMap((id, at) => [...(at ? [", "] : []), issueButton(id)]))))
      : make("p", { class: "soft" }, "No two issues behave alike."));
  }

  // The curve of a calibrated bot lies on the diagonal. The table beside it has the same figures.
  function drawCurve(bins) {
    const SIZE = 220, EDGE = 30;
    const svg = (tag, attributes, ...inner) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      element.append(...inner);
      return element;
    };
    const x = (share) => EDGE + share * SIZE;
    const y = (share) => EDGE / 3 + (1 - share) * SIZE;
    const label = (text, at, up, anchor) => svg("text", { x: at, y: up, "text-anchor": anchor }, text);
    const points = bins.map((one) => [x(one.mean), y(one.right / one.known), one]);
    return svg("svg", {
      class: "curve", viewBox: `0 0 ${SIZE + EDGE + 12} ${SIZE + EDGE + 12}`, role: "img",
      "aria-label": "Reliability curve: share of right verdicts by confidence. The table has its figures.",
    },
      svg("rect", { x: x(0), y: y(1), width: SIZE, height: SIZE, class: "frame" }),
      svg("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "ideal" }),
      svg("polyline", { points: points.map(([a, b]) => `${a},${b}`).join(" "), class: "measured" }),
      ...points.map(([a, b, one]) => svg("circle", { cx: a, cy: b, r: Math.min(9, 3 + Math.sqrt(one.known)) })),
      label("0", x(0), y(0) + 14, "middle"), label("confidence", x(0.5), y(0) + 14, "middle"), label("1", x(1), y(0) + 14, "middle"),
      label("0", x(0) - 5, y(0), "end"), label("right", x(0) - 3, y(0.5), "end"), label("1", x(0) - 5, y(1) + 9, "end"));
  }

  function drawTruth() {
    const lines = (data.truth ?? []).map((one) => [titleOf(one.verdict), one.open, one.closed]);
    const bins = (data.reliability ?? []).filter((one) => one.known);
    const curve = bins.map((one) => [`${one.low.toFixed(1)} to ${one.high.toFixed(1)}`, one.known, one.right,
      `${Math.round(100 * one.right / one.known)} %`, one.mean.toFixed(2)]);
    const wrong = data.disagree ?? [];
    if (lines.length) $("truth").append(makeTable(["Verdict", "Open", "Closed"], lines));
    $("truth").append(make("p", { class: "soft" }, data.truth_note ?? ""));
    if (curve.length) {
      $("truth").append(
        make("div", { class: "beside" }, drawCurve(bins),
          makeTable(["Confidence", "Decided", "Agree", "Share", "Mean confidence"], curve)),
        makeTable(["Deciding fact", "Verdicts"], Object.entries(data.decided ?? {})));
    }
    if (wrong.length) {
      $("truth").append(make("h3", {}, "Verdicts that a later fact contradicts"),
        make("div", { class: "brief", tabindex: 0, role: "group", "aria-label": "Contradicted verdicts" },
          makeTable(["Issue", "Verdict", "Confidence", "Fact"], wrong.slice(0, 100).map((one) =>
            [issueButton(one.id), titleOf(one.verdict), one.confidence.toFixed(2), one.fact]))));
    }
  }

  drawTiles();
  drawChanges();
  drawReleases();
  drawClusters();
  drawTruth();
  form.addEventListener("input", () => { filter(); writeLink({}); });
  form.addEventListener("reset", () => setTimeout(() => { filter(); writeLink({}); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  $("scroll").addEventListener("scroll", () => drawRows(), { passive: true });
  body.addEventListener("keydown", moveFocus);
  window.addEventListener("resize", () => drawRows(true));
  window.addEventListener("hashchange", readLink);
  readLink();
})();
