/** Text to paste into a shell. Names and ids come from nodes: whatever they are, each stays one word. */

/** The word as a POSIX shell reads it back, quoted only where it must be; the same as Python's shlex.quote. */
export function quote(word: string): string {
  if (word === "") return "''";
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** A command line of these words. */
export function command(...words: (string | number)[]): string {
  return words.map((word) => quote(String(word))).join(" ");
}

/** `CUDA_VISIBLE_DEVICES=…` of indexes or UUIDs. */
export function cudaDevices(devices: readonly (string | number | null | undefined)[]): string {
  return `CUDA_VISIBLE_DEVICES=${quote(devices.join(","))}`;
}

/** The same for GPUs of one node: CUDA knows cards by their number, and MIG instances by their UUID. Null: not by one that has none. */
export function deviceNames(node: string, gpus: readonly { parent_uuid?: string | null; uuid?: string | null; index?: number | null }[]): string | null {
  const names = gpus.map((gpu) => (!gpu.parent_uuid ? gpu.index : gpu.uuid?.startsWith(`${node}/`) ? null : gpu.uuid));
  return names.length === 0 || names.some((name) => name == null) ? null : cudaDevices(names);
}

/** The text without what a terminal would obey when it is pasted: a line break runs what is before it. */
export function pasteable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").replace(/[\p{Cf}\p{Cs}]/gu, "");
}
