const collator = new Intl.Collator("en", {numeric: true});

/** Orders two sort keys; null stands last in either direction. */
function compare(left, right, direction) {
  if (left === null || right === null) return (left === null) - (right === null);
  if (typeof left === "string") return direction * collator.compare(left, right);
  return direction * (left - right);
}

/**
 * Fills `place` with a table that sorts and pages.
 * columns: [{title, kind}], cell(row, column): [text, key, class?]. A click on row i calls choose(i) if canChoose(i).
 * Only the rows of one page are made; show(rows) leaves all but some out.
 */
function pagedTable(place, columns, count, cell, size, canChoose = () => false, choose = () => {}) {
  const all = Array.from({length: count}, (_, number) => number);
  let order = all, shown = all;
  let visible = all, sorted = {column: -1, direction: 1}, page = 0, chosen = -1;
  const headers = columns.map((column, number) => {
    const button = make("button", {type: "button", onclick: () => sort(number)}, column.title);
    return make("th", {scope: "col", className: column.kind}, button);
  });
  const body = make("tbody", {}), range = make("span", {});
  const back = make("button", {type: "button", onclick: () => turn(-1)}, "Previous");
  const forth = make("button", {type: "button", onclick: () => turn(1)}, "Next");
  const pager = make("div", {className: "pager"}, back, forth, range);
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...headers)), body);
  place.replaceChildren(make("div", {className: "scroll"}, table), pager);

  function sort(column) {
    const first = columns[column].kind === "number" ? -1 : 1;
    sorted = {column, direction: sorted.column === column ? -sorted.direction : first};
    const keys = all.map((number) => cell(number, column)[1]);
    order = [...all].sort((a, b) => compare(keys[a], keys[b], sorted.direction) || a - b);
    show(shown);
  }

  function show(rows) {
    shown = rows;
    const kept = new Set(rows);
    visible = rows.length === count ? order : order.filter((number) => kept.has(number));
    page = 0;
    draw();
  }

  function turn(step) {
    page += step;
    draw();
  }

  function pick(number) {
    chosen = number;
    draw();
    choose(number);
  }

  function draw() {
    headers.forEach((header, number) => {
      if (number !== sorted.column) header.removeAttribute("aria-sort");
      else header.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
    });
    body.replaceChildren(...visible.slice(page * size, (page + 1) * size).map((number) => {
      const cells = columns.map((_, column) => {
        const [text, , look] = cell(number, column);
        const content = column === 0 && canChoose(number) ? make("button", {type: "button"}, text) : text;
        return make("td", {className: `${columns[column].kind} ${look ?? ""}`.trim()}, content);
      });
      const row = make("tr", {className: number === chosen ? "chosen" : ""}, ...cells);
      if (canChoose(number)) row.onclick = () => pick(number);
      return row;
    }));
    if (!visible.length) {
      body.append(make("tr", {}, make("td", {colSpan: columns.length, className: "missing"}, "not available")));
    }
    back.disabled = page === 0;
    forth.disabled = (page + 1) * size >= visible.length;
    pager.hidden = visible.length <= size;
    const last = Math.min((page + 1) * size, visible.length);
    range.textContent = `${page * size + 1}–${last} of ${visible.length.toLocaleString("en")}`;
  }

  draw();
  return {pick, show};
}

const page = data("page-data");
const chooser = document.getElementById("chosen-template");

function verdict(attempt) {
  if (attempt.status === "error" || attempt.status === "skipped") return "not counted";
  return attempt.correct ? "✓ right" : "✗ wrong";
}

function verdictClass(attempt) {
  return {"✓ right": "right", "✗ wrong": "wrong"}[verdict(attempt)] ?? "";
}

function column(title, attempt) {
  if (!attempt) return make("div", {}, make("h4", {}, title), make("p", {className: "missing"}, "not available"));
  return make("div", {},
    make("h4", {}, title),
    make("h5", {}, "Question"), make("p", {className: "text"}, attempt.question),
    make("h5", {}, "Reply"), make("p", {className: "text"}, attempt.response));
}

/** Segments [kind, before, after] of an alignment, with deletions, insertions and substitutions marked. */
function compared(title, segments) {
  const marks = {
    equal: (before, after) => after,
    insert: (before, after) => make("ins", {}, after),
    delete: (before) => make("del", {}, before),
    replace: (before, after) =>
      make("span", {className: "replaced"}, make("del", {}, before), make("ins", {}, after)),
  };
  const text = make("p", {className: "text"});
  for (const [kind, before, after] of segments) {
    const gap = /^\s*/.exec(after)[0] || (text.hasChildNodes() ? " " : "");
    text.append(gap, marks[kind](before, after.trimStart()));
  }
  return make("div", {className: "compared"}, make("h4", {}, title), make("p", {className: "legend"},
    make("span", {}, make("del", {}, "only there")), make("span", {}, make("ins", {}, "only here")),
    make("span", {className: "replaced"}, make("del", {}, "there"), make("ins", {}, "here instead"))), text);
}

