/** One lane of the page: device, wire, cloud and attacker of one network. */

import { bytesOf } from "./halves.js";
import { paint, paintBytes } from "./pictures.js";
import { fixed, nameOf, number, percent, say, short } from "./words.js";

const MOST = 3; // classes that are shown

function shares(logits) {
  const most = Math.max(...logits);
  const raised = Array.from(logits, (value) => Math.exp(value - most));
  const sum = raised.reduce((all, each) => all + each, 0);
  return raised.map((each) => each / sum);
}

function span(className, textContent = "") {
  return Object.assign(document.createElement("span"), { className, textContent });
}

function bar(share, name) {
  const track = span("bar"), filled = span("");
  for (const [key, value] of Object.entries({ role: "meter", "aria-label": name, "aria-valuenow": share.toFixed(2), "aria-valuemin": 0, "aria-valuemax": 1 })) {
    track.setAttribute(key, value);
  }
  filled.style.width = `${100 * share}%`;
  track.append(filled);
  return track;
}

export class Lane {
  constructor(name, page) {
    this.name = name;
    this.page = page;
    this.facts = page[name];
    const lane = document.getElementById("lane").content.cloneNode(true);
    this.root = lane.querySelector(".lane");
    this.root.classList.add(name);
    document.getElementById("lanes").append(lane);
  }

  $(selector) {
    return this.root.querySelector(selector);
  }

  /** Show one message: what it was made of, what it is, and what becomes of it. */
  show({ picture, title, stop, sent, state, logits, fromServer, rebuilt, mse }) {
    const { page, facts } = this;
    const own = facts.stops[stop];
    this.$(".name").textContent = say(this.name);
    this.$(".defence").textContent = facts.defence || say("none");
    const adds = !facts.randomness.length ? "addsNothing" : facts.sigma ? "addsNoise" : "addsOther";
    this.$(".device p").textContent = say(adds, { sigma: short(facts.sigma * own.scale) });
    this.draw(".device canvas", (canvas) => paint(canvas, picture, page.shape), say("seen", { picture: title }));

    const bytes = bytesOf(sent);
    this.draw(".wire canvas", (canvas) => paintBytes(canvas, bytes), say("bytesSeen", { bytes: number(bytes.length) }));
    this.$(".wire .big").textContent = say("bytes", { bytes: number(bytes.length) });
    this.$(".wire .said").textContent = state;
    this.root.dataset.sent = String(fromServer);

    this.prediction = this.answer(logits, fromServer);
    this.draw(".attacker canvas", (canvas) => paint(canvas, rebuilt, page.shape), say("rebuilt"));
    this.$(".attacker p").textContent = say("error", { mse: fixed(mse, 4) });
  }

  draw(selector, paintOn, label) {
    const canvas = this.$(selector);
    paintOn(canvas);
    canvas.setAttribute("aria-label", label);
  }

  /** The likeliest classes as bars; the first in words. */
  answer(logits, fromServer) {
    const likely = shares(logits).map((share, label) => ({ share, label })).sort((a, b) => b.share - a.share).slice(0, MOST);
    const named = likely.map(({ share, label }) => ({ share, name: nameOf(this.page.classes[label]) }));
    this.$(".label").textContent = named[0].name;
    this.$("ol").replaceChildren(...named.map(({ share, name }) => {
      const row = document.createElement("li");
      row.append(span("", name), bar(share, name), span("share", percent(share)));
      return row;
    }));
    return say(fromServer ? "fromServer" : "fromHere", { class: named[0].name, share: percent(named[0].share) });
  }
}
