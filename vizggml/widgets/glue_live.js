// What joins the controls of a live run to their Jupyter widget. `panel` is the player's.

const STATE = ["running", "resumable", "status", "error", "shown", "read"];
const SETTINGS = ["prompt", "max_tokens", "temp", "seed"];

function render({ model, el }) {
  const host = document.createElement("div");
  el.append(host);
  const of = (names) => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const shown = panel({ host, theme: "auto", settings: of(SETTINGS), act: (what, more = {}) => model.send({ do: what, ...more }) });
  const update = () => shown.update(of(STATE));
  const listen = (message) => {
    if (message.tokens) shown.add(message.from, message.tokens);
    update();
  };
  const events = STATE.map((name) => `change:${name}`);
  for (const event of events) model.on(event, update);
  model.on("msg:custom", listen);
  update();
  model.send({ do: "all" });
  return () => {
    for (const event of events) model.off(event, update);
    model.off("msg:custom", listen);
    shown.destroy();
  };
}

export default { render };
