// The page of a kept player: what is chosen for it stands in the page, so that the script is the same for all.

start(async () => {
  const chosen = JSON.parse(document.getElementById("options").textContent);
  create({ ...chosen, ...(await carried("tracks", "layout")), host: document.getElementById("player") });
});
