// Replaces what has changed of the page every two seconds, or ten where less motion is wanted.
"use strict";
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
const every = calm ? 10000 : 2000;
const button = document.getElementById("pause");
const told = document.getElementById("status");
let paused = false;

function busy(part) {
  return part.contains(document.activeElement) || part.querySelector("details[open]");
}

function replace(fresh) {
  const there = document.querySelectorAll("[data-live]");
  const parts = fresh.querySelectorAll("[data-live]");
  const same = there.length === parts.length;
  if (!same || [...parts].some((part) => !document.getElementById(part.id))) {
    document.getElementById("main").replaceWith(fresh.getElementById("main"));
    return;
  }
  for (const part of parts) {
    const old = document.getElementById(part.id);
    if (!busy(old) && old.innerHTML !== part.innerHTML) old.replaceChildren(...part.childNodes);
  }
}

function say(words) {
  if (told.textContent !== words) told.textContent = words;
}

async function update() {
  if (!paused && !document.hidden && String(getSelection()) === "") {
    try {
      const answer = await fetch(new URL(location.pathname + location.search, location.origin));
      if (answer.status === 401) { // the browser would ask for a token again and again
        say("Not up to date: reload the page to pass a token");
        return;
      }
      if (!answer.ok) throw new Error(answer.status === 404 ? "deleted" : `status ${answer.status}`);
      replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
      say("Live");
    } catch (error) {
      say(`Not up to date: ${error instanceof TypeError ? "no connection" : error.message}`);
    }
  }
  setTimeout(update, every);
}

button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Resume updates" : "Pause updates";
  say(paused ? "Paused" : "Live");
});
say("Live");
setTimeout(update, every);
