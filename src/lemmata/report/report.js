"use strict";
// The page works without this script; it adds formulas, the grids, search, sorting and the contents that follow.
(() => {
  const make = (tag, attrs = {}, ...inside) => {
    const one = Object.assign(document.createElement(tag), attrs);
    one.append(...inside);
    return one;
  };
  const short = value => (value === null ? "none" : String(Number(value.toPrecision(3))));
  const mean = values => {
    const known = values.filter(value => value !== null);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  };

  // Formulas
  for (const one of document.querySelectorAll(".tex[data-tex]")) {
    const said = one.textContent;
    try {
      katex.render(one.dataset.tex, one, {throwOnError: true});
    } catch (error) {
      one.textContent = said;
      one.classList.add("unrendered");
    }
  }

  // The grid of cells behind a picture
  const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const colour = share => {
    const at = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1), low = Math.min(Math.floor(at), STOPS.length - 2);
    const mixed = STOPS[low].map((part, i) => Math.round(part + (STOPS[low + 1][i] - part) * (at - low)));
    return {fill: `rgb(${mixed})`, dark: 0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2] < 130};
  };
  const quoted = word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

  const explore = box => {
    const data = JSON.parse(box.querySelector("script").textContent), axes = data.axes;
    const across = axes.length ? axes.length - 1 : -1, down = axes.length > 1 ? axes.length - 2 : -1;
    const held = axes.map(() => 0), strides = axes.map((_, i) => axes.slice(i + 1).reduce((n, a) => n * a.labels.length, 1));
    let shown = 0;
    const table = make("table", {className: "grid"}), panel = make("div", {className: "cell"});
    panel.setAttribute("aria-live", "polite");
    const controls = make("div", {className: "controls"});
    const choice = (name, labels, change) => {
      const select = make("select", {}, ...labels.map((label, i) => make("option", {value: i, textContent: label})));
      select.addEventListener("change", () => { change(Number(select.value)); draw(); });
      controls.append(make("label", {}, `${name} `, select));
    };
    choice("show", data.variables.map(v => v.meaning), i => { shown = i; });
    axes.slice(0, Math.max(down, 0)).forEach((axis, i) => choice(axis.name, axis.labels, at => { held[i] = at; }));
    const tell = cell => {
      const variable = data.variables[shown], values = variable.values[cell], counts = {};
      data.ends[cell].forEach(end => { counts[data.names[end]] = (counts[data.names[end]] || 0) + 1; });
      const place = axes.map((axis, i) => [axis, axis.labels[Math.floor(cell / strides[i]) % axis.labels.length]]);
      const command = [data.command, ...place.filter(([axis]) => data.settable.includes(axis.name))
        .map(([axis, label]) => `--set ${quoted(`${axis.name}=${label}`)}`)].join(" ");
      const copy = make("button", {type: "button", textContent: "copy"});
      copy.addEventListener("click", () => navigator.clipboard?.writeText(command).then(() => { copy.textContent = "copied"; }));
      panel.replaceChildren(
        make("p", {}, make("b", {textContent: `${variable.meaning}: ${short(mean(values))}`}),
          place.length ? ` at ${place.map(([axis, label]) => `${axis.name} = ${label}`).join(", ")}` : ""),
        make("p", {textContent: "seeds: " + values.map((value, i) => `${data.seeds[i]}: ${short(value)}`).join("; ")}),
        make("p", {textContent: "runs: " + Object.entries(counts).map(([end, n]) => `${n} ${end}`).join(", ")}),
        ...(data.command ? [make("p", {}, make("code", {textContent: command}), " ", copy)] : []));
    };
    const draw = () => {
      const means = data.variables[shown].values.map(mean), known = means.filter(value => value !== null);
      const low = Math.min(...known), high = Math.max(...known), log = low > 0 && high / low > 100;
      const scaled = value => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)) || 0;
      const columns = across < 0 ? [""] : axes[across].labels, rows = down < 0 ? [""] : axes[down].labels;
      const start = held.reduce((sum, at, i) => sum + at * strides[i], 0);
      table.classList.toggle("dense", columns.length > 12);
      const head = make("tr", {}, make("th", {textContent: down < 0 ? "" : axes[down].name}),
        ...columns.map(label => make("th", {scope: "col", textContent: label})));
      const body = [...rows.keys()].reverse().map(row => make("tr", {}, make("th", {scope: "row", textContent: rows[row]}),
        ...columns.map((_, column) => {
          const cell = start + (down < 0 ? 0 : row * strides[down]) + column, value = means[cell], at = make("td", {tabIndex: -1});
          at.dataset.cell = cell;
          at.append(make("span", {textContent: short(value)}));
          if (value !== null) {
            const {fill, dark} = colour(scaled(value));
            at.style.background = fill;
            at.style.color = dark ? "#fff" : "#000";
          }
          for (const event of ["mouseenter", "focus", "click"]) at.addEventListener(event, () => tell(cell));
          return at;
        })));
      const foot = make("caption", {textContent: across < 0 ? "one setting" : `across: ${axes[across].meaning}`
        + (down < 0 ? "" : `; up: ${axes[down].meaning}`) + `; mean over seeds${log ? ", colours on a logarithmic scale" : ""}`});
      table.replaceChildren(foot, head, ...body);
      const first = table.querySelector("td");
      first.tabIndex = 0;
      tell(Number(first.dataset.cell));
    };
    table.addEventListener("keydown", event => {
      const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
      const at = event.target.closest("td");
      if (!step || !at) return;
      const row = table.rows[at.parentNode.rowIndex + step[0]], next = row && row.cells[at.cellIndex + step[1]];
      if (next && next.tagName === "TD") { at.tabIndex = -1; next.tabIndex = 0; next.focus(); }
      event.preventDefault();
    });
    box.append(controls, make("div", {className: "scroll"}, table), panel);
    draw();
  };
  for (const box of document.querySelectorAll(".explore")) {
    const fold = box.closest("details");
    if (!fold || fold.open) explore(box);
    else fold.addEventListener("toggle", () => { if (!box.querySelector("table")) explore(box); });
  }

  // Search and sorting
  const search = document.querySelector("#search"), outcome = document.querySelector("#outcome"), count = document.querySelector("#count");
  const claims = [...document.querySelectorAll("tbody.claim")];
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), wanted = outcome.value;
    let seen = 0;
    for (const one of claims) {
      const text = one.dataset.text || (one.dataset.text = one.textContent.toLowerCase());
      one.hidden = !(words.every(word => text.includes(word)) && (!wanted || one.dataset.outcome === wanted));
      seen += !one.hidden;
    }
    count.textContent = `${seen} of ${claims.length} claims`;
  };
  if (search) {
    search.addEventListener("input", filter);
    outcome.addEventListener("change", filter);
    filter();
  }
  for (const table of document.querySelectorAll("table.verdicts")) {
    table.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
      const up = button.parentNode.getAttribute("aria-sort") !== "ascending";
      const key = body => body.dataset[button.dataset.key] || "";
      table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
      button.parentNode.setAttribute("aria-sort", up ? "ascending" : "descending");
      [...table.tBodies].sort((a, b) => (up ? 1 : -1) * key(a).localeCompare(key(b), "en", {numeric: true}))
        .forEach(body => table.append(body));
    }));
  }

  // A link into what is folded unfolds it; the contents follow the reader.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
  const links = new Map([...document.querySelectorAll("nav.contents a")].map(a => [decodeURIComponent(a.hash.slice(1)), a]));
  const marks = [...links.keys()].map(id => document.getElementById(id)).filter(Boolean);
  const follow = () => {
    const past = marks.filter(mark => mark.getBoundingClientRect().top < 120).pop();
    for (const [id, link] of links) link.toggleAttribute("aria-current", Boolean(past) && past.id === id);
  };
  addEventListener("scroll", follow, {passive: true});
  follow();
  const side = document.querySelector("nav.contents details");
  if (side && matchMedia("(max-width: 60rem)").matches) side.open = false;
  addEventListener("beforeprint", () => document.querySelectorAll("details.figure-text").forEach(d => { d.open = true; }));
})();
