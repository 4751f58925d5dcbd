/** The rows of the timeline: nodes and GPUs that the filter leaves. */
import { fleet } from "../../lib/fleet.svelte";
import { selection } from "../../lib/selection.svelte";
import { settings } from "../../lib/settings.svelte";
import { type Rows, isNode, rowBySlot, rowsOf, sameRows } from "./rows";
import { instancesOf, isSplit } from "./spots";

export class FilteredRows {
  #kept: { rows: Rows; of: unknown; text: string } | null = null;

  /** `held`: whether they are kept as they are, under a hand: a filter for what is free changes with each frame. */
  constructor(private readonly held: () => boolean) {}

  readonly all: Rows = $derived.by(() => {
    const next = rowsOf(fleet.nodes, selection.mask, (name) => settings.isCollapsed(name));
    const kept = this.#kept;
    const same = kept !== null && kept.of === fleet.layout && kept.text === selection.text && this.held();
    const again = kept !== null && (same || sameRows(kept.rows, next)) ? kept.rows : next;
    this.#kept = { rows: again, of: fleet.layout, text: selection.text };
    return again;
  });

  readonly #bySlot = $derived(rowBySlot(this.all, fleet.nodes, fleet.nodeOf.length));
  readonly #instances = $derived(instancesOf(fleet.nodes));

  /** Of a GPU and its instances. */
  of(id: string): number[] {
    const slot = fleet.slot(id);
    return slot === undefined ? [] : [slot, ...(this.#instances.get(id) ?? [])].map((one) => this.#bySlot[one]);
  }

  /** The nodes of some rows that have cards which are split. */
  splitAmong(rows: readonly number[]): string[] {
    const gpus = rows.map((at) => this.all[at]).filter((row) => !isNode(row));
    const nodes = gpus.map((slot) => fleet.nodes[fleet.nodeOf[slot]]).filter(isSplit);
    return [...new Set(nodes.map((node) => node.name))];
  }
}
