/** The visitor's pictures: examples, files that are chosen or dropped, and the camera. */

import { decoded, lightBorder, paint, pixelsOf } from "./pictures.js";
import { nameOf, say } from "./words.js";

const FRAMES = 150; // milliseconds between two looks of the camera
const $ = (id) => document.getElementById(id);

/** Call `look(values, title, rehearsed)` with every picture that the visitor gives; a rehearsed one is not to be sent. */
export class Visitor {
  constructor(page, look) {
    Object.assign(this, { page, look, title: () => "", source: null, stream: null });
    $("file").addEventListener("change", ({ target }) => { this.read(target.files[0]); target.value = ""; });
    $("invert").addEventListener("change", () => this.source && this.give(false));
    $("camera").addEventListener("click", () => this.film());
    $("shoot").addEventListener("click", () => this.shoot());
    $("stop").addEventListener("click", () => this.close());
    document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
    document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget || document.body.classList.remove("dropping"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      this.read(event.dataTransfer.files[0]);
    });
    this.examples = page.examples.map((example, place) => this.button(example, place));
    $("examples").replaceChildren(...this.examples);
  }

  button({ label, pixels }, place) {
    const button = document.createElement("button"), canvas = document.createElement("canvas");
    button.type = "button";
    paint(canvas, decoded(pixels, this.page.shape), this.page.shape);
    button.append(canvas);
    button.addEventListener("click", () => this.choose(place));
    button.dataset.label = label;
    return button;
  }

  /** Name what is shown in the language of the page. */
  speak() {
    for (const button of this.examples) {
      button.setAttribute("aria-label", say("example", { class: nameOf(this.page.classes[button.dataset.label]) }));
    }
  }

  mark(place) {
    this.examples.forEach((button, i) => button.setAttribute("aria-pressed", String(i === place)));
  }

  choose(place) {
    const { label, pixels } = this.page.examples[place];
    this.close();
    this.mark(place);
    this.source = null;
    $("inverting").hidden = true;
    this.title = () => nameOf(this.page.classes[label]);
    this.look(decoded(pixels, this.page.shape), false);
  }

  async read(file) {
    if (!file) return;
    this.close();
    try {
      this.source = await createImageBitmap(file);
    } catch {
      tell(say("noPicture", { file: file.name }));
      return;
    }
    this.begin();
    this.give(false);
  }

  begin() {
    tell("");
    this.mark(-1);
    this.title = () => say("own");
    $("inverting").hidden = this.page.shape[0] !== 1; // networks for grey pictures learnt from light things on black
    $("invert").checked = !$("inverting").hidden && lightBorder(this.source, this.page.shape);
  }

  give(rehearsed) {
    this.look(pixelsOf(this.source, this.page.shape, $("invert").checked), rehearsed);
  }

  async film() {
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 640 } });
    } catch (error) {
      tell(say("noCamera", { reason: error.message }));
      return;
    }
    const video = $("video");
    video.srcObject = this.stream;
    await video.play();
    this.source = video;
    this.begin();
    this.filming(true);
    $("shoot").focus();
    this.clock = setInterval(() => this.give(true), FRAMES);
  }

  async shoot() {
    this.source = await createImageBitmap($("video"));
    this.close();
    this.give(false);
  }

  /** Stop the camera; what it showed last is not kept unless it was taken. */
  close() {
    clearInterval(this.clock);
    this.stream?.getTracks().forEach((track) => track.stop());
    if (this.stream) $("camera").focus();
    this.stream = $("video").srcObject = null;
    this.filming(false);
  }

  filming(on) {
    for (const [id, shown] of [["camera", !on], ["shoot", on], ["stop", on], ["video", on], ["picture", !on]]) $(id).hidden = !shown;
    if (on) $("camera").focus();
  }
}

/** A message above everything; none where it is empty. */
export function tell(message) {
  $("notice").textContent = message;
  $("notice").hidden = !message;
}
