/** One form of a problem: what was asked, and what was answered. A picture keeps its lines. */
function column(form) {
  const [word, look] = verdict(form);
  const asked = form.question.includes("\n") ? "" : "prose";
  return make("div", {},
    make("h4", {}, form.form),
    make("p", {className: look}, `${word} · ${form.status} · read ${form.extracted ?? "nothing"}, right is ${form.gold}`),
    make("h5", {}, "Question"), make("pre", {className: asked}, form.question),
    make("h5", {}, "Reply"), make("pre", {className: "prose"}, form.response));
}

browse((forms) => forms.map(column));
