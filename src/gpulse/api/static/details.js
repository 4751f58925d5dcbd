// What one node has besides its GPUs: its host, its processes, what could not be read, and its log.

import { NONE, duration, el, gib, heads, known, percent, person, place, rate, size, whole } from './draw.js';

const EVERY = 2000;

export class Details {
  constructor(name) {
    this.name = name;
    this.root = el('div', { class: 'details', hidden: true });
  }

  toggle() {
    this.root.hidden = !this.root.hidden;
    if (this.root.hidden) this.close();
    else this.load();
    return !this.root.hidden;
  }

  close() {
    clearTimeout(this.timer);
    this.root.hidden = true;
  }

  async load() {
    const at = `api/v1/nodes/${encodeURIComponent(this.name)}`;
    try {
      const [node, log] = await Promise.all([fetched(at), fetched(`${at}/log?limit=30`)]);
      this.root.replaceChildren(host(node), processes(node), reports(node), logged(log.items));
    } catch (error) {
      // What was told before stays; the page says elsewhere when the hub is gone.
      const words = `Cannot be read now: ${error.message}`;
      if (!this.root.childElementCount) this.root.replaceChildren(el('p', { class: 'quiet' }, words));
    }
    if (!this.root.hidden) this.timer = setTimeout(() => this.load(), EVERY);
  }
}

async function fetched(path) {
  const response = await fetch(path);
  const told = await response.json();
  if (!response.ok) throw new Error(told.error.message);
  return told;
}

function host(node) {
  const told = node.host ?? {};
  const facts = [
    ['Reached by', node.address],
    ['Group, rack', joined(node.group, node.rack)],
    ['System', joined(told.os, told.kernel)],
    ['CPU', joined(told.cpu_model, cores(told))],
    ['CPU used', known(node.rates?.cpu_ratio) ? `${percent(node.rates.cpu_ratio)} %` : null],
    ['Load', joined(...[told.load_1m, told.load_5m, told.load_15m].map(load => load?.toFixed(1)))],
    ['Memory', used(told.memory_used_bytes, told.memory_total_bytes)],
    ['Swap', told.swap_total_bytes ? used(told.swap_used_bytes, told.swap_total_bytes) : null],
    ['Network', traffic(node.rates, 'network')],
    ['InfiniBand', traffic(node.rates, 'infiniband')],
    ...(told.disks ?? []).map(disk => [
      `Disk ${disk.mount ?? ''}`, joined(used(disk.used_bytes, disk.total_bytes), disk.kind),
    ]),
    ['Addresses', joined(...(told.networks ?? []).flatMap(network => network.addresses ?? []))],
    ['Up for', known(told.uptime_seconds) ? duration(told.uptime_seconds) : null],
    ['Driver', node.gpus.find(gpu => gpu.driver_version)?.driver_version],
    ['Probe', joined(node.probe_version, node.gpu_source)],
    ['Clock', Math.abs(node.clock_difference_seconds ?? 0) > 1 ? `${node.clock_difference_seconds} s off` : null],
  ].filter(([, value]) => value);
  return el('dl', {}, ...facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

const joined = (...words) => words.filter(Boolean).join(', ');
const used = (part, total) => known(total) ? `${size(part)} of ${size(total)}` : null;

function cores(told) {
  if (!known(told.cpu_cores)) return null;
  const sockets = told.cpu_sockets || 1;
  return `${sockets} × ${told.cpu_cores / sockets} cores, ${told.cpu_threads ?? NONE} threads`;
}

function traffic(rates, kind) {
  const received = rates?.[`${kind}_received_bytes_per_second`];
  return known(received) ? `in ${rate(received)}, out ${rate(rates[`${kind}_sent_bytes_per_second`])}` : null;
}

const HEADS = [['Person', ''], ['GPU', ''], ['GiB', 'n'], ['CPU %', 'n'], ['For', 'n'], ['PID', 'n'], ['Command', '']];

function processes(node) {
  const places = new Map(node.gpus.map(gpu => [gpu.uuid, place(gpu)]));
  const rows = (node.processes ?? []).filter(process => process.gpus?.length).map(process => row(process, places));
  if (!rows.length) return el('p', { class: 'quiet' }, 'No process on its GPUs.');
  return el('div', { class: 'scroll' }, el('table', { class: 'processes' }, heads(HEADS), el('tbody', {}, ...rows)));
}

function row(process, places) {
  const who = process.person ?? process.user;
  const command = process.command ?? process.name ?? NONE;
  const seconds = known(process.start_time) ? Date.now() / 1000 - process.start_time : null;
  return el('tr', {},
    el('td', {}, who ? person(who) : NONE),
    el('td', {}, process.gpus.map(use => places.get(use.uuid) ?? '?').join(', ')),
    el('td', { class: 'n' }, gib(process.gpus.reduce((sum, use) => sum + (use.memory_bytes ?? 0), 0))),
    el('td', { class: 'n' }, percent(process.cpu_ratio)),
    el('td', { class: 'n' }, duration(seconds)),
    el('td', { class: 'n' }, whole(process.pid)),
    el('td', { class: 'cmd', title: command }, process.vanished ? 'gone, but the driver still lists it' : command));
}

function reports(node) {
  const told = node.reports ?? [];
  const lines = told.map(report => el('li', {}, `${report.collector ?? 'probe'}: ${report.message ?? ''}`));
  return el('ul', { class: 'reports', hidden: told.length === 0 }, ...lines);
}

function logged(entries) {
  const clock = entry => el('time', {}, new Date(entry.time * 1000).toLocaleTimeString());
  const lines = entries.map(entry => el('li', {}, clock(entry), ` ${entry.message}`));
  return el('ol', { class: 'log', 'aria-label': 'Log' }, ...lines);
}
