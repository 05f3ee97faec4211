/** What became of an answer, and the class of that word. */
function verdict(answer) {
  if (answer.status === "error" || answer.status === "skipped") return ["not counted", ""];
  return answer.correct ? ["✓ right", "right"] : ["✗ wrong", "wrong"];
}

/** Fills the chooser of what can be browsed, if there is anything; columns(block) are the elements that show one. */
function browse(columns) {
  const chooser = document.getElementById("chosen");
  if (!chooser) return;
  const names = data("names"), place = document.getElementById("shown");
  const back = document.getElementById("previous"), forth = document.getElementById("next");

  function show(number) {
    chooser.selectedIndex = number;
    back.disabled = number === 0;
    forth.disabled = number === names.length - 1;
    place.replaceChildren(...columns(data(`shown-${number}`)));
  }

  chooser.append(...names.map((name) => make("option", {}, name)));
  chooser.onchange = () => show(chooser.selectedIndex);
  back.onclick = () => show(chooser.selectedIndex - 1);
  forth.onclick = () => show(chooser.selectedIndex + 1);
  show(0);
}
