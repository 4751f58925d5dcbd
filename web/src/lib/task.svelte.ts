/** Something a person asked for that takes a while: under way, done, or refused in words. */
import { ApiError } from "./api/api";
import { session } from "./session.svelte";

export class Task {
  busy = $state(false);
  error = $state.raw<ApiError | null>(null);

  /** False: it was refused, or the one before is still under way. */
  async run(work: () => Promise<unknown>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.error = null;
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.error = error;
      // Signed out meanwhile, or with another role: then another page may be due.
      if (error.code === "sign_in" || error.code === "forbidden") void session.ask();
      return false;
    } finally {
      this.busy = false;
    }
  }
}
