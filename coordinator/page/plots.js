// Plots as SVG, drawn by hand: a curve with a band and marks, and a bar of shares.
'use strict';
(() => {
  const { svg, element, isNumber, short, grouped } = lockstep;
  const HEIGHT = 250, LEFT = 56, RIGHT = 24, TOP = 10, BOTTOM = 38;

  // At most `count` round values within [low, high].
  const ticks = (low, high, count) => {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
    const values = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; ++i) values.push(i * step);
    return values;
  };

  // Where the values span decades, equal steps are equal ratios.
  const DECADES = 100;
  const logarithmic = (values) => {
    const there = values.filter(isNumber);
    const low = Math.min(...there), high = Math.max(...there);
    return low > 0 && high / low >= DECADES;
  };

  const decades = (low, high) => {
    const values = [];
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
    const every = Math.max(1, Math.ceil((last - first + 1) / 6));
    for (let power = first; power <= last; power += every) values.push(10 ** power);
    return values;
  };

  const range = (values, fromZero) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (!isNumber(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) return null;
    if (fromZero) low = Math.min(low, 0);
    const room = high > low ? (high - low) * 0.05 : Math.abs(high) * 0.1 || 1;
    return [fromZero && low === 0 ? 0 : low - room, high + room];
  };

  // Pieces of the path between points that are no numbers.
  const path = (xs, ys, x, y) => {
    let text = '', isDown = false;
    ys.forEach((value, i) => {
      if (!isNumber(value)) { isDown = false; return; }
      text += `${isDown ? 'L' : 'M'}${x(xs[i]).toFixed(1)} ${y(value).toFixed(1)}`;
      isDown = true;
    });
    return text;
  };

  const band = (xs, lows, highs, x, y) => {
    const both = xs.map((_, i) => i).filter((i) => isNumber(lows[i]) && isNumber(highs[i]));
    if (both.length < 2) return '';
    const there = both.map((i) => `${x(xs[i]).toFixed(1)} ${y(highs[i]).toFixed(1)}`);
    const back = both.reverse().map((i) => `${x(xs[i]).toFixed(1)} ${y(lows[i]).toFixed(1)}`);
    return `M${there.join('L')}L${back.join('L')}Z`;
  };

  const axes = (xRange, yTicks, x, y, width) => {
    const group = svg('g', { 'aria-hidden': 'true' });
    for (const value of yTicks) {
      group.append(
        svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
        svg('text', { x: LEFT - 7, y: y(value) + 4, 'text-anchor': 'end' }, short(value)));
    }
    for (const value of ticks(xRange[0], xRange[1], Math.max(2, Math.floor(width / 100)))) {
      if (value % 1 !== 0) continue;
      group.append(
        svg('text', { x: x(value), y: HEIGHT - BOTTOM + 17, 'text-anchor': 'middle' },
            value < 1e6 ? grouped(value) : short(value)));
    }
    group.append(
      svg('line', { class: 'axis', x1: LEFT, x2: width - RIGHT, y1: HEIGHT - BOTTOM,
                    y2: HEIGHT - BOTTOM }),
      svg('text', { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 5, 'text-anchor': 'middle' },
          'step'));
    return group;
  };

  // What the point under the pointer is.
  const follow = (picture, readout, data, x, width) => {
    picture.addEventListener('pointermove', (event) => {
      const box = picture.getBoundingClientRect();
      const at = (event.clientX - box.left) / box.width * width;
      let best = -1;
      data.x.forEach((value, i) => {
        if (!isNumber(data.y[i])) return;
        if (best < 0 || Math.abs(x(value) - at) < Math.abs(x(data.x[best]) - at)) best = i;
      });
      if (best >= 0) {
        readout.textContent = `step ${grouped(data.x[best])}: ${short(data.y[best])} ${data.unit}`;
      }
    });
    picture.addEventListener('pointerleave', () => { readout.textContent = data.label; });
  };

  // data: {x, y, low?, high?, marks?: [{x, text}], unit, label, fromZero?, most?, dots?, empty,
  //        class?, more?: [{x, y, class, name}]}
  lockstep.curve = (where, data) => {
    const lines = [{ x: data.x, y: data.y, class: data.class || '' }, ...(data.more || [])];
    const values = [...lines.flatMap((line) => line.y), ...(data.low || []), ...(data.high || [])];
    const yRange = range(values, data.fromZero);
    if (!yRange) {
      where.replaceChildren(element('p', { class: 'empty' }, data.empty));
      return;
    }
    const isLog = !data.fromZero && logarithmic(values);
    if (isLog) yRange[0] = Math.min(...values.filter(isNumber)) / 1.2;
    if (data.most !== undefined) yRange[1] = Math.min(yRange[1], data.most);
    const width = Math.max(where.clientWidth || 600, 240);
    const steps = lines.flatMap((line) => line.x);
    const first = 0, last = steps.reduce((most, step) => Math.max(most, step), 1);
    const x = (v) => LEFT + (v - first) / (last - first) * (width - LEFT - RIGHT);
    const on = isLog ? Math.log10 : (v) => v;
    const y = (v) => TOP + (on(yRange[1]) - on(v)) / (on(yRange[1]) - on(yRange[0])) *
                     (HEIGHT - TOP - BOTTOM);
    const yTicks = isLog ? decades(...yRange) : ticks(...yRange, 5);
    const picture = svg('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img',
                                 'aria-label': data.label,
                                 'data-points': lines.reduce((sum, line) =>
                                   sum + line.y.filter(isNumber).length, 0) });
    picture.append(axes([first, last], yTicks, x, y, width));
    if (data.low) {
      picture.append(svg('path', { class: 'band', d: band(data.x, data.low, data.high, x, y) }));
    }
    for (const mark of data.marks || []) {
      if (mark.x < first || mark.x > last) continue;
      picture.append(svg('line', { class: 'mark', x1: x(mark.x), x2: x(mark.x), y1: TOP,
                                   y2: HEIGHT - BOTTOM }, svg('title', {}, mark.text)));
    }
    for (const line of lines) {
      picture.append(svg('path', { class: `curve ${line.class}`, d: path(line.x, line.y, x, y) },
                         ...(line.name ? [svg('title', {}, line.name)] : [])));
      if (line.y.length !== 1 && !(data.dots && line.y.length <= 60)) continue;
      line.y.forEach((value, i) => {
        if (!isNumber(value)) return;
        picture.append(svg('circle', { class: `dot ${line.class}`, cx: x(line.x[i]), cy: y(value),
                                       r: 3 }));
      });
    }
    const readout = element('p', { class: 'readout' }, data.label);
    follow(picture, readout, data, x, width);
    where.replaceChildren(picture, readout);
  };

  // parts: [{value, class, text}]
  lockstep.bar = (parts, attributes) => {
    const whole = parts.reduce((sum, part) => sum + part.value, 0);
    const picture = svg('svg', { viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img',
                                 ...attributes });
    let at = 0;
    for (const part of parts) {
      const width = whole > 0 ? part.value / whole * 1000 : 0;
      picture.append(svg('rect', { x: at, y: 0, width, height: 10, class: part.class },
                         svg('title', {}, part.text)));
      at += width;
    }
    return picture;
  };
})();
