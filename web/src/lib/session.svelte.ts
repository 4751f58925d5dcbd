/** Who is signed in on this page. The hub says so, by the cookie, which is not for scripts, and the page's own key. */
import { ApiError, type MeView, get } from "./api/api";
import { send } from "./api/send";
import { isExport } from "./hub";
import { keepPageKey, pageKey, watchPageKey } from "./page_key";

/** Other tabs of this browser. */
const CHANNEL = "gpulse.session";
const KEY = /^gpp_\w+$/;
type News = "signed-in" | "signed-out";

class Session {
  /** null: the hub was not asked yet, or did not answer. */
  me = $state.raw<MeView | null>(null);
  /** Whose session came to its end without their doing; null: nobody's. */
  ended = $state<string | null>(null);
  /** Called when somebody else looks, or the same with another role. */
  changed: () => void = () => undefined;

  #channel: BroadcastChannel | null = null;
  #questions = 0;
  /** Questions are numbered: an answer that was overtaken by that to a later one tells nothing any more. */
  #asked = 0;
  #answered = 0;
  /** The last question that was asked because somebody had signed out; 0: its answer was taken. */
  #meant = 0;

  get name(): string | null {
    return this.me?.name ?? null;
  }
  get isAdmin(): boolean {
    return this.me?.role === "admin" && this.me.name !== null;
  }
  /** Whether a reservation can be made: viewers look on. */
  get mayReserve(): boolean {
    return this.me?.role === "admin" || this.me?.role === "member";
  }
  /** The hub has yet to answer. */
  get asking(): boolean {
    return this.#questions > 0;
  }
  /** Until it is known otherwise. */
  get mayRead(): boolean {
    return this.me?.may_read ?? true;
  }
  /** The same for those who see the same. */
  get who(): string {
    return JSON.stringify([this.name, this.me?.role, this.me?.sight]);
  }

  /** Called once, after the config was read. `key`: what single sign-on came back with. */
  async begin(key: string | null = null): Promise<void> {
    if (isExport()) return;
    this.#channel = new BroadcastChannel(CHANNEL);
    this.#channel.onmessage = (message) => void this.ask(message.data === ("signed-out" satisfies News));
    // What another tab has stored may come later than its words. One that only tries a key troubles nobody.
    watchPageKey((gone) => {
      if (gone || this.name === null || this.asking) void this.ask(gone);
    });
    const before = pageKey();
    if (key !== null && KEY.test(key)) keepPageKey(key);
    await this.ask();
    // Anybody may have written the address: it signs nobody out.
    if (pageKey() === before || this.me === null || this.name !== null) return;
    keepPageKey(before);
    if (before !== null) await this.ask();
  }

  /** Asks the hub who looks. `meant`: somebody has signed out just now, in this browser. */
  async ask(meant = false): Promise<void> {
    this.#questions++;
    const question = this.#next(meant);
    try {
      this.#take(await get<MeView>("/api/v1/me"), question);
    } catch (error) {
      // The live stream tells whether the hub is there.
      if (!(error instanceof ApiError)) throw error;
    } finally {
      this.#questions--;
    }
  }

  async signIn(name: string, password: string): Promise<void> {
    this.#signedIn(await send<MeView>("POST", "/api/v1/session", { name, password }));
  }

  async redeem(code: string): Promise<void> {
    this.#signedIn(await send<MeView>("POST", "/api/v1/session/link", { code }));
  }

  async signOut(everywhere = false): Promise<void> {
    let me: MeView | null = null;
    try {
      me = await send<MeView>("DELETE", "/api/v1/session", undefined, everywhere ? { everywhere } : {});
    } catch (error) {
      // Somebody was quicker; what is on the screen goes all the same.
      if (!(error instanceof ApiError) || error.code !== "sign_in") throw error;
    }
    keepPageKey(null);
    if (me !== null) this.#take(me, this.#next(true));
    else await this.ask(true);
    this.#channel?.postMessage("signed-out" satisfies News);
  }

  #signedIn({ page_key = null, ...me }: MeView): void {
    keepPageKey(page_key);
    this.#take(me, this.#next(false));
    this.#channel?.postMessage("signed-in" satisfies News);
  }

  #next(meant: boolean): number {
    this.#asked++;
    if (meant) this.#meant = this.#asked;
    return this.#asked;
  }

  #take(me: MeView, question: number): void {
    if (question < this.#answered) return;
    this.#answered = question;
    const meant = this.#meant > 0 && question >= this.#meant;
    if (meant) this.#meant = 0;
    const [before, name, could] = [this.who, this.name, this.mayRead];
    if (me.name !== null || meant) this.ended = null;
    else if (name !== null) this.ended = name;
    this.me = me;
    if (before !== this.who || could !== this.mayRead || meant) this.changed();
  }
}

export const session = new Session();
