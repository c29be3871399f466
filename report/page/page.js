"use strict";
(() => {
  // Each entry of rows is one container: its place in the document, what filters
  // ask for, and what columns are sorted by.
  const rows = JSON.parse(document.getElementById("rows").textContent);
  const money = document.getElementById("rows").dataset.currency;
  const $ = (id) => document.getElementById(id);
  const body = $("list").tBodies[0];
  const elements = Array.from(body.rows);
  const heads = Array.from(document.querySelectorAll("#list thead th"));
  const search = $("q"), namespace = $("ns"), kind = $("kind"), severity = $("sev"), changed = $("changed");
  let sorted = { key: "", descending: false };

  function matches(row, words) {
    return (!namespace.value || row.ns === namespace.value) && (!kind.value || row.kind === kind.value) &&
      row.sev >= Number(severity.value) && (!changed.checked || row.changed) && words.every((word) => row.text.includes(word));
  }

  // A row without a value stays last, whichever way the others are sorted.
  function order() {
    const indices = rows.map((_, i) => i);
    if (!sorted.key) return indices;
    const sign = sorted.descending ? -1 : 1;
    return indices.sort((a, b) => {
      const x = rows[a][sorted.key], y = rows[b][sorted.key];
      if (x === y) return a - b;
      if (x === null) return 1;
      if (y === null) return -1;
      return x < y ? -sign : sign;
    });
  }

  const detail = (i) => $("detail-" + i);

  function place() {
    const all = document.createDocumentFragment();
    for (const i of order()) {
      all.append(elements[i]);
      if (detail(i)) all.append(detail(i));
    }
    body.append(all);
    for (const th of heads) {
      const mine = th.querySelector("button").dataset.key === sorted.key && sorted.key;
      if (mine) th.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
  }

  function number(value, digits) {
    return value.toLocaleString("en", { maximumFractionDigits: digits, signDisplay: "exceptZero" }).replace("-", "−");
  }

  function amount(value) {
    const size = Math.abs(value);
    return (value < 0 ? "−" : "") + money + size.toFixed(size < 100 ? 2 : 0);
  }

  function total(id, values, write) {
    const known = values.filter((v) => v !== null);
    $(id).textContent = known.length ? write(known.reduce((a, b) => a + b, 0)) : "";
  }

  // At first a browser lays out so many rows; more are a click away.
  const most = 200;
  let all = false;

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = order().filter((i) => matches(rows[i], words));
    const on = new Set(all ? matching : matching.slice(0, most));
    elements.forEach((row, i) => {
      row.hidden = !on.has(i);
      if (detail(i)) detail(i).hidden = row.hidden;
    });
    const shown = matching.map((i) => rows[i]);
    $("shown").textContent = (shown.length === rows.length ? `All ${rows.length} match` : `${shown.length} of ${rows.length} match`) +
      (on.size < shown.length ? `, the first ${on.size} are shown` : "");
    $("empty").hidden = shown.length > 0;
    $("more").hidden = on.size === shown.length;
    $("more").firstChild.textContent = `Show all ${shown.length}`;
    total("sum-cpu", shown.map((r) => r.cpuDelta), (v) => number(v, 2) + " cores");
    total("sum-memory", shown.map((r) => r.memoryDelta), (v) => number(v / 2 ** 30, 2) + " GiB");
    if ($("sum-saving")) total("sum-saving", shown.map((r) => r.saving), amount);
    for (const button of document.querySelectorAll(".counts button")) {
      button.setAttribute("aria-pressed", String(button.dataset.sev === severity.value && severity.value !== "0"));
    }
    remember();
  }

  const fields = { q: search, ns: namespace, kind, sev: severity };

  // What is set stands in the address, so that a view can be passed on.
  function remember() {
    const state = new URLSearchParams();
    for (const [name, field] of Object.entries(fields)) {
      if (field.value && field.value !== "0") state.set(name, field.value);
    }
    if (changed.checked) state.set("changed", "1");
    if (sorted.key) state.set("sort", (sorted.descending ? "-" : "") + sorted.key);
    try {
      history.replaceState(null, "", "#" + state);
    } catch { /* Not every place a file is shown in has an address. */ }
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const [name, field] of Object.entries(fields)) {
      if (state.has(name)) field.value = state.get(name);
      if (field.selectedIndex === -1) field.selectedIndex = 0;
    }
    changed.checked = state.has("changed");
    const key = state.get("sort") || "";
    sorted = { key: key.replace(/^-/, ""), descending: key.startsWith("-") };
  }

  // The details of a row are text until somebody asks for them.
  function toggle(i) {
    const row = elements[i], button = row.querySelector("button");
    let open = detail(i);
    if (open) {
      open.remove();
    } else {
      open = document.createElement("tr");
      open.id = "detail-" + i;
      open.className = "detail";
      const cell = open.insertCell();
      cell.colSpan = heads.length;
      cell.innerHTML = $("d" + i).textContent;
      row.after(open);
    }
    const isOpen = open.isConnected;
    row.classList.toggle("open", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) button.setAttribute("aria-controls", open.id);
    else button.removeAttribute("aria-controls");
  }

  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr.row");
    if (row && !String(getSelection())) toggle(elements.indexOf(row));
  });
  for (const th of heads) {
    const button = th.querySelector("button");
    button.addEventListener("click", () => {
      const key = button.dataset.key, first = button.dataset.first === "descending";
      if (sorted.key !== key) sorted = { key, descending: first };
      else if (sorted.descending === first) sorted.descending = !first;
      else sorted = { key: "", descending: false };
      place();
      filter();
    });
  }
  for (const button of document.querySelectorAll(".counts button")) {
    button.addEventListener("click", () => {
      severity.value = severity.value === button.dataset.sev ? "0" : button.dataset.sev;
      filter();
    });
  }
  document.querySelector("form.filters").addEventListener("submit", (event) => event.preventDefault());
  $("more").firstChild.addEventListener("click", () => {
    all = true;
    filter();
  });
  search.addEventListener("input", filter);
  for (const field of [namespace, kind, severity, changed]) field.addEventListener("change", filter);
  $("reset").addEventListener("click", () => {
    search.value = "";
    for (const field of [namespace, kind, severity]) field.selectedIndex = 0;
    changed.checked = all = false;
    sorted = { key: "", descending: false };
    place();
    filter();
    search.focus();
  });
  addEventListener("hashchange", () => { recall(); place(); filter(); });
  recall();
  if (sorted.key) place();
  filter();
  document.documentElement.dataset.ready = "true";
})();
