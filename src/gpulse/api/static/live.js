// The live stream: keeps the nodes as they were told last, and comes back by itself.

const LONGEST_WAIT = 15000;
const PAGE_NODES = 200;
const BAD_REQUEST = 1008;

export class Live {
  // `changed(names)`: a frame came, null for all nodes; `status(word)`: live, connecting or gone;
  // `wrong(query, text)`: the hub refuses what is asked.
  constructor({ changed, status, wrong }) {
    Object.assign(this, { changed, status, wrong });
    this.nodes = new Map();
    this.summary = null;
    this.notices = [];
    this.title = '';
    this.total = 0;
    this.heard = 0;
    this.failures = 0;
    addEventListener('online', () => this.again());
    document.addEventListener('visibilitychange', () => document.hidden || this.again());
  }

  watch(q, me) {
    this.query = new URLSearchParams({ limit: PAGE_NODES, ...(q && { q }), ...(me && { me }) });
    this.failures = 0;
    this.connect();
  }

  again() {
    if (this.timer) this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = null;
    this.socket?.close();
    const url = new URL(`api/v1/live?${this.query}`, document.baseURI);
    url.protocol = url.protocol.replace('http', 'ws');
    const socket = this.socket = new WebSocket(url);
    socket.onmessage = event => socket === this.socket && this.take(JSON.parse(event.data));
    socket.onclose = event => socket === this.socket && this.closed(event);
  }

  closed(event) {
    this.socket = null;
    if (event.code === BAD_REQUEST) {
      // What was watched before goes on while the filter is being mended.
      this.wrong(this.query, event.reason);
      this.query = this.good ?? new URLSearchParams({ limit: PAGE_NODES });
      this.good = undefined;
      return this.connect();
    }
    this.failures += 1;
    this.status(this.heard ? 'gone' : 'connecting', event.reason);
    const wait = Math.min(LONGEST_WAIT, 500 * 2 ** this.failures) * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => this.connect(), wait);
  }

  take(frame) {
    this.failures = 0;
    this.heard = Date.now();
    this.good = this.query;
    if (frame.type === 'full') {
      this.nodes.clear();
      this.title = frame.title;
    }
    for (const name of frame.removed ?? []) this.nodes.delete(name);
    for (const node of frame.nodes) this.nodes.set(node.name, { ...node, told: performance.now() });
    this.summary = frame.summary;
    this.notices = frame.notices;
    this.total = frame.total;
    this.status('live');
    this.changed(frame.type === 'full' ? null : frame.nodes.map(node => node.name));
  }
}

// Seconds since a node's last snapshot: what the hub said, and what has passed since.
export function age(node) {
  return node.age_seconds === null ? null : node.age_seconds + (performance.now() - node.told) / 1000;
}
