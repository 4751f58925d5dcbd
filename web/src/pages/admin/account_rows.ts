/** Accounts as an admin looks at them. */
import type { AccountView } from "../../lib/api/api";

/** Those with the word in a name, in the hub's order. */
export function found(accounts: readonly AccountView[], word: string): AccountView[] {
  const wanted = word.trim().toLowerCase();
  return accounts.filter((one) => one.name.toLowerCase().includes(wanted) || (one.display ?? "").toLowerCase().includes(wanted));
}

/** How somebody proves who they are. */
export function signsInBy(account: AccountView): string {
  if (account.issuer != null) return account.issuer;
  return account.has_password ? "password" : "link";
}

/** The address that signs somebody in: the code is behind the #, so that it is in no log. */
export function linkAddress(code: string, base: string): string {
  const url = new URL(".", base);
  return `${url.href}#/sign-in/${encodeURIComponent(code)}`;
}
