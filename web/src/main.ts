/** Begins the page: reads where the hub is, asks it who looks, connects, draws. */
import { mount } from "svelte";
import App from "./App.svelte";
import { cameBack } from "./lib/came_back";
import { loadConfig, site } from "./lib/hub";
import { live } from "./lib/live/live.svelte";
import { pageKey } from "./lib/page_key";
import { route } from "./lib/route.svelte";
import { session } from "./lib/session.svelte";
import "./styles/tokens.css";
import "./styles/base.css";

async function start(): Promise<void> {
  await loadConfig();
  if (site().custom_css) {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = "custom.css";
    // At the very end: it wins over the sheets of pages that load later, which go into the head.
    document.body.append(sheet);
  }
  const key = route.takeKey();
  const asked = session.begin(key);
  // Who has signed in here may read, most likely. Who comes back from single sign-on is another than before.
  const atOnce = key === null && pageKey() !== null;
  if (atOnce) live.start();
  await asked;
  const back = cameBack(location.hash, session.name !== null);
  if (back !== null) route.replace(back);
  if (!atOnce) live.start();
  mount(App, { target: document.getElementById("app")! });
}

void start();
