// The plain live page: figures that are filters, a filter box, and every node with its GPUs.

import { LABELS, STATES, count, duration, el, gib, setText, shape } from './draw.js';
import { Live } from './live.js';
import { NodeCard } from './node.js';

const at = id => document.getElementById(id);
const natural = new Intl.Collator('en', { numeric: true });
const cards = new Map();
const figures = new Map();
const address = new URLSearchParams(location.search);
let typing;

const live = new Live({ changed, status, wrong });

function words() {
  return at('q').value.trim().split(/\s+/).filter(Boolean);
}

function search(text) {
  at('q').value = text;
  const url = new URL(location.href);
  if (text.trim()) url.searchParams.set('q', text.trim());
  else url.searchParams.delete('q');
  history.replaceState(null, '', url);
  at('wrong').hidden = true;
  live.watch(text.trim(), address.get('me'));
}

function toggle(state) {
  const now = words();
  const others = now.filter(word => !STATES.includes(word.toLowerCase()));
  search((now.includes(state) ? others : [...others, state]).join(' '));
}

function figure(state) {
  const number = el('b');
  const attributes = { type: 'button', class: `figure f-${state}`, onclick: () => toggle(state) };
  const button = el('button', attributes, number, el('span', {}, shape(state), LABELS[state]));
  figures.set(state, { button, number });
  return button;
}

function total(key, label) {
  const number = el('b');
  figures.set(key, { number });
  return el('div', { class: 'figure total' }, number, el('span', {}, label));
}

at('summary').append(...STATES.map(figure), total('memory', 'GiB free'), total('power', 'kW'));

function summarise() {
  const summary = live.summary;
  const chosen = words().map(word => word.toLowerCase());
  for (const state of STATES) {
    const { button, number } = figures.get(state);
    const how = summary.states[state] ?? 0;
    setText(number, count(how));
    button.classList.toggle('zero', how === 0);
    button.setAttribute('aria-pressed', String(chosen.includes(state)));
  }
  setText(figures.get('memory').number, count(Math.round(summary.memory_free_bytes / 2 ** 30)));
  setText(figures.get('power').number, (summary.power_watts / 1000).toFixed(1));
  document.title = `${summary.states.free ?? 0} free · ${live.title}`;
  setText(at('title'), live.title);
}

function changed(names) {
  summarise();
  for (const [name, card] of cards) {
    if (!live.nodes.has(name)) {
      card.close();
      cards.delete(name);
    }
  }
  for (const name of names ?? live.nodes.keys()) {
    if (!cards.has(name)) cards.set(name, new NodeCard(name));
    cards.get(name).update(live.nodes.get(name));
  }
  arrange();
  const none = live.summary.nodes === 0;
  at('summary').hidden = none;
  at('empty').hidden = !none && live.nodes.size > 0;
  if (!at('empty').hidden) empty(none);
  const shown = live.nodes.size;
  at('count').hidden = shown === live.total;
  const others = 'Filter to see others: node:gpu[01-16], free, model:H100.';
  setText(at('count'), `The first ${count(shown)} of ${count(live.total)} nodes. ${others}`);
  at('notices').replaceChildren(...(none ? [] : live.notices).map(text => el('div', { class: 'notice' }, text)));
}

// Nodes stay in natural order; an element is moved only when it stands wrong.
function arrange() {
  let before = null;
  for (const name of [...cards.keys()].sort(natural.compare)) {
    const root = cards.get(name).root;
    const next = before === null ? at('nodes').firstElementChild : before.nextElementSibling;
    if (next !== root) at('nodes').insertBefore(root, next);
    before = root;
  }
}

function empty(none) {
  const kind = JSON.stringify(none ? live.notices : at('q').value);
  if (at('empty').dataset.kind === kind) return;
  at('empty').dataset.kind = kind;
  if (!none) {
    at('empty').replaceChildren(
      el('h2', {}, 'Nothing matches the filter'), el('p', {}, at('q').value),
      el('button', { type: 'button', class: 'button', onclick: () => search('') }, 'Show all'));
    return;
  }
  at('empty').replaceChildren(
    el('h2', {}, 'No nodes yet'),
    ...live.notices.filter(text => !text.includes('gpulse demo')).map(text => el('p', {}, text)),
    el('p', {}, 'Start the hub with the nodes to watch. Nothing has to be installed on them, SSH is enough:'),
    el('pre', {}, "gpulse up 'gpu[01-16]'"),
    el('p', {}, 'Or look at a simulated cluster first:'),
    el('pre', {}, 'gpulse demo'));
}

function status(state, reason) {
  at('live').className = `live is-${state}`;
  setText(at('live').lastElementChild, { live: 'Live', connecting: 'Connecting', gone: 'Hub gone' }[state]);
  document.body.classList.toggle('is-gone', state === 'gone');
  at('gone').hidden = state !== 'gone';
  live.reason = reason;
  tick();
}

// The reason a stream is closed with is cut short; the API has all of it.
async function wrong(query, text) {
  setText(at('wrong'), text);
  at('wrong').hidden = false;
  const response = await fetch(`api/v1/nodes?${query}`);
  if (response.ok || query.get('q') !== at('q').value.trim()) return;
  setText(at('wrong'), (await response.json()).error.message);
}

function tick() {
  for (const card of cards.values()) card.tick();
  if (!at('gone').hidden) {
    const since = duration((Date.now() - live.heard) / 1000);
    const why = live.reason ? ` (${live.reason})` : '';
    setText(at('gone'), `The hub does not answer${why}. What you see is ${since} old. Trying again by itself.`);
  }
}

at('search').addEventListener('submit', event => {
  event.preventDefault();
  clearTimeout(typing);
  search(at('q').value);
});
at('q').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => search(at('q').value), 350);
});
addEventListener('keydown', event => {
  if (event.key === '/' && event.target.tagName !== 'INPUT') {
    event.preventDefault();
    at('q').focus();
  }
});
at('curl').textContent = `curl '${new URL('free?n=2&memory=40GB', document.baseURI)}'`;
setInterval(tick, 1000);
search(address.get('q') ?? '');
