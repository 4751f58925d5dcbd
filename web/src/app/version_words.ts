/** What to say when the hub sends live frames of another version than this page reads. */
import { FRAME_VERSION } from "../lib/live/frame";

export function versionWords(version: number): string {
  return version < FRAME_VERSION ? "The hub is older than this page" : "This page is out of date";
}
