/** Makes a link that signs somebody in once. */
import { send } from "../../lib/api/send";
import type { components } from "../../lib/api/types";
import { linkAddress } from "./account_rows";

/** The whole address, to send to the person. Throws ApiError. */
export async function makeLink(account: string): Promise<string> {
  const path = `/api/v1/accounts/${encodeURIComponent(account)}/link`;
  const { code } = await send<components["schemas"]["MadeLink"]>("POST", path);
  return linkAddress(code, document.baseURI);
}
