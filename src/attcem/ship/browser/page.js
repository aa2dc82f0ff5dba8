/** The page: a picture goes through both networks, and only what was audited is sent. */

import { ask } from "./cloud.js";
import { drawTrade, writeNumbers } from "./figures.js";
import { bytesOf, Side } from "./halves.js";
import { Lane } from "./lane.js";
import { paint, squaredError } from "./pictures.js";
import { tell, Visitor } from "./visitor.js";
import { fixed, learn, number, say, short, speak } from "./words.js";

const $ = (id) => document.getElementById(id);
const NAMES = ["defended", "undefended"];

class Show {
  constructor(page, sides) {
    Object.assign(this, { page, sides, sends: new Map(), key: "", picture: null, waiting: null, going: false });
    this.lanes = NAMES.map((name) => new Lane(name, page));
    this.stop = page.defended.own;
    this.visitor = new Visitor(page, (picture, rehearsed) => { this.picture = picture; this.run(!rehearsed); });
    this.listen();
  }

  listen() {
    const slider = $("sigma");
    slider.max = this.page.defended.stops.length - 1;
    slider.value = this.stop;
    $("noise").hidden = this.page.defended.stops.length < 2;
    slider.addEventListener("input", () => { this.stop = Number(slider.value); this.dial(); this.run(false); });
    slider.addEventListener("change", () => this.run(true));
    $("again").addEventListener("click", () => this.run(true));
    $("keys").addEventListener("submit", (event) => { event.preventDefault(); this.key = $("key").value; this.run(true); });
    for (const button of document.querySelectorAll("[data-language]")) {
      button.addEventListener("click", () => { speak(button.dataset.language); this.translate(); });
    }
  }

  translate() {
    this.visitor.speak();
    this.dial();
    if (this.seen) this.show();
  }

  dial() {
    const { sigma, stops, own } = this.page.defended;
    const text = say(this.stop === own ? "asAudited" : "sigma", { sigma: short(sigma * stops[this.stop].scale) });
    $("strength").textContent = text;
    $("sigma").setAttribute("aria-valuetext", text);
    drawTrade(this.page, this.stop);
  }

  /** Bring the picture through both networks; while one run is going, only the last that was asked for waits. */
  async run(sending) {
    if (this.going) {
      this.waiting = sending || (this.waiting ?? false);
      return;
    }
    this.going = true;
    try {
      const { picture, stop } = this;
      const messages = [];
      messages.push(await this.message(0, picture, stop, sending));
      messages.push(await this.message(1, picture, this.page.undefended.own, false));
      this.seen = { messages, picture, stop, settled: sending };
      this.show();
    } catch (error) {
      tell(say("noPage", { reason: error.message }));
      throw error;
    } finally {
      this.going = false;
      document.body.dataset.runs = Number(document.body.dataset.runs ?? 0) + 1;
    }
    if (this.waiting !== null) {
      const next = this.waiting;
      this.waiting = null;
      this.run(next);
    }
  }

  /** One message of a picture, and what becomes of it. Every call draws noise of its own. */
  async message(which, picture, stop, sending) {
    const side = this.sides[which];
    const sent = await side.release(picture, stop);
    const told = which ? { state: ["twinStays"] } : await this.send(sent, picture, stop, sending);
    const logits = told.logits ?? (await side.answer(sent));
    const rebuilt = await side.rebuild(sent, stop);
    return { sent, stop, logits, rebuilt, fromServer: !!told.logits, state: told.state, mse: squaredError(rebuilt, picture) };
  }

  /** Send a message if it is protected as much as was audited, and its picture was not sent too often. */
  async send(sent, picture, stop, sending) {
    const { budget, defended, model, classes } = this.page;
    const name = picture.join(), count = (this.sends.get(name) ?? 0) + 1;
    if (!sending) return { state: ["moving"] };
    if (defended.stops[stop].scale < defended.stops[defended.own].scale) return { state: ["weaker"] };
    if (count > budget) return { state: ["spent", { budget }] };
    if (this.page.keys && !this.key) {
      $("keys").hidden = false;
      return { state: ["noKey"] };
    }
    this.sends.set(name, count);
    try {
      const { logits, bytes } = await ask(model, sent, classes.length, this.key);
      $("keys").hidden = true;
      return { logits, state: ["sent", { bytes: number(bytes), count, budget }] };
    } catch (error) {
      if (error.status === 401) $("keys").hidden = false;
      return { state: ["failed", { reason: error.message }] };
    }
  }

  show() {
    const { messages, picture, stop, settled } = this.seen;
    const { page } = this, title = this.visitor.title();
    paint($("picture"), picture, page.shape);
    $("picture").setAttribute("aria-label", title);
    messages.forEach((message, which) =>
      this.lanes[which].show({ ...message, picture, title, state: say(...message.state) }));
    writeNumbers(page, stop, messages.map(({ mse }) => mse));
    if (!settled) return;
    const [defended, twin] = messages;
    $("said").textContent = say("summary", {
      defended: this.lanes[0].prediction,
      bytes: number(bytesOf(defended.sent).length),
      state: say(...defended.state),
      mse: fixed(defended.mse, 4),
      twin: fixed(twin.mse, 4),
    });
  }
}

async function start() {
  await learn();
  try {
    const page = await (await fetch(new URL("page.json", import.meta.url))).json();
    const sides = [];
    for (const name of NAMES) sides.push(await Side.open(name, page[name], page.shape));
    const show = new Show(page, sides);
    speak(document.documentElement.lang); // the lanes are new
    show.translate();
    show.visitor.choose(0);
    document.querySelector("main").setAttribute("aria-busy", "false");
  } catch (error) {
    tell(say("noPage", { reason: error.message }));
    throw error;
  }
}

start();
