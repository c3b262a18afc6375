// What joins a comparison to a Jupyter widget: the step of both sides, kept in step both ways. `compare` is the player's.

const SYNC_EVERY_MS = 80;

/** The bytes of a trait as an ArrayBuffer of their own. */
function bytesOf(view) {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function side(model, name) {
  return { tracks: bytesOf(model.get(`tracks_${name}`)), layout: JSON.parse(model.get(`layout_${name}`)) };
}

function render({ model, el }) {
  const host = document.createElement("div");
  el.append(host);
  let timer = 0;
  const sync = (step, stepB) => {
    model.set("step", step);
    model.set("step_b", stepB);
    timer ||= setTimeout(() => {
      timer = 0;
      model.save_changes();
    }, SYNC_EVERY_MS);
  };
  const shown = compare({
    left: side(model, "a"),
    right: side(model, "b"),
    diff: bytesOf(model.get("comparison")),
    host,
    panes: model.get("panes") ?? undefined,
    height: model.get("height"),
    step: model.get("step"),
    theme: model.get("theme"),
    onStep: sync,
  });
  const moved = () => shown.step() !== model.get("step") && shown.setStep(model.get("step"));
  model.on("change:step", moved);
  return () => {
    model.off("change:step", moved);
    shown.destroy();
  };
}

export default { render };
