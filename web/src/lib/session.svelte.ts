/** Who is signed in on this page. The hub says so; the cookie itself is not for scripts. */
import { ApiError, type MeView, get } from "./api/api";
import { send } from "./api/send";
import { isExport } from "./hub";

/** Other tabs of this browser. */
const CHANNEL = "gpulse.session";
type News = "signed-in" | "signed-out";

class Session {
  /** null: the hub was not asked yet, or did not answer. */
  me = $state.raw<MeView | null>(null);
  /** Whose session came to its end without their doing; null: nobody's. */
  ended = $state<string | null>(null);
  /** Called when somebody else looks, or the same with another role. */
  changed: () => void = () => undefined;

  #channel: BroadcastChannel | null = null;

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
  /** Until it is known otherwise. */
  get mayRead(): boolean {
    return this.me?.may_read ?? true;
  }
  /** The same for those who see the same. */
  get who(): string {
    return JSON.stringify([this.name, this.me?.role, this.me?.sight]);
  }

  /** Called once, after the config was read. */
  async begin(): Promise<void> {
    if (isExport()) return;
    this.#channel = new BroadcastChannel(CHANNEL);
    this.#channel.onmessage = (message) => void this.ask(message.data === ("signed-out" satisfies News));
    await this.ask();
  }

  /** Asks the hub who looks. `meant`: somebody has signed out just now, in this browser. */
  async ask(meant = false): Promise<void> {
    try {
      this.#take(await get<MeView>("/api/v1/me"), meant);
    } catch (error) {
      // The live stream tells whether the hub is there.
      if (!(error instanceof ApiError)) throw error;
    }
  }

  async signIn(name: string, password: string): Promise<void> {
    this.#signedIn(await send<MeView>("POST", "/api/v1/session", { name, password }));
  }

  async redeem(code: string): Promise<void> {
    this.#signedIn(await send<MeView>("POST", "/api/v1/session/link", { code }));
  }

  async signOut(everywhere = false): Promise<void> {
    try {
      this.#take(await send<MeView>("DELETE", "/api/v1/session", undefined, everywhere ? { everywhere } : {}), true);
    } catch (error) {
      // Somebody was quicker; what is on the screen goes all the same.
      if (!(error instanceof ApiError) || error.code !== "sign_in") throw error;
      await this.ask(true);
    }
    this.#channel?.postMessage("signed-out" satisfies News);
  }

  #signedIn(me: MeView): void {
    this.#take(me, false);
    this.#channel?.postMessage("signed-in" satisfies News);
  }

  #take(me: MeView, meant: boolean): void {
    const [before, name, could] = [this.who, this.name, this.mayRead];
    if (me.name !== null || meant) this.ended = null;
    else if (name !== null) this.ended = name;
    this.me = me;
    if (before !== this.who || could !== this.mayRead || meant) this.changed();
  }
}

export const session = new Session();
