/** Why the site's single sign-on let nobody in. The address has a word for it, as anybody may write an address. */
const WORDS: Record<string, string> = {
  sso_trip: "This browser had not begun to sign in, or took longer than ten minutes. Begin again.",
  sso_denied: "The sign-in was broken off, or refused there.",
  sso_token: "What the sign-in there told about you could not be trusted. Begin again; if it stays so, tell an admin of this hub.",
  sso_claims: "The sign-in there does not tell who you are. Tell an admin of this hub.",
  sso_trouble: "The place to sign in cannot be reached, or does not answer as it should. Try again; if it stays so, tell an admin of this hub.",
  no_role: "You have signed in there, but this hub has no role for you. Ask an admin of this hub for one.",
  name_taken: "Your name there is an account of this hub that signs in another way. If that one is yours, ask an admin of this hub to connect the two.",
  account_disabled: "Your account is disabled. Ask an admin of this hub.",
};

export function refusedWords(code: string | undefined): string | null {
  if (code === undefined) return null;
  return Object.hasOwn(WORDS, code) ? WORDS[code]! : "You were not signed in. Try again; if it stays so, tell an admin of this hub.";
}
