import { pasteable } from "./shell";

/** Puts a text into the clipboard, without what would run or hide something when it is pasted; false: the browser would not. */
export async function copyText(original: string): Promise<boolean> {
  const text = pasteable(original);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard over plain http; a selection can still be copied.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
