
// The page: unpack what it carries and start the player. `create` is the player's; OPTIONS was written by the exporter.

/** The bytes of a block of the page: base64 of zlib. */
async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function boot() {
  const [tracks, layout] = await Promise.all([unpacked("tracks"), unpacked("layout")]);
  const host = document.getElementById("player");
  const drawing = JSON.parse(new TextDecoder().decode(layout));
  create({ hash: true, theme: "auto", ...OPTIONS, tracks, layout: drawing, host });
}

boot().catch((error) => {
  const told = document.getElementById("told");
  told.hidden = false;
  told.textContent = `This page could not be opened: ${error.message}. It needs a browser of 2023 or later.`;
  throw error;
});
