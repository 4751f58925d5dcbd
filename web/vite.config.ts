import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// `npm run dev` shows the page with the data of a hub that runs already: HUB=http://127.0.0.1:7070
const hub = process.env.HUB ?? "http://127.0.0.1:7070";

export default defineConfig({
  // Relative: the page works under any sub-path.
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../src/gpulse/api/static/web",
    emptyOutDir: true,
    target: "es2022",
    // Everything is a file of its own: the page's policy allows no inline scripts, and no data: but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // Host stays as the browser sent it: the hub refuses pages whose Origin is another.
  server: { proxy: { "/api": { target: hub, ws: true }, "^/(config.json|custom.css|logo)$": hub } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
