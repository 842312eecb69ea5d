// Draws the page anew each second. It waits while the pointer or the keyboard is in a figure.
"use strict";
(() => {
  const EVERY_MS = 1000;
  const main = document.querySelector("main");
  const lost = document.createElement("p");
  lost.className = "caution";
  lost.textContent = document.body.dataset.lost;
  lost.hidden = true;
  main.before(lost);

  const isUsed = () => main.querySelector("figure:hover, figure:focus-within") !== null;
  const draw = async () => {
    if (!document.hidden && !isUsed()) {
      try {
        const answer = await fetch("content" + location.search, { cache: "no-store" });
        if (!answer.ok) {
          throw new Error(answer.statusText);
        }
        const markup = await answer.text();
        if (!isUsed()) {
          main.innerHTML = markup;
          document.dispatchEvent(new Event("drawn"));
        }
        lost.hidden = true;
      } catch (failure) {
        lost.hidden = false;
      }
    }
    setTimeout(draw, EVERY_MS);
  };
  setTimeout(draw, EVERY_MS);
})();
