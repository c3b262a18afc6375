// The page of a trace: unpack what it carries and start the player. `create` is the player's; OPTIONS was written by the exporter.

start(async () => {
  const host = document.getElementById("player");
  create({ hash: true, theme: "auto", ...OPTIONS, ...(await carried("tracks", "layout")), host });
});
