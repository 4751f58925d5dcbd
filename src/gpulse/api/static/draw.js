// Elements, state shapes and formats. Words from nodes only ever become text.

export const STATES = ['free', 'busy', 'idle', 'reserved', 'unhealthy', 'stale', 'down'];
export const LABELS = {
  free: 'free', busy: 'busy', idle: 'idle, held', reserved: 'reserved', unhealthy: 'unhealthy', stale: 'stale',
  down: 'down', split: 'split',
};
export const NONE = '–';
const SVG = 'http://www.w3.org/2000/svg';

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

// Only what differs is written: selections stay, and nothing is laid out anew.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

const BOX = { x: 0.75, y: 0.75, width: 10.5, height: 10.5, rx: 2, class: 'o' };
const SHAPES = {
  free: [['circle', { cx: 6, cy: 6, r: 5.5 }]],
  busy: [['rect', { x: 0.5, y: 0.5, width: 11, height: 11, rx: 2 }]],
  idle: [['rect', BOX], ['path', { class: 'l', d: 'M1.5 7 7 1.5M1.5 10.8 10.8 1.5M5.2 10.8l5.5-5.5' }]],
  reserved: [['rect', BOX], ['path', { class: 'l', d: 'M3.5 6h5' }]],
  unhealthy: [['rect', BOX], ['path', { d: 'M3.5.5h6a2 2 0 0 1 2 2v6z' }]],
  stale: [['rect', { ...BOX, class: 'o d' }]],
  down: [['path', { class: 'l', d: 'm2 2 8 8M10 2l-8 8' }]],
  split: [['path', { class: 'l', d: 'M1 1h4v4H1zM7 1h4v4H7zM1 7h4v4H1zM7 7h4v4H7z' }]],
};

// One GPU: colour and form both tell its state.
export function shape(state) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 12 12');
  svg.setAttribute('class', `c s-${state}`);
  svg.setAttribute('aria-hidden', 'true');
  for (const [tag, attributes] of SHAPES[state] ?? []) {
    const part = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    svg.append(part);
  }
  return svg;
}

// A stable hue for each person in 16 steps that leave out green, the colour of free.
function hue(name) {
  let hash = 266;
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0), 16777619) >>> 0;
  return (200 + ((hash ^ (hash >>> 13)) >>> 0) % 16 * 16.8) % 360;
}

export function person(name) {
  const made = el('span', { class: 'who', title: name }, name);
  made.style.setProperty('--h', hue(name));
  return made;
}

// The columns of a table: their words, and whether figures stand below.
export function heads(columns) {
  return el('thead', {}, el('tr', {}, ...columns.map(([text, kind]) => el('th', { scope: 'col', class: kind }, text))));
}

// A GPU's number on its node, of a MIG instance with its own behind a point.
export function place(gpu) {
  const index = String(gpu.index ?? '?');
  return gpu.parent_uuid && known(gpu.mig_index) ? `${index}.${gpu.mig_index}` : index;
}

export const known = value => value !== null && value !== undefined;
export const whole = value => known(value) ? String(Math.round(value)) : NONE;
export const percent = ratio => known(ratio) ? `${Math.round(ratio * 100)}` : NONE;
export const gib = bytes => known(bytes) ? (bytes / 2 ** 30).toFixed(bytes >= 1000 * 2 ** 30 ? 0 : 1) : NONE;
export const size = bytes => bytes >= 2 ** 40 ? `${(bytes / 2 ** 40).toFixed(1)} TiB` : `${gib(bytes)} GiB`;
export const count = value => value.toLocaleString('en');

export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

export function rate(bytes) {
  if (!known(bytes)) return NONE;
  for (const [unit, one] of [['GB/s', 1e9], ['MB/s', 1e6], ['kB/s', 1e3]]) {
    if (bytes >= one) return `${(bytes / one).toFixed(1)} ${unit}`;
  }
  return `${Math.round(bytes)} B/s`;
}
