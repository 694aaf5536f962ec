// Numbers, times and nodes as people read them. Text goes into the document as text only, never as
// markup: names of jobs and nodes come from elsewhere.
'use strict';
const lockstep = {};

lockstep.element = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  for (const child of children) node.append(child);  // strings become text nodes
  return node;
};

lockstep.svg = (name, attributes = {}, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  for (const child of children) node.append(child);
  return node;
};

lockstep.isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

lockstep.grouped = (value) =>
  lockstep.isNumber(value) ? Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',') : '–';

// Three or four digits that matter.
lockstep.short = (value) => {
  if (!lockstep.isNumber(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(1) + 'G';
  if (size >= 1e6) return (value / 1e6).toFixed(1) + 'M';
  if (size >= 1e4) return (value / 1e3).toFixed(1) + 'k';
  if (size === 0) return '0';
  if (size < 1e-3) return value.toExponential(1).replace('.0e', 'e');
  return String(Number(value.toPrecision(4)));
};

lockstep.percent = (share, digits = 1) =>
  lockstep.isNumber(share) ? (share * 100).toFixed(digits) + ' %' : '–';

// Of a mean cross entropy over tokens.
lockstep.perplexity = (loss) => lockstep.isNumber(loss) ? Math.exp(loss) : undefined;

lockstep.duration = (seconds) => {
  if (!lockstep.isNumber(seconds) || seconds < 0) return '–';
  const whole = Math.round(seconds);
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24;
  const two = (n) => String(n).padStart(2, '0');
  if (days > 0) return `${days} d ${hours} h`;
  const rest = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
};

// "2026-11-21T06:00:00.123Z" in the reader's own time zone.
lockstep.time = (text) => {
  const when = new Date(text);
  return Number.isNaN(when.getTime()) ? String(text)
    : when.toLocaleString('sv-SE').slice(0, 19);
};
