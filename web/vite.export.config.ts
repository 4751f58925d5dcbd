import { readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { type Plugin, defineConfig } from "vite";

/** The page around the script; `gpulse export` puts data.js beside it. */
const page: Plugin = {
  name: "gpulse-export-page",
  generateBundle() {
    const source = readFileSync(new URL("export.html", import.meta.url), "utf8");
    this.emitFile({ type: "asset", fileName: "index.html", source });
  },
};

// The page of `gpulse export`: one classic script and one style sheet, as browsers refuse modules from file://.
export default defineConfig({
  base: "./",
  plugins: [svelte(), page],
  define: { "process.env.NODE_ENV": '"production"' },
  build: {
    outDir: "../src/gpulse/api/static/export",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "gpulsePage", fileName: () => "page.js", cssFileName: "page" },
  },
});
