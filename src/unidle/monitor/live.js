// Draws the page anew each second. A figure stays as it is while the pointer is in it, and while it is zoomed.
"use strict";
(() => {
  const EVERY_MS = 1000;
  const PATIENCE_MS = 5000;
  const main = document.querySelector("main");
  const lost = document.createElement("p");
  lost.className = "caution";
  lost.textContent = document.body.dataset.lost;
  lost.hidden = true;
  main.before(lost);

  const figureInUse = () => main.querySelector("figure:hover, figure:has(.whole:not([hidden]))");
  const show = (markup) => {
    const next = document.createElement("template");
    next.innerHTML = markup;
    const used = figureInUse();
    const place = next.content.querySelector("figure");
    if (used && place) {
      place.replaceWith(used);
    }
    main.replaceChildren(next.content);
    if (!used) {
      document.dispatchEvent(new Event("drawn"));
    }
  };
  const draw = async () => {
    try {
      const answer = await fetch("content" + location.search, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      if (!answer.ok) {
        throw new Error(answer.statusText);
      }
      show(await answer.text());
      lost.hidden = true;
    } catch (failure) {
      lost.hidden = false;
    }
    setTimeout(draw, EVERY_MS);
  };
  setTimeout(draw, EVERY_MS);
})();
