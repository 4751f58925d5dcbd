/** The time that is or was reserved, as a chart shows it behind its figures. */
import { type ReservationView, indexText } from "../lib/reservations";
import { shortMoment } from "../lib/moments";

export interface Band {
  /** The reservation's id. */
  id: string;
  start: number;
  end: number;
  /** Whose it is; in their colour, as on the timeline. */
  name: string;
  mine: boolean;
  /** "Reserved by alice from 14:00 to 18:00" */
  words: string;
}

/** Those of one GPU ("0", of a MIG instance "0.2") within a span. Who has reserved a card has its instances. */
export function bandsOf(reservations: readonly ReservationView[], node: string, index: string, start: number, end: number): Band[] {
  const [card] = index.split(".");
  return reservations
    .filter((one) => within(one, start, end) && one.gpus.some((gpu) => gpu.node === node && (gpu.index === index || gpu.index === card)))
    .map((one) => band(one, end))
    .sort(byStart);
}

/** The same of a whole node, a line for each reservation: with its GPUs. */
export function bandLines(reservations: readonly ReservationView[], node: string, start: number, end: number): Band[] {
  return reservations
    .map((one) => ({ ...one, gpus: one.gpus.filter((gpu) => gpu.node === node) }))
    .filter((one) => one.gpus.length > 0 && within(one, start, end))
    .map((one) => {
      const gpus = one.gpus.map((gpu) => gpu.index);
      return { ...band(one, end), words: `GPU${gpus.length === 1 ? "" : "s"} ${indexText(gpus)}: ${lower(words(one, end))}` };
    })
    .sort(byStart);
}

/** What is said at a time. */
export function bandAt(bands: readonly Band[], time: number): string | null {
  return bands.find((one) => one.start <= time && time < one.end)?.words ?? null;
}

const byStart = (a: Band, b: Band) => a.start - b.start;
// One that was cancelled before its start holds nothing.
const within = ({ start, last }: ReservationView, from: number, to: number) => last > start && start < to && last > from;

function band(one: ReservationView, now: number): Band {
  return { id: one.id, start: one.start, end: one.last, name: one.name, mine: one.mine, words: words(one, now) };
}

function words(one: ReservationView, now: number): string {
  const who = one.mine ? "you" : one.name;
  return `${one.hold ? "Held" : "Reserved"} by ${who} from ${shortMoment(one.start, now)} to ${shortMoment(one.last, now)}`;
}

const lower = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);
