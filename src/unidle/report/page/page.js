// Reads values under the pointer and zooms. Everything it knows is drawn: paths hold the data, attributes the scales.
"use strict";
(() => {
  const UNITS = 1000;
  const STEP = 0.02;  // of the visible axis, for an arrow key

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const number = (text) => parseFloat(text);
  const shown = (value) => Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en").replace(/,/g, " ")
    : String(+value.toPrecision(3));

  // Points of a line: [x, y] in picture units.
  const pointsOf = (path) => Array.from(path.getAttribute("d").matchAll(/[ML]([\d.]+) ([\d.]+)/g),
    (match) => [number(match[1]), number(match[2])]);
  // Rectangles of columns and bands: [left, right, height].
  const rectsOf = (path) => Array.from(path.getAttribute("d").matchAll(/M([\d.]+) [\d.]+h([\d.]+)v([\d.]+)/g),
    (match) => [number(match[1]), number(match[1]) + number(match[2]), number(match[3])]);

  const nearest = (points, x) => {
    let low = 0;
    let high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      points[middle][0] < x ? low = middle + 1 : high = middle;
    }
    const before = points[Math.max(0, low - 1)];
    return Math.abs(before[0] - x) < Math.abs(points[low][0] - x) ? before : points[low];
  };

  // What the paths of one area say at x: [name, text, colour class].
  const readerOf = (area) => {
    const low = number(area.dataset.low);
    const range = number(area.dataset.high) - low;
    const unit = area.dataset.unit.startsWith("%") ? " %" : "";
    const paths = Array.from(area.querySelectorAll("path[data-name]"), (path) => {
      const kind = path.classList[0];
      return { kind, name: path.dataset.name, css: path.classList[1], data: kind === "line" ? pointsOf(path) : rectsOf(path) };
    });
    return (x, reach) => paths.flatMap(({ kind, name, css, data }) => {
      if (kind === "line") {
        const point = data.length ? nearest(data, x) : null;
        return point && Math.abs(point[0] - x) <= reach ? [[name, shown(low + (UNITS - point[1]) / UNITS * range) + unit, css]] : [];
      }
      const rect = data.find(([from, to]) => x >= from && x <= to);
      return !rect ? [] : [[name, kind === "band" ? "" : shown(rect[2] / UNITS * range) + unit, css]];
    });
  };

  const ticksBetween = (from, to, most) => {
    const power = 10 ** Math.floor(Math.log10((to - from) / most));
    const step = [1, 2, 5, 10, 20].map((factor) => factor * power).find((each) => (to - from) / each <= most);
    const ticks = [];
    for (let i = Math.ceil(from / step); i * step <= to; ++i) {
      ticks.push(i * step);
    }
    const decimals = clamp(Math.ceil(-Math.log10(step) - 1e-9), 0, 6);
    return ticks.map((tick) => [tick, tick.toFixed(decimals)]);
  };

  const make = (tag, css, parent) => {
    const made = document.createElement(tag);
    made.className = css;
    parent.append(made);
    return made;
  };

  const enliven = (figure) => {
    const from = number(figure.dataset.from);
    const whole = number(figure.dataset.to) - from;
    const areas = Array.from(figure.querySelectorAll(".area"));
    const ticks = figure.querySelector(".ticks");
    const drawnTicks = ticks.innerHTML;
    let readers = null;  // made when first needed: a page has many points
    let view = [0, 1];
    let at = null;       // shares of the whole axis
    let pressed = null;
    const readout = make("div", "readout", figure);
    const reset = make("button", "whole", figure);
    const cursors = areas.map((area) => make("i", "cursor", area));
    const chosen = areas.map((area) => make("i", "chosen", area));
    reset.type = "button";
    reset.textContent = document.body.dataset.whole;

    const inView = (share) => (share - view[0]) / (view[1] - view[0]);
    const hide = (elements) => elements.forEach((element) => { element.hidden = true; });
    const leave = () => {
      at = null;
      hide([readout, ...cursors]);
    };

    const write = () => {
      const x = at * UNITS;
      readers = readers || areas.map(readerOf);
      readout.replaceChildren();
      make("b", "", readout).textContent = `${shown(from + at * whole)} ${figure.dataset.unit}`;
      const rows = readers.flatMap((read) => read(x, 15 * (view[1] - view[0])));
      const measured = new Set(rows.filter(([, value]) => value).map(([name]) => name));
      const seen = new Set();
      for (const [name, value, css] of rows) {
        if (!value && (measured.has(name) || seen.has(name))) {
          continue;  // a band says no more than the columns of the same phase
        }
        seen.add(name);
        const row = make("div", "", readout);
        const label = make("span", "", row);
        make("i", `swatch ${css}`, label);
        label.append(name);
        make("span", "", row).textContent = value;
      }
    };

    const look = (share) => {
      at = clamp(share, view[0], view[1]);
      const left = inView(at);
      cursors.forEach((cursor) => {
        cursor.hidden = false;
        cursor.style.left = `${left * 100}%`;
      });
      write();
      readout.hidden = false;
      const area = areas[0].getBoundingClientRect();
      const offset = area.left - figure.getBoundingClientRect().left + left * area.width;
      readout.style.left = left < 0.5 ? `${offset + 12}px` : "auto";
      readout.style.right = left < 0.5 ? "auto" : `${figure.clientWidth - offset + 12}px`;
    };

    const show = (low, high) => {
      const width = clamp(high - low, 1e-4, 1);
      const left = clamp(low, 0, 1 - width);
      view = [left, left + width];
      areas.forEach((area) => area.querySelector("svg").setAttribute("viewBox", `${left * UNITS} 0 ${width * UNITS} ${UNITS}`));
      areas.forEach((area) => area.querySelectorAll(".mark").forEach((mark) => { mark.hidden = width < 1; }));
      reset.hidden = width === 1;
      if (width === 1) {
        ticks.innerHTML = drawnTicks;
      } else {
        ticks.replaceChildren();
        for (const [tick, label] of ticksBetween(from + left * whole, from + view[1] * whole, figure.clientWidth / 90)) {
          const made = make("span", "", ticks);
          made.style.left = `${inView((tick - from) / whole) * 100}%`;
          made.textContent = label;
        }
      }
    };

    const zoom = (factor) => {
      const middle = at === null ? (view[0] + view[1]) / 2 : at;
      show(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
      look(middle);
    };

    const shareAt = (event) => {
      const box = areas[0].getBoundingClientRect();
      return view[0] + clamp((event.clientX - box.left) / box.width, 0, 1) * (view[1] - view[0]);
    };

    const choose = (to) => chosen.forEach((mark) => {
      const [left, right] = [inView(pressed), inView(to)].sort((a, b) => a - b);
      mark.hidden = false;
      mark.style.left = `${left * 100}%`;
      mark.style.width = `${(right - left) * 100}%`;
    });

    const keys = {
      ArrowLeft: () => look((at ?? view[0]) - STEP * (view[1] - view[0])),
      ArrowRight: () => look((at ?? view[0]) + STEP * (view[1] - view[0])),
      Home: () => look(view[0]),
      End: () => look(view[1]),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => show(0, 1),
      Escape: () => { show(0, 1); leave(); },
    };

    areas.forEach((area) => {
      area.addEventListener("pointermove", (event) => {
        look(shareAt(event));
        if (pressed !== null) {
          choose(shareAt(event));
        }
      });
      area.addEventListener("pointerdown", (event) => {
        if (event.pointerType === "mouse" && event.button === 0) {
          pressed = shareAt(event);
          area.setPointerCapture(event.pointerId);
          event.preventDefault();
          areas[0].focus({ preventScroll: true });
        }
      });
      area.addEventListener("pointerup", (event) => {
        const [low, high] = [pressed ?? 0, shareAt(event)].sort((a, b) => a - b);
        if (pressed !== null && inView(high) - inView(low) > 0.01) {
          show(low, high);
        }
        pressed = null;
        hide(chosen);
      });
      area.addEventListener("pointerleave", () => { if (pressed === null) { leave(); } });
      area.addEventListener("dblclick", () => show(0, 1));
    });
    areas[0].tabIndex = 0;
    areas[0].addEventListener("keydown", (event) => {
      if (keys[event.key] && !event.ctrlKey && !event.metaKey) {
        keys[event.key]();
        event.preventDefault();
      }
    });
    areas[0].addEventListener("blur", leave);
    reset.addEventListener("click", () => show(0, 1));
    figure.classList.add("zoomable");
    hide([readout, reset, ...cursors, ...chosen]);
  };

  // A click on a call shows it at full width, one on a call at full width shows its caller again.
  const enlivenFlame = (flame) => {
    const showWide = (call) => {
      flame.querySelectorAll("li").forEach((each) => each.classList.remove("wide", "aside"));
      for (let each = call; each; each = each.parentElement.closest(".flame li")) {
        each.classList.add("wide");
        Array.from(each.parentElement.children).filter((other) => other !== each).forEach((other) => other.classList.add("aside"));
      }
    };
    const toggle = (call) => showWide(call.classList.contains("wide") ? call.parentElement.closest(".flame li") : call);
    flame.classList.add("alive");
    flame.querySelectorAll("span").forEach((name) => {
      name.tabIndex = 0;
      name.setAttribute("role", "button");
      name.addEventListener("click", () => toggle(name.parentElement));
      name.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          toggle(name.parentElement);
          event.preventDefault();
        }
      });
    });
  };

  const start = () => {
    document.querySelectorAll("figure[data-to]").forEach(enliven);
    document.querySelectorAll(".flame").forEach(enlivenFlame);
  };
  start();
  document.addEventListener("drawn", start);  // all figures are new
})();
