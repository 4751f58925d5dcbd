// A node with its GPUs: made once, then only what changes is written.

import {
  LABELS, NONE, duration, el, gib, heads, known, percent, person, place, setClass, setText, shape, whole,
} from './draw.js';
import { age } from './live.js';
import { Details } from './details.js';

const HEADS = [
  ['GPU', ''], ['State', ''], ['Util %', 'n'], ['Memory GiB', 'n'], ['°C', 'n'], ['W', 'n'], ['People', 'p'],
];
const HOT_CELSIUS = 83;

class GpuRow {
  constructor() {
    this.mark = el('span', { class: 'mark' });
    this.index = el('span');
    this.state = el('span');
    [this.util, this.memory] = [meter(), meter()];
    [this.temperature, this.power] = [el('span'), el('span')];
    this.people = el('span', { class: 'people' });
    this.row = el('tr', {},
      el('td', { class: 'ix' }, this.mark, this.index), el('td', { class: 'st' }, this.state),
      el('td', { class: 'n u' }, this.util.root), el('td', { class: 'n m' }, this.memory.root),
      el('td', { class: 'n t' }, this.temperature), el('td', { class: 'n w' }, this.power),
      el('td', { class: 'p' }, this.people));
  }

  update(gpu, oneModel) {
    const state = gpu.counted === false ? 'split' : gpu.state;
    const off = gpu.state === 'down' || gpu.state === 'stale';
    if (this.drawn !== state) this.mark.replaceChildren(shape(state));
    this.drawn = state;
    setText(this.index, place(gpu));
    setText(this.state, LABELS[state] ?? state);
    setClass(this.state, `lab s-${state}`);
    setClass(this.row, off ? 'off' : '');
    this.row.title = [gpu.name, gpu.mig_profile, gpu.uuid].filter(Boolean).join(' · ');
    this.util.set(percent(gpu.utilization_ratio), gpu.utilization_ratio);
    const total = gpu.memory_total_bytes;
    const nominal = known(total) ? Math.round(total / 2 ** 30) : NONE;
    this.memory.set(`${gib(gpu.memory_used_bytes)} / ${nominal}`, total ? (gpu.memory_used_bytes ?? 0) / total : null);
    setText(this.temperature, whole(gpu.temperature_celsius));
    setClass(this.temperature, gpu.temperature_celsius >= HOT_CELSIUS ? 'hot' : '');
    setText(this.power, whole(gpu.power_watts));
    this.power.title = known(gpu.power_limit_watts) ? `limit ${whole(gpu.power_limit_watts)} W` : '';
    const kind = gpu.mig_profile || (oneModel ? null : gpu.model || gpu.name || 'unknown model');
    const words = [...(kind ? [kind] : []), ...(gpu.flags ?? [])];
    const people = (gpu.people ?? []).map(use => use.person);
    const key = JSON.stringify([words, people]);
    if (this.told !== key) {
      const named = people.map(person);
      const shown = word => el('span', { class: word === kind ? 'model' : 'flag' }, word.replaceAll('_', ' '));
      const noted = words.map(shown);
      this.people.replaceChildren(...named, ...noted);
      this.people.title = [...people, ...words].join(', ');
    }
    this.told = key;
  }
}

function meter() {
  const [bar, text] = [el('i'), el('span')];
  const root = el('span', { class: 'meter' }, el('span', { class: 'bar', 'aria-hidden': 'true' }, bar), text);
  return {
    root,
    set(words, ratio) {
      setText(text, words);
      const width = `${Math.round(Math.min(1, Math.max(0, ratio ?? 0)) * 100)}%`;
      if (bar.style.width !== width) bar.style.width = width;
    },
  };
}

export class NodeCard {
  constructor(name) {
    this.rows = new Map();
    this.order = '';
    this.details = new Details(name);
    this.name = el('span', { class: 'name' });
    const arrow = el('span', { class: 'arrow', 'aria-hidden': 'true' });
    const attributes = { class: 'fold', type: 'button', 'aria-expanded': 'false', onclick: () => this.toggle() };
    this.fold = el('button', attributes, arrow, this.name);
    this.state = el('span');
    this.free = el('span', { class: 'freecount' });
    this.facts = el('span', { class: 'facts' });
    this.age = el('span', { class: 'age' });
    this.reason = el('p', { class: 'reason', hidden: true });
    this.body = el('tbody');
    this.table = el('table', {}, heads(HEADS), this.body);
    this.root = el('section', { class: 'node panel', 'aria-label': name },
      el('header', {}, el('h2', {}, this.fold), this.state, this.free, this.facts, this.age),
      this.reason, this.table, this.details.root);
  }

  toggle() {
    const open = this.details.toggle();
    this.fold.setAttribute('aria-expanded', String(open));
  }

  update(node) {
    this.node = node;
    setText(this.name, node.display_name);
    this.name.title = [node.name, node.address, node.group, node.rack].filter(Boolean).join(' · ');
    setText(this.state, node.state === 'up' ? '' : node.state);
    setClass(this.state, node.state === 'up' ? '' : `lab s-${node.state === 'new' ? 'stale' : node.state}`);
    setText(this.reason, node.reason);
    this.reason.hidden = !node.reason;
    const gpus = node.gpus;
    const free = gpus.filter(gpu => gpu.counted !== false && gpu.state === 'free').length;
    setText(this.free, free ? `${free} free` : '');
    const models = new Map();
    for (const gpu of gpus) if (!gpu.parent_uuid) models.set(gpu.model, (models.get(gpu.model) ?? 0) + 1);
    const words = [...models].map(([model, how]) => `${how > 1 ? `${how} × ` : ''}${model ?? 'unknown model'}`);
    if (known(node.rates?.cpu_ratio)) words.push(`CPU ${percent(node.rates.cpu_ratio)} %`);
    setText(this.facts, words.join(' · '));
    const order = JSON.stringify(gpus.map(gpu => gpu.id));
    if (this.order !== order) {
      this.rows = new Map(gpus.map(gpu => [gpu.id, this.rows.get(gpu.id) ?? new GpuRow()]));
      this.body.replaceChildren(...gpus.map(gpu => this.rows.get(gpu.id).row));
      this.order = order;
    }
    const oneModel = gpus.every(gpu => gpu.model === gpus[0].model);
    for (const gpu of gpus) this.rows.get(gpu.id).update(gpu, oneModel);
    this.table.hidden = gpus.length === 0;
    this.tick();
  }

  tick() {
    const seconds = age(this.node);
    const fresh = this.node.state === 'up' && seconds < 3;
    setText(this.age, seconds === null ? 'never seen' : fresh ? 'now' : `${duration(seconds)} ago`);
  }

  close() {
    this.details.close();
    this.root.remove();
  }
}
