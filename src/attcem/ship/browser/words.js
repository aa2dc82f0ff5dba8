/** The page's words in two languages, from strings.json. */

let catalogue = {};
export let language = "en";

const load = async () => (await fetch(new URL("strings.json", import.meta.url))).json();

/** Read the catalogue, and begin in the language of the address (?lang=) or else of the browser. */
export async function learn() {
  catalogue = await load();
  const asked = new URLSearchParams(location.search).get("lang") ?? navigator.language;
  speak(asked.startsWith("zh") ? "zh-CN" : "en");
}

/** Write everything that is marked with data-text in this language, and remember it in the address. */
export function speak(chosen) {
  language = chosen;
  document.documentElement.lang = chosen;
  document.title = say("title");
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === chosen));
  }
  const address = new URL(location);
  address.searchParams.set("lang", chosen);
  history.replaceState(null, "", address);
}

/** A sentence with its {places} filled. */
export function say(name, places = {}) {
  return catalogue[name][language].replace(/\{(\w+)\}/g, (_, place) => places[place]);
}

/** The name of a class, translated where the catalogue knows it. */
export const nameOf = (label) => (`class ${label}` in catalogue ? say(`class ${label}`) : label);

export const number = (value) => value.toLocaleString(language);
export const short = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
export const fixed = (value, digits) => value.toFixed(digits);
export const percent = (share) => `${Math.round(100 * share)} %`;
