// The start of a player kept in a notebook: unpack the page's other script, whose hash the page names too, and run it.

async function start() {
  const packed = Uint8Array.from(atob(document.getElementById("script").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = await new Response(stream).text();
  document.body.append(script);
}

start();
