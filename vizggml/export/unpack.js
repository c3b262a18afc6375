// What the pages of one trace and of two have in common: what they carry is unpacked, and a start that fails is told.

/** The bytes of a block of the page: base64 of zlib. */
async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** A trace of the page: its tracks, and the layout of its graphs. */
async function carried(tracks, layout) {
  const [bytes, drawing] = await Promise.all([unpacked(tracks), unpacked(layout)]);
  return { tracks: bytes, layout: JSON.parse(new TextDecoder().decode(drawing)) };
}

function start(boot) {
  boot().catch((error) => {
    const told = document.getElementById("told");
    told.hidden = false;
    told.textContent = `This page could not be opened: ${error.message}. It needs a browser of 2023 or later.`;
    throw error;
  });
}
