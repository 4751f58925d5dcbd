/** The hub's words as a sentence: "sign in first" is "Sign in first."; a name as "gpu01:0" stays as it is. */
export function sentence(words: string): string {
  const text = words.trim();
  if (text === "") return "";
  const first = /^\S*\d/.test(text) ? text[0] : text[0].toUpperCase();
  return first + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
