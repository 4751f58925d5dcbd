/** An answer of the hub that is asked for when a page opens, and again after each change made on it. */
import { get, type Query } from "./api/api";
import { Task } from "./task.svelte";

export class Loaded<T> {
  value = $state.raw<T | null>(null);
  readonly task = new Task();

  constructor(
    private readonly path: string,
    private readonly query: () => Query = () => ({}),
  ) {}

  /** False: it could not be had; `task.error` says why. */
  async load(): Promise<boolean> {
    return this.task.run(async () => {
      this.value = await get<T>(this.path, this.query());
    });
  }
}
