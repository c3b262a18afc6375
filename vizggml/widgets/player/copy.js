// Copying a value: where the browser gives no clipboard to a page (plain http, a frame), through a hidden field.

import { iconButton, setIcon } from "./dom.js";

const SHOWN_MS = 1200;

/** @param {string} text @returns {Promise<boolean>} whether it is on the clipboard */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByField(text);
  }
}

/** @param {string} text */
function copyByField(text) {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  const field = document.createElement("textarea");
  field.value = text;
  field.style.cssText = "position:fixed;top:0;left:0;opacity:0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  return done;
}

/** A small button that copies what `read` gives. @param {string} what @param {() => string} read */
export function copyButton(what, read) {
  const label = `Copy ${what}`;
  let timer = 0;
  const button = iconButton("copy", label, async () => {
    const done = await copyText(read());
    setIcon(button, done ? "check" : "copy", done ? "Copied" : "The browser did not let it be copied");
    clearTimeout(timer);
    timer = setTimeout(() => setIcon(button, "copy", label), SHOWN_MS);
  });
  button.classList.add("vg-copy");
  return button;
}