function showVariation(examples, number) {
  const variation = examples.variations[number];
  const fact = (name, value, className = "") => make("div", {}, make("span", {}, name), make("b", {className}, value));
  const parts = [
    make("h3", {}, `Variation ${number + 1} of ${examples.variations.length}`),
    make("div", {className: "facts"},
      fact("Result", verdict(variation), verdictClass(variation)),
      fact("Read from the reply", variation.extracted ?? "nothing"), fact("Right answer", variation.gold),
      fact("Difficulty", variation.shown_difficulty), fact("Status", variation.status)),
    make("div", {className: "beside"},
      column("This variation", variation),
      column("Nearest right reply", variation.reference === null ? null : examples.references[variation.reference]),
      column("Base problem", examples.base)),
  ];
  if (variation.reply_differences) {
    parts.push(compared("Reply against the nearest right reply, token by token", variation.reply_differences));
  }
  if (variation.question_differences) {
    parts.push(compared("Question against the base problem, token by token", variation.question_differences));
  }
  document.getElementById("variation").replaceChildren(...parts);
}

function showTemplate(number) {
  chooser.selectedIndex = number;
  document.getElementById("previous-template").disabled = number === 0;
  document.getElementById("next-template").disabled = number === page.examples.length - 1;
  const examples = data(`examples-${number}`);
  const shown = examples.variations.length;
  document.getElementById("shown-variations").textContent =
    shown < examples.given ? `The first ${shown} of ${examples.given} variations.` : "";
  const columns = [
    {title: "#", kind: "number"}, {title: "Difficulty", kind: "number"}, {title: "Result", kind: "verdict"},
    {title: "Read", kind: "number"}, {title: "Right answer", kind: "number"}, {title: "Status", kind: "words"},
    {title: "Question", kind: "excerpt"},
  ];
  const rows = examples.variations.map((variation, place) => [
    [`${place + 1}`, place + 1], [variation.shown_difficulty, variation.difficulty],
    [verdict(variation), verdict(variation), verdictClass(variation)], [variation.extracted ?? "nothing", variation.extracted],
    [variation.gold, variation.gold], [variation.status, variation.status],
    [variation.question.slice(0, 200), variation.question],
  ]);
  const table = pagedTable(document.getElementById("variations-table"), columns, rows.length,
    (row, column) => rows[row][column], 10, () => true, (place) => showVariation(examples, place));
  if (shown) table.pick(0);
  else document.getElementById("variation").replaceChildren();
}

const places = new Map(page.examples.map((name, place) => [name, place]));
const placeOfRow = (number) => places.get(page.tables["templates-table"].rows[number][0][0]);

function storedTable(id, size, ...choice) {
  const {columns, rows} = page.tables[id];
  pagedTable(document.getElementById(id), columns, rows.length, (row, column) => rows[row][column], size, ...choice);
}

storedTable("templates-table", 25, (number) => placeOfRow(number) !== undefined, (number) => {
  showTemplate(placeOfRow(number));
  document.getElementById("variations").scrollIntoView();
});
if (page.tables["values-table"]) {
  storedTable("slots-table", 10);
  storedTable("values-table", 15);
}

/** The table of every answer; there may be a hundred thousand, so it is made when a reader comes near. */
function showAnswers() {
  const rows = data("answers-data");
  const templates = page.slots.map(([name]) => name);
  const values = (row) => row[2].map((value, place) => `${page.slots[row[0]][1][place]} = ${value}`).join(", ");
  const results = ["✗ wrong", "✓ right", "not counted"], looks = ["wrong", "right", ""];
  const columns = [
    {title: "Template", kind: "words"}, {title: "Arm", kind: "words"}, {title: "Values", kind: "words"},
    {title: "Difficulty", kind: "number"}, {title: "Result", kind: "verdict"}, {title: "Read", kind: "number"},
    {title: "Right answer", kind: "number"},
  ];
  const cells = [
    (row) => [templates[row[0]], templates[row[0]]], (row) => [page.arms[row[1]] ?? row[1], row[1]],
    (row) => [values(row), values(row)], (row) => [row[3] === null ? "" : row[3].toPrecision(4), row[3]],
    (row) => [results[row[4]], row[4], looks[row[4]]], (row) => [row[5] ?? "nothing", row[5]], (row) => [row[6], row[6]],
  ];
  const table = pagedTable(document.getElementById("answers-table"), columns, rows.length,
    (row, column) => cells[column](rows[row]), 20);
  const filter = document.getElementById("answers-filter");
  filter.oninput = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${templates[row[0]]} ${page.arms[row[1]] ?? row[1]} ${values(row)} ${results[row[4]]}`.toLowerCase();
    table.show(rows.flatMap((row, number) => wanted.every((word) => text(row).includes(word)) ? [number] : []));
  };
}

const answersPlace = document.getElementById("answers");
if (answersPlace) {
  new IntersectionObserver((entries, observer) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      observer.disconnect();
      showAnswers();
    }
  }, {rootMargin: "800px"}).observe(answersPlace);
}
if (chooser) {
  chooser.append(...page.examples.map((name) => make("option", {}, name)));
  chooser.onchange = () => showTemplate(chooser.selectedIndex);
  document.getElementById("previous-template").onclick = () => showTemplate(chooser.selectedIndex - 1);
  document.getElementById("next-template").onclick = () => showTemplate(chooser.selectedIndex + 1);
  showTemplate(0);
}
