// The page of a comparison: unpack both traces and start. `compare` is the player's; OPTIONS was written by the exporter.

/** The bytes of a block of the page: base64 of zlib. */
async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function side(name) {
  const [tracks, layout] = await Promise.all([unpacked(`${name}-tracks`), unpacked(`${name}-layout`)]);
  return { tracks, layout: JSON.parse(new TextDecoder().decode(layout)) };
}

async function boot() {
  const [left, right, diff] = await Promise.all([side("left"), side("right"), unpacked("comparison")]);
  compare({ ...OPTIONS, left, right, diff, host: document.getElementById("player"), hash: true, theme: "auto" });
}

boot().catch((error) => {
  const told = document.getElementById("told");
  told.hidden = false;
  told.textContent = `This page could not be opened: ${error.message}. It needs a browser of 2023 or later.`;
  throw error;
});
