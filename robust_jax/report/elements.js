"use strict";
// The page's data are JSON in blocks of their own; texts reach the page as text nodes only.

const data = (id) => JSON.parse(document.getElementById(id).textContent);

/** A new element: make("td", {className: "number"}, "text", child). */
function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
