// The page of a comparison: unpack both traces and start. `compare` is the player's; OPTIONS was written by the exporter.

start(async () => {
  const sides = ["left", "right"].map((side) => carried(`${side}-tracks`, `${side}-layout`));
  const [left, right, diff] = await Promise.all([...sides, unpacked("comparison")]);
  compare({ ...OPTIONS, left, right, diff, host: document.getElementById("player"), hash: true, theme: "auto" });
});
