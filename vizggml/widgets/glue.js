// What joins the player to a Jupyter widget: the traits that are kept in step, both ways. `create` is the player's.

const SYNC_EVERY_MS = 80;

/** Sends a trait to Python at most every SYNC_EVERY_MS, the last value always. */
function throttledSync(model) {
  let timer = 0;
  return (name, value) => {
    if (model.get(name) === value) return;
    model.set(name, value);
    timer ||= setTimeout(() => {
      timer = 0;
      model.save_changes();
    }, SYNC_EVERY_MS);
  };
}

/** The bytes of a trait as an ArrayBuffer of their own. */
function bytesOf(view) {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function render({ model, el }) {
  const host = document.createElement("div");
  host.className = "vg-here";
  host.style.height = model.get("height");
  el.append(host);
  const sync = throttledSync(model);
  let player = null;
  const mount = () => {
    const tab = host.querySelector('.vg-pane-tables [role="tab"][aria-selected="true"]')?.textContent;
    player?.destroy();
    player = null;
    host.replaceChildren();
    host.hidden = !model.get("tracks").byteLength;
    if (host.hidden) return;
    player = create({
      tracks: bytesOf(model.get("tracks")),
      layout: JSON.parse(model.get("graph_layout")),
      host,
      panes: model.get("panes") ?? undefined,
      step: model.get("step"),
      theme: model.get("theme"),
      onStep: (step) => sync("step", step),
      onSelect: (tensor) => sync("selected", tensor),
    });
    const tabs = [...host.querySelectorAll('.vg-pane-tables [role="tab"]')];
    tabs.find((other) => other.textContent === tab)?.click();
    if (model.get("selected") >= 0) player.select(model.get("selected"));
  };
  const listeners = {
    "change:step": () => player && player.step() !== model.get("step") && player.setStep(model.get("step")),
    "change:selected": () => player?.select(model.get("selected")),
    "change:tracks": mount,
    "change:panes": mount,
    "change:theme": mount,
    "change:height": () => (host.style.height = model.get("height")),
  };
  for (const [event, listener] of Object.entries(listeners)) model.on(event, listener);
  mount();
  return () => {
    for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
    player?.destroy();
  };
}

export default { render };
