/** The hub's words as a sentence: "sign in first" is "Sign in first." */
export function sentence(words: string): string {
  const text = words.trim();
  if (text === "") return "";
  return text[0].toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
