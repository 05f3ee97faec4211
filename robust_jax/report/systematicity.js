function passed(variation) {
  if (variation.passed === null) return ["undecided", ""];
  return variation.passed ? ["✓ passed", "right"] : ["✗ failed", "wrong"];
}

function fact(name, [value, className]) {
  return make("div", {}, make("span", {}, name), make("b", {className}, value));
}

function attemptShown(attempt, number) {
  const [text, className] = verdict(attempt);
  return make("details", {},
    make("summary", {}, `Attempt ${number + 1}: `, make("b", {className}, text), ` · ${attempt.status}`),
    make("h5", {}, "Read from the reply"), make("p", {className: "text"}, attempt.extracted ?? "nothing"),
    make("h5", {}, "Reply"), make("p", {className: "text"}, attempt.response));
}

function variationShown(variation) {
  const right = variation.attempts.filter((attempt) => verdict(attempt)[1] === "right").length;
  return make("div", {},
    make("h4", {}, variation.variation),
    make("div", {className: "facts"}, fact("Result", passed(variation)),
      fact("Right", [`${right} of ${variation.attempts.length}`, ""])),
    make("h5", {}, "Asked"), make("p", {className: "text"}, variation.prompt),
    make("h5", {}, "Right answers"), make("p", {className: "text"}, variation.gold),
    make("h5", {}, "Hidden rule"), make("p", {className: "text"}, variation.rule),
    make("h5", {}, "Answered"), ...variation.attempts.map(attemptShown));
}

browse((task) => task.variations.map(variationShown));
