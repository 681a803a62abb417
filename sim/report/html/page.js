'use strict';
// What every page shares: numbers as text, the box beside the pointer, the self-test.
const faults = [];
window.addEventListener('error', (event) => faults.push('error: ' + event.message));
window.addEventListener('unhandledrejection', (event) => faults.push('rejected: ' + event.reason));
document.addEventListener('securitypolicyviolation', (event) => faults.push('policy: ' + event.violatedDirective));

const json = (id) => {
  const element = document.getElementById(id);
  return element && JSON.parse(element.textContent);
};

const timeText = (ns) => {
  const units = [[1e9, ' s'], [1e6, ' ms'], [1e3, ' us'], [1, ' ns']];
  const [size, name] = units.find(([size]) => Math.abs(ns) >= size) || units[3];
  return Number((ns / size).toPrecision(4)) + name;
};
const bytesText = (bytes) => {
  const units = [[2 ** 40, ' TiB'], [2 ** 30, ' GiB'], [2 ** 20, ' MiB'], [2 ** 10, ' KiB'], [1, ' B']];
  const [size, name] = units.find(([size]) => bytes >= size) || units[4];
  return (bytes / size).toFixed(size > 1 ? 1 : 0) + name;
};
const rateText = (rate) => (rate / 1e9).toFixed(1) + ' GB/s';
const percentText = (share) => (100 * share).toFixed(1) + ' %';
const spoken = (name) => name.replace(/_/g, ' ');

// A new element: make('b', {title: 'x'}, 'text', child…).
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// The box beside the pointer: a heading and lines of text.
const tip = {
  show(x, y, [head, ...lines]) {
    const box = document.getElementById('tip');
    box.replaceChildren(make('b', {}, head), ...lines.flatMap((line, i) => (i ? [make('br'), line] : [line])));
    box.hidden = false;
    const gap = 14, width = box.offsetWidth, height = box.offsetHeight;
    box.style.left = Math.max(4, x + gap + width > innerWidth ? x - gap - width : x + gap) + 'px';
    box.style.top = Math.max(4, y + gap + height > innerHeight ? y - gap - height : y + gap) + 'px';
  },
  hide() { document.getElementById('tip').hidden = true; },
};

// Checks that pages add to the self-test, each a function that returns the text of a fault or nothing; may be a promise.
const checks = [];

const unescaped = (key) => key.replace(/~1/g, '/').replace(/~0/g, '~');  // RFC 6901, section 4
const at = (root, pointer) => pointer.split('/').slice(1).reduce((value, key) => (value == null ? value : value[unescaped(key)]), root);
const unitSizes = {
  s: 1, min: 60, h: 3600, ms: 1e-3, us: 1e-6, ns: 1e-9, '%': 0.01, pp: 0.01, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50,
  'B/s': 1, 'kB/s': 1e3, 'MB/s': 1e6, 'GB/s': 1e9, 'TB/s': 1e12, x: 1, 'of a million': 1e-6, '': 1,
};
// The exact number that an element prints: of the report, or of the data that data-of names; less the one at data-minus, or
// relative to the one at data-per.
const exactNumber = (element, roots) => {
  const {at: pointer, of: id = 'report', minus, per} = element.dataset;
  const root = roots[id] ||= json(id), value = at(root, pointer);
  return minus ? value - at(root, minus) : per ? value / at(root, per) - 1 : value;
};
// A printed number against the exact one: they may differ by half of the last digit that is shown.
const compareNumber = (element, roots) => {
  const text = element.textContent.replace(/,/g, '').replace('−', '-');
  const [, digits, unit] = /^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(.*)$/.exec(text) || [];
  const exact = exactNumber(element, roots);
  const size = unitSizes[element.dataset.unit || unit];
  if (digits === undefined || size === undefined || typeof exact !== 'number' || Number.isNaN(exact)) return `${element.dataset.at}: "${text}" for ${exact}`;
  const last = digits.includes('.') ? 10 ** -(digits.length - digits.indexOf('.') - 1) : 1;
  if (Math.abs(Number(digits) - exact / size) <= last * 0.5000001) return '';
  return `${element.dataset.at}: "${text}" is not ${exact}`;
};

// Opened with #selftest, the page checks itself and says so in its own text.
const selfTest = async () => {
  const roots = {};
  const numbers = [...document.querySelectorAll('[data-at]')];
  for (const element of numbers) {
    const fault = compareNumber(element, roots);
    if (fault) faults.push(fault);
  }
  for (const check of checks) {
    const fault = await check();
    if (fault) faults.push(fault);
  }
  const text = faults.length ? 'FAILED\n' + faults.join('\n') : `PASSED ${numbers.length} numbers, ${checks.length} checks`;
  document.body.append(make('pre', {id: 'selftest-result'}, text));
};

// Marks tables that are wider than the page.
const markWider = () => {
  for (const box of document.querySelectorAll('.scroll')) box.classList.toggle('wider', box.scrollWidth > box.clientWidth + 1);
};
window.addEventListener('resize', markWider);
document.addEventListener('toggle', markWider, true);

const parts = [];  // what each kind of page adds: functions that run when the document is there
document.addEventListener('DOMContentLoaded', async () => {
  for (const part of parts) await part();
  markWider();
  document.body.dataset.ready = 'yes';
  if (location.hash === '#selftest') await selfTest();
});
