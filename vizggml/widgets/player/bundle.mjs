// Joins the player's modules into ../player.bundle.js, whose first line carries a hash of the sources:
// SHA-256 over every .js and .css file here in order of name, each as its name, a zero byte, its bytes, a zero byte.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const hash = createHash("sha256");
for (const name of readdirSync(here).filter((n) => /\.(js|css)$/.test(n)).sort()) {
  hash.update(name).update("\0").update(readFileSync(join(here, name))).update("\0");
}
const made = await build({
  entryPoints: [join(here, "player.js")],
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  loader: { ".css": "text" },
  legalComments: "none",
  write: false,
});
const text = `// vizggml player, bundled; sources sha256:${hash.digest("hex")}\n${made.outputFiles[0].text}`;
writeFileSync(join(here, "..", "player.bundle.js"), text);
console.log(`player.bundle.js: ${text.length} characters`);
