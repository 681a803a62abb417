// What timelines above each other share: the time that is shown, the streams that are hidden, the tools and the legend.
class TimelineGroup {
  constructor(end) {
    Object.assign(this, {end, from: 0, to: end, views: [], hidden: new Set(), lit: false});
    this.light = make('button', {type: 'button', class: 'light', 'aria-pressed': 'false', title: 'Show what the end of the iteration waited for (c)'}, 'critical path');
    this.light.addEventListener('click', () => this.light_up(!this.lit));
    this.words = make('p', {class: 'spoken', 'aria-live': 'polite'},
      'Drag to move, Ctrl and wheel (or + and −) to zoom, drag over the strip at the top to choose a time.');
  }

  show(from, to) {
    const least = 50;  // nanoseconds
    const length = Math.min(Math.max(to - from, least), this.end);
    this.from = Math.min(Math.max(0, from), this.end - length);
    this.to = this.from + length;
    for (const view of this.views) view.draw();
  }
  zoom(factor, at = (this.from + this.to) / 2) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }

  light_up(lit) {
    this.lit = lit;
    this.light.setAttribute('aria-pressed', String(lit));
    for (const view of this.views) view.draw();
  }

  toggle(stream) {
    const hide = !this.hidden.delete(stream);
    if (hide) this.hidden.add(stream);
    for (const view of this.views) view.layOut();
    return !hide;
  }

  tools() {
    const tools = make('div', {class: 'tools', role: 'toolbar', 'aria-label': 'Timeline'});
    for (const stream of streams.filter((each) => this.views.some((view) => view.used.includes(each)))) {
      const button = make('button', {type: 'button', 'aria-pressed': String(!this.hidden.has(stream))}, stream);
      button.addEventListener('click', () => button.setAttribute('aria-pressed', String(this.toggle(stream))));
      tools.append(button);
    }
    tools.append(make('span', {class: 'gap'}), this.light);
    const zoom = (text, label, action) => {
      const button = make('button', {type: 'button', 'aria-label': label, title: label}, text);
      button.addEventListener('click', action);
      tools.append(button);
    };
    zoom('−', 'Zoom out', () => this.zoom(2));
    zoom('+', 'Zoom in', () => this.zoom(0.5));
    zoom('whole iteration', 'Show the whole iteration', () => this.show(0, this.end));
    return tools;
  }

  legend() {
    const kinds = new Set();
    for (const view of this.views)
      for (const row of view.rows) for (const stream of streams) for (const track of row[stream].tracks) track.kind.forEach((kind) => kinds.add(kind));
    return make('p', {class: 'legend'}, ...timelineKinds.filter((_, i) => kinds.has(i)).map((name) =>
      make('span', {}, make('i', {class: 'sw b-' + name}), spoken(name))));
  }
}

// Black or white, whichever stands out more on the colour "#3d7cc0": a contrast of 4.58 at least, where WCAG 2 AA wants 4.5.
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue, evenness = 0.179;
  return luminance > evenness ? '#000000' : '#ffffff';
}

// How the rows of one run are drawn and moved through.
const stripHeight = 16, faded = 0.16;  // pixels; opacity of what is not on the critical path while that is lit
class TimelineView {
  constructor(place, data, columns, group) {
    this.data = data;
    this.columns = columns;
    this.group = group;
    Object.assign(this, buildRows(data, columns));
    this.path = buildPath(data, columns, this.rows);
    this.used = streams.filter((stream) => this.rows.some((row) => row[stream].tracks.some((track) => track.count)));
    this.selected = null;
    group.views.push(this);
    this.build(place);
    this.colours();
    this.layOut();
    this.listen();
  }

  get from() { return this.group.from; }
  get to() { return this.group.to; }
  get words() { return this.group.words; }
  get lit() { return this.group.lit; }
  get light() { return this.group.light; }

  build(place) {
    this.overview = make('canvas', {class: 'overview', 'aria-hidden': 'true'});
    this.axis = make('canvas', {class: 'axis', 'aria-hidden': 'true'});
    this.strip = make('canvas', {class: 'strip', 'aria-hidden': 'true'});
    this.canvas = make('canvas', {});
    this.space = make('div', {});
    this.scroller = make('div', {
      class: 'rows', tabindex: '0', role: 'application',
      'aria-label': 'Timeline. Left and right move, plus and minus zoom, 0 shows the whole iteration, up and down choose a row, comma and full stop step through it.',
    }, this.canvas, this.space);
    place.append(make('div', {class: 'plot'}, this.overview, this.axis, this.strip, this.scroller));
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue('--' + name).trim();
    this.palette = timelineKinds.map(colour);
    this.partPalette = partKinds.map(colour);
    this.ink = {ink: colour('ink'), quiet: colour('quiet'), rule: colour('rule'), page: colour('page'), accent: colour('accent'), panel: colour('panel'), path: colour('path')};
    this.summary = null;
  }

  // Places of the rows: a block a device, its compute row and thinner ones below.
  layOut() {
    const devices = this.rows.length;
    const [thick, thin, gap] = devices <= 4 ? [30, 13, 12] : devices <= 8 ? [22, 9, 8] : devices <= 16 ? [15, 5, 6] : devices <= 32 ? [11, 4, 5] : [9, 3, 4];
    let y = 4;
    this.places = [];
    this.rows.forEach((row) => {
      const shown = this.used.filter((stream) => !this.group.hidden.has(stream) && row[stream].tracks.some((track) => track.count));
      const top = y;
      for (const stream of shown) {
        const height = stream === 'compute' ? thick : thin;
        this.places.push({...row[stream], y, height, top: stream === shown[0]});
        y += height + 1;
      }
      if (y > top) y += gap;
    });
    this.height = y;
    this.resize();
  }

  resize() {
    const width = this.scroller.clientWidth || 800;
    this.gutter = width < 600 ? 62 : 96;
    this.width = width;
    const view = Math.min(this.height, parseFloat(getComputedStyle(this.scroller).maxHeight) || this.height);
    this.view = Math.max(view, 40);
    for (const [canvas, height] of [[this.overview, 34], [this.axis, 22], [this.strip, stripHeight], [this.canvas, this.view]]) {
      canvas.style.height = height + 'px';
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(height * devicePixelRatio);
    }
    this.space.style.height = Math.max(0, this.height - this.view) + 'px';
    this.summary = null;
    this.draw();
  }

  show(from, to) { this.group.show(from, to); }
  zoom(factor, at) { this.group.zoom(factor, at); }
  move(share) { this.show(this.from + share * (this.to - this.from), this.to + share * (this.to - this.from)); }
  time(x) { return this.from + (x - this.gutter) / (this.width - this.gutter) * (this.to - this.from); }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }
  drawNow() {
    this.drawOverview();
    this.drawAxis();
    this.drawStrip();
    this.drawRows();
  }

  light_up(lit) { this.group.light_up(lit); }

  context(canvas) {
    const context = canvas.getContext('2d');
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.width, canvas.height);
    return context;
  }

  // One track between two times. Wide things are rectangles; narrow ones add up in the pixel's column.
  paint(context, track, y, height, from, to, left, right, shares, weight = 1) {
    const scale = (right - left) / (to - from), columns = Math.ceil(right - left), kinds = timelineKinds.length;
    const wide = 1.5;
    for (let i = track.first(from); i < track.count && track.begin[i] < to; ++i) {
      if (track.end[i] <= from) continue;
      const x0 = Math.max(0, (track.begin[i] - from) * scale), x1 = Math.min(columns, (track.end[i] - from) * scale);
      if (x1 - x0 >= wide && context) {
        context.fillStyle = this.palette[track.kind[i]];
        context.fillRect(left + x0, y, Math.max(x1 - x0 - (x1 - x0 > 5 ? 0.6 : 0), 0.5), height);
        if (track.source[i] === sources.compute && x1 - x0 > 24 && height >= 9) this.paintParts(context, track, i, y, height, left, scale, from, columns);
        continue;
      }
      for (let column = Math.floor(x0); column < x1; ++column)
        shares[column * kinds + track.kind[i]] += weight * (Math.min(x1, column + 1) - Math.max(x0, column));
    }
  }

  // What an op is made of, as a strip along its lower edge; and its microbatch where there is room.
  paintParts(context, track, i, y, height, left, scale, from, columns) {
    const source = track.index[i], op = this.ops[this.columns.compute_op[source]];
    const strip = Math.max(2, Math.round(height * 0.22));
    let at = track.begin[i];
    op.parts.forEach((length, part) => {
      const x0 = Math.max(0, (at - from) * scale), x1 = Math.min(columns, (at + length - from) * scale);
      at += length;
      if (part === 0 || x1 - x0 < 0.5) return;
      context.fillStyle = this.partPalette[part];
      context.fillRect(left + x0, y + height - strip, x1 - x0, strip);
    });
    const microbatch = this.columns.compute_microbatch[source];
    const x0 = Math.max(0, (track.begin[i] - from) * scale), x1 = Math.min(columns, (track.end[i] - from) * scale);
    if (microbatch < 0 || height < 13 || x1 - x0 < 30) return;
    context.fillStyle = inkOn(this.palette[track.kind[i]]);
    context.font = '11px system-ui, sans-serif';
    context.fillText(String(microbatch), left + x0 + 4, y + Math.min(height - strip - 2, height / 2 + 3));
  }

  paintShares(context, shares, y, height, left, columns) {
    const kinds = timelineKinds.length, filled = new Float32Array(columns);
    for (let kind = 0; kind < kinds; ++kind) {
      context.fillStyle = this.palette[kind];
      for (let column = 0; column < columns; ++column) {
        const share = shares[column * kinds + kind];
        if (!share) continue;
        const part = Math.min(share, 1 - filled[column]) * height;
        context.fillRect(left + column, y + height - filled[column] * height - part, 1, part);
        filled[column] += share;
      }
    }
    shares.fill(0);
  }

  drawRows() {
    const context = this.context(this.canvas), scroll = this.scroller.scrollTop;
    const columns = Math.ceil(this.width - this.gutter), shares = new Float32Array(columns * timelineKinds.length);
    context.textBaseline = 'alphabetic';
    for (const place of this.places) {
      const y = place.y - scroll;
      if (y + place.height < 0 || y > this.view) continue;
      if (place.height >= 6) {
        context.fillStyle = this.ink.panel;
        context.fillRect(this.gutter, y, columns, place.height);
      }
      const half = place.height / place.tracks.length;
      place.tracks.forEach((track, i) => {
        const top = y + i * half;
        context.globalAlpha = this.lit ? faded : 1;
        this.paint(context, track, top, half, this.from, this.to, this.gutter, this.width, shares);
        this.paintShares(context, shares, top, half, this.gutter, columns);
        context.globalAlpha = 1;
        if (!this.lit) return;
        this.paint(context, track.path, top, half, this.from, this.to, this.gutter, this.width, shares);
        this.paintShares(context, shares, top, half, this.gutter, columns);
      });
      this.drawLabel(context, place, y);
    }
    this.drawEnd(context, 0, this.view, this.from, this.to);
  }

  // Where a run that ends before another one above or below it has ended.
  drawEnd(context, y, height, from, to) {
    if (this.data.end >= this.group.end || this.data.end >= to) return;
    const x = this.gutter + Math.max(0, (this.data.end - from) / (to - from)) * (this.width - this.gutter);
    context.fillStyle = this.ink.page;
    context.fillRect(x, y, this.width - x, height);
    context.fillStyle = this.ink.accent;
    if (this.data.end >= from) context.fillRect(x, y, 2, height);
    const text = timeText(this.group.end - this.data.end) + ' earlier';
    context.font = '11px system-ui, sans-serif';
    if (height > 40 && context.measureText(text).width < this.width - x - 12) context.fillText(text, x + 8, y + Math.min(height / 2 + 4, 18));
  }

  // What the end of the iteration waited for, at each time.
  drawStrip() {
    const context = this.context(this.strip), columns = Math.ceil(this.width - this.gutter), shares = new Float32Array(columns * timelineKinds.length);
    this.paint(context, this.path.strip, 1, stripHeight - 3, this.from, this.to, this.gutter, this.width, shares);
    this.paintShares(context, shares, 1, stripHeight - 3, this.gutter, columns);
    context.fillStyle = this.lit ? this.ink.path : this.ink.quiet;
    context.font = '11px system-ui, sans-serif';
    context.fillText(this.gutter < 90 ? 'path' : 'critical path', 8, stripHeight - 4);
    const scale = (this.width - this.gutter) / (this.to - this.from);
    for (const run of this.path.runs) {
      const x0 = Math.max(0, (run.begin - this.from) * scale), x1 = Math.min(columns, (run.end - this.from) * scale);
      if (x1 - x0 < context.measureText(run.name).width + 12) continue;
      // What it lies on has several colours: the page's own behind it.
      context.fillStyle = this.ink.page;
      context.fillRect(this.gutter + x0 + 2, 3, context.measureText(run.name).width + 6, stripHeight - 7);
      context.fillStyle = this.ink.ink;
      context.fillText(run.name, this.gutter + x0 + 5, stripHeight - 5);
    }
  }

  drawLabel(context, place, y) {
    const device = this.data.devices[place.device];
    context.fillStyle = device.ends_last ? this.ink.ink : this.ink.quiet;
    if (place.stream === 'compute' || place.top) {
      const size = Math.min(12, Math.max(9, place.height));
      context.font = (device.ends_last ? '600 ' : '') + size + 'px system-ui, sans-serif';
      const several = this.data.devices.some((other) => other.replica !== device.replica);
      const label = (several ? 'r' + device.replica + ' ' : '') + (this.gutter < 90 ? 's' : 'stage ') + device.stage;
      context.fillText(label, 8, y + Math.min(place.height - 1, place.height / 2 + size * 0.36));
    } else if (place.height >= 9 && this.gutter >= 90) {
      context.font = '9px system-ui, sans-serif';
      context.fillText(place.stream, 14, y + place.height - 2);
    }
    if (this.selected && this.selected.device === place.device && this.selected.stream === place.stream) {
      context.strokeStyle = this.ink.accent;
      context.lineWidth = 2;
      context.strokeRect(this.gutter + 1, y, this.width - this.gutter - 2, place.height);
    }
  }

  drawAxis() {
    const context = this.context(this.axis), length = this.to - this.from;
    const target = length / Math.max(2, (this.width - this.gutter) / 110), power = 10 ** Math.floor(Math.log10(target));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= target);
    context.fillStyle = this.ink.quiet;
    context.strokeStyle = this.ink.rule;
    context.font = '11px system-ui, sans-serif';
    for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) {
      const x = this.gutter + (tick - this.from) / length * (this.width - this.gutter);
      context.fillRect(Math.round(x), 15, 1, 7);
      const text = axisText(tick, step);
      const width = context.measureText(text).width;
      context.fillText(text, Math.min(x - (tick === this.from ? 0 : width / 2), this.width - width - 2), 12);
    }
  }

  // All shown devices' compute streams together, the whole iteration.
  drawOverview() {
    const context = this.context(this.overview), height = 34, columns = Math.ceil(this.width - this.gutter), kinds = timelineKinds.length;
    if (!this.summary) {
      this.summary = new Float32Array(columns * kinds);
      for (const row of this.rows)
        this.paint(null, row.compute.tracks[0], 0, 0, 0, this.group.end, this.gutter, this.width, this.summary, 1 / this.rows.length);
    }
    this.paintShares(context, this.summary.slice(), 3, height - 6, this.gutter, columns);
    context.fillStyle = this.ink.quiet;
    context.font = '11px system-ui, sans-serif';
    context.fillText(this.gutter < 90 ? 'all' : 'all shown', 8, height / 2 + 4);
    this.drawEnd(context, 0, height, 0, this.group.end);
    if (this.from <= 0 && this.to >= this.group.end) return;
    const x = (time) => this.gutter + time / this.group.end * (this.width - this.gutter);
    context.globalAlpha = 0.6;
    context.fillStyle = this.ink.page;
    context.fillRect(this.gutter, 0, x(this.from) - this.gutter, height);
    context.fillRect(x(this.to), 0, this.width - x(this.to), height);
    context.globalAlpha = 1;
    context.strokeStyle = this.ink.accent;
    context.lineWidth = 2;
    context.strokeRect(x(this.from), 1, Math.max(2, x(this.to) - x(this.from)), height - 2);
  }

  listen() {
    const canvas = this.canvas;
    let held = null;
    canvas.addEventListener('pointerdown', (event) => {
      held = {x: event.clientX, from: this.from, to: this.to};
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add('held');
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!held) return this.hover(event);
      tip.hide();
      const shift = (held.x - event.clientX) / (this.width - this.gutter) * (held.to - held.from);
      this.show(held.from + shift, held.to + shift);
    });
    const release = () => { held = null; canvas.classList.remove('held'); };
    canvas.addEventListener('pointerup', release);
    canvas.addEventListener('pointercancel', release);
    canvas.addEventListener('pointerleave', () => tip.hide());
    canvas.addEventListener('dblclick', (event) => this.zoom(0.25, this.time(event.offsetX)));
    canvas.addEventListener('wheel', (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), this.time(event.offsetX));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.move((event.deltaX || event.deltaY) / this.width);
      }
      tip.hide();
    }, {passive: false});
    this.scroller.addEventListener('scroll', () => this.draw(), {passive: true});
    this.scroller.addEventListener('keydown', (event) => this.key(event));
    this.strip.addEventListener('pointermove', (event) => this.hoverStrip(event));
    this.strip.addEventListener('pointerleave', () => tip.hide());
    this.strip.addEventListener('click', () => this.light_up(!this.lit));
    this.listenToOverview();
    new ResizeObserver(() => { if (this.scroller.clientWidth !== this.width) this.resize(); }).observe(this.scroller);
    const repaint = () => { this.colours(); this.draw(); };
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  }

  hoverStrip(event) {
    const track = this.path.strip, time = this.time(event.offsetX), pixel = (this.to - this.from) / (this.width - this.gutter);
    if (event.offsetX < this.gutter) return tip.hide();
    const times = new Map();
    for (let i = track.first(time - pixel); i < track.count && track.begin[i] <= time + pixel; ++i) {
      const overlap = Math.min(track.end[i], time + pixel) - Math.max(track.begin[i], time - pixel);
      const [name, kind] = this.data.path[this.columns.path_name[track.index[i]]], text = `${name}: ${spoken(kind)}`;
      if (overlap > 0) times.set(text, (times.get(text) || 0) + overlap);
    }
    const lines = [...times].sort((a, b) => b[1] - a[1]);
    if (!lines.length) return tip.hide();
    tip.show(event.clientX, event.clientY, ['The end waits for', ...lines.slice(0, 6).map(([text, length]) =>
      lines.length > 1 ? `${text}, ${percentText(Math.min(1, length / (2 * pixel)))}` : text)]);
  }

  listenToOverview() {
    const timeAt = (event) => Math.max(0, Math.min(1, (event.offsetX - this.gutter) / (this.width - this.gutter))) * this.group.end;
    let start = null;
    this.overview.addEventListener('pointerdown', (event) => {
      start = {time: timeAt(event), x: event.offsetX};
      this.overview.setPointerCapture(event.pointerId);
    });
    this.overview.addEventListener('pointermove', (event) => {
      if (start && Math.abs(event.offsetX - start.x) > 3) this.show(Math.min(start.time, timeAt(event)), Math.max(start.time, timeAt(event)));
    });
    this.overview.addEventListener('pointerup', (event) => {
      const length = this.to - this.from;
      if (start && Math.abs(event.offsetX - start.x) <= 3) this.show(start.time - length / 2, start.time + length / 2);
      start = null;
    });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => this.move(-0.15), ArrowRight: () => this.move(0.15), a: () => this.move(-0.15), d: () => this.move(0.15),
      '+': () => this.zoom(0.6), '=': () => this.zoom(0.6), w: () => this.zoom(0.6), '-': () => this.zoom(1.7), s: () => this.zoom(1.7),
      0: () => this.show(0, this.group.end), Home: () => this.show(0, this.group.end),
      c: () => this.light_up(!this.lit), ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1), ',': () => this.step(-1), '.': () => this.step(1),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  choose(by) {
    const now = this.selected ? this.places.findIndex((place) => place.device === this.selected.device && place.stream === this.selected.stream) : by > 0 ? -1 : this.places.length;
    const place = this.places[Math.max(0, Math.min(this.places.length - 1, now + by))];
    this.selected = {device: place.device, stream: place.stream, thing: -1, track: 0};
    if (place.y < this.scroller.scrollTop) this.scroller.scrollTop = place.y - 4;
    const below = place.y + place.height - this.view;
    if (below > this.scroller.scrollTop) this.scroller.scrollTop = below + 4;
    this.words.textContent = this.data.devices[place.device].name + ' · ' + place.stream;
    this.draw();
  }

  step(by) {
    if (!this.selected) this.choose(1);
    const track = this.rows[this.selected.device][this.selected.stream].tracks.find((each) => each.count);
    if (!track) return;
    const from = this.selected.thing < 0 ? track.first(this.from) : this.selected.thing + by;
    const i = this.selected.thing = Math.max(0, Math.min(track.count - 1, from));
    const middle = (track.begin[i] + track.end[i]) / 2;
    if (track.begin[i] < this.from || track.end[i] > this.to) this.show(middle - (this.to - this.from) / 2, middle + (this.to - this.from) / 2);
    this.words.textContent = this.describe(this.selected.device, this.selected.stream, track, i).join(' · ');
  }

  hover(event) {
    const y = event.offsetY + this.scroller.scrollTop, time = this.time(event.offsetX);
    const place = this.places.find((each) => y >= each.y - 1 && y <= each.y + each.height);
    if (!place) return tip.hide();
    if (event.offsetX < this.gutter) return tip.show(event.clientX, event.clientY, [this.data.devices[place.device].name, place.stream]);
    const track = place.tracks[Math.max(0, Math.min(place.tracks.length - 1, Math.floor((y - place.y) / place.height * place.tracks.length)))];
    const pixel = (this.to - this.from) / (this.width - this.gutter), near = [];
    const shares = new Float64Array(timelineKinds.length);
    for (let i = track.first(time - pixel); i < track.count && track.begin[i] <= time + pixel; ++i) {
      const overlap = Math.min(track.end[i], time + pixel) - Math.max(track.begin[i], time - pixel);
      if (overlap <= 0) continue;
      near.push(i);
      shares[track.kind[i]] += overlap / (2 * pixel);
    }
    if (!near.length) return tip.hide();
    const hit = near.find((i) => track.begin[i] <= time && time <= track.end[i]);
    if (hit !== undefined && (near.length <= 2 || track.end[hit] - track.begin[hit] > 3 * pixel))
      return tip.show(event.clientX, event.clientY, this.describe(place.device, place.stream, track, hit));
    const lines = [...shares].map((share, kind) => [share, kind]).filter(([share]) => share > 0.005).sort((a, b) => b[0] - a[0])
      .map(([share, kind]) => spoken(timelineKinds[kind]) + ' ' + percentText(Math.min(1, share)));
    tip.show(event.clientX, event.clientY, [near.length + ' things in ' + timeText(2 * pixel), ...lines, this.data.devices[place.device].name, 'zoom in to see each']);
  }

  describe(device, stream, track, i) {
    const {columns, data} = this, index = track.index[i], lines = [];
    const name = (place) => (place === null ? 'a device not shown' : data.devices[place].name);
    const span = `${timeText(track.end[i] - track.begin[i])}, from ${exactTime(track.begin[i])} to ${exactTime(track.end[i])}`;
    const linkText = (link) => (link === null ? 'inside the node' : `${data.links[link][0]} (${rateText(data.links[link][1])}, the slowest on the way)`);
    switch (track.source[i]) {
      case sources.compute:
      case sources.part: {
        const op = this.ops[columns.compute_op[index]], microbatch = columns.compute_microbatch[index];
        const part = track.source[i] === sources.part ? spoken(timelineKinds[track.kind[i]]) + ' of ' : '';
        lines.push(part + spoken(op.phase) + (microbatch < 0 ? '' : ` of microbatch ${microbatch}`) + (op.chunk ? `, chunk ${op.chunk}` : ''), span);
        if (!part) op.parts.forEach((length, place) => length && lines.push(`${spoken(partKinds[place])} ${timeText(length)}`));
        break;
      }
      case sources.bubble:
      case sources.wait: {
        const cause = data.phases[columns.wait_phase[index]][0], bubble = track.source[i] === sources.bubble;
        const peers = track.kind[i] === kindOf.peer_wait;
        lines.push(peers ? `slower GPUs have not entered the ${cause}` : bubble ? `bubble: the ${cause} has not been sent` : `waiting for the ${cause}, which is under way`, span);
        break;
      }
      case sources.send:
      case sources.receive: {
        const [from, to, link, rate] = data.channels[columns.message_channel[index]], bytes = data.sizes[columns.message_size[index]];
        const sent = track.source[i] === sources.send, seconds = columns.message_duration[index] / 1e9;
        lines.push(`${sent ? 'send' : 'receive'} ${data.phases[columns.message_phase[index]][0]} of microbatch ${columns.message_microbatch[index]}`, span,
          `${bytesText(bytes)} at ${rateText(bytes / seconds)} on average`, 'link: ' + linkText(link) + (link === null && rate ? `, ${rateText(rate)}` : ''),
          sent ? 'to ' + name(to) : 'from ' + name(from));
        if (columns.message_queued[index] > 0) lines.push('had been ready for ' + timeText(columns.message_queued[index]));
        break;
      }
      default: {
        const [, gpus, bytes, , link] = data.groups[columns.collective_group[index]];
        lines.push(`${data.phases[columns.collective_phase[index]][0]} of ${gpus} GPUs`, span, `${bytesText(bytes)} sent by all of them`, 'link: ' + linkText(link));
      }
    }
    return [...lines, ...slackLine(this, track, i), data.devices[device].name + ' · ' + stream];
  }

  // Of the device that ends last: nanoseconds by line of the breakdown, from what is drawn on its compute row.
  sums() {
    const device = this.data.devices.findIndex((each) => each.ends_last), track = this.rows[device].compute.tracks[0], sums = {};
    const add = (line, length) => { sums[line] = (sums[line] || 0) + length; };
    for (let i = 0; i < track.count; ++i) {
      if (track.source[i] === sources.compute) this.ops[this.columns.compute_op[track.index[i]]].parts.forEach((length, part) => add(partKinds[part], length));
      else add(timelineKinds[track.kind[i]], track.end[i] - track.begin[i]);
    }
    return {sums, count: track.count};
  }
}

const axisText = (time, step) => {
  const [size, name] = step >= 1e8 ? [1e9, ' s'] : step >= 1e5 ? [1e6, ' ms'] : step >= 1e2 ? [1e3, ' us'] : [1, ' ns'];
  return (time / size).toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / size) - 1e-9)))) + name;
};
const exactTime = (time) => (time >= 1e9 ? (time / 1e9).toFixed(6) + ' s' : (time / 1e6).toFixed(6) + ' ms');

// What is checked of a timeline against the report of its run.
const checkTimeline = (view, report) => {
  const data = view.data;
  checks.push(() => {
    const {sums, count} = view.sums(), rounding = (count * 8 + 10) / 1e9;
    for (const [line, seconds] of Object.entries(report.breakdown_s))
      if (Math.abs((sums[line] || 0) / 1e9 - seconds) > rounding) return `timeline: ${line} adds up to ${(sums[line] || 0) / 1e9} s, not ${seconds} s`;
    return Math.abs(data.end / 1e9 - report.iteration_time_s) > 1e-8 ? 'timeline: another end than the iteration' : '';
  });
  checks.push(() => {
    view.drawNow();
    const pixels = view.canvas.getContext('2d').getImageData(0, 0, view.canvas.width, view.canvas.height).data, colours = new Set();
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3]) colours.add(pixels[i] * 65536 + pixels[i + 1] * 256 + pixels[i + 2]);
    return colours.size < 5 ? `timeline: only ${colours.size} colours are painted` : '';
  });
  checks.push(() => {
    const path = view.path.strip, gap = [...path.begin].findIndex((begin, i) => Math.abs(begin - (i ? path.end[i - 1] : 0)) > 2);
    if (gap >= 0 || Math.abs(path.end[path.count - 1] - data.end) > 2) return `timeline: the critical path has a gap at its step ${gap}`;
    const picture = () => view.canvas.toDataURL();
    view.drawNow();
    const before = picture();
    view.light.click();
    view.drawNow();
    const lit = picture(), on = view.rows.reduce((all, row) => all + row.compute.tracks[0].path.count, 0);
    const described = view.rows.flatMap((row) => { const track = row.compute.tracks[0].path; return track.count ? [view.describe(0, 'compute', track, 0).join('; ')] : []; });
    view.light.click();
    view.drawNow();
    if (!on || lit === before || picture() !== before) return 'timeline: the critical path does not light up';
    return described.every((text) => text.includes('on the critical path')) ? '' : 'timeline: nothing says what is on the critical path';
  });
  checks.push(() => {
    view.key(new KeyboardEvent('keydown', {key: 'ArrowDown'}));
    const row = view.words.textContent;
    view.key(new KeyboardEvent('keydown', {key: '.'}));
    const thing = view.words.textContent;
    return row.includes('compute') && thing.includes(', from ') && thing !== row ? '' : `timeline: the keyboard says "${row}", then "${thing}"`;
  });
  checks.push(() => {
    const row = view.rows.find((each) => each['comm:pipeline'].tracks[0].count);
    if (!row) return '';
    const lines = view.describe(row['comm:pipeline'].device, 'comm:pipeline', row['comm:pipeline'].tracks[0], 0).join('; ');
    return /^send activation of microbatch \d+; .* from .* to .*; [\d.]+ .?i?B at .*B\/s .*; link: .*; to ranks? /.test(lines) ? '' : 'timeline: a message says ' + lines;
  });
  checks.push(() => {
    const box = view.canvas.getBoundingClientRect(), tipBox = document.getElementById('tip');
    view.canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + view.gutter + 20, clientY: box.top + view.places[0].y + 3}));
    const text = tipBox.textContent;
    tip.hide();
    return text ? '' : 'timeline: nothing is said where the pointer rests';
  });
  checks.push(() => {
    const whole = [view.from, view.to];
    view.zoom(0.1);
    view.drawNow();
    const zoomed = view.to - view.from;
    view.show(...whole);
    view.drawNow();
    return Math.abs(zoomed / (whole[1] - whole[0]) - 0.1) > 1e-6 ? 'timeline: zooming does not zoom' : '';
  });
};

// The timelines of one or more runs, from `[{data, heading}…]`, on one axis of time.
const showTimelines = async (place, runs) => {
  if (typeof DecompressionStream === 'undefined') {
    place.replaceChildren(make('p', {}, 'This browser is too old to draw the timeline (it has no DecompressionStream).'));
    return null;
  }
  const group = new TimelineGroup(Math.max(...runs.map((run) => run.data.end)));
  if (runs.length > 1 && runs.some((run) => run.data.devices.length > 4))
    for (const stream of streams) if (stream !== 'compute' && stream !== 'comm:pipeline') group.hidden.add(stream);
  const columns = await Promise.all(runs.map((run) => unpack(run.data)));
  place.replaceChildren();
  runs.forEach((run, i) => {
    if (run.heading) place.append(make('p', {class: 'run-name'}, ...run.heading));
    new TimelineView(place, run.data, columns[i], group);
  });
  place.prepend(group.tools());
  place.append(group.legend(), group.words);
  const asked = /^#timeline=([\d.e-]+)\.\.([\d.e-]+)(,path)?$/.exec(location.hash);  // seconds
  if (asked) {
    group.show(Number(asked[1]) * 1e9, Number(asked[2]) * 1e9);
    group.light_up(Boolean(asked[3]));
    document.getElementById('timeline').scrollIntoView({behavior: 'instant'});
  }
  document.getElementById('show-path')?.addEventListener('click', () => group.light_up(true));
  for (const view of group.views) view.drawNow();
  addEventListener('beforeprint', () => { for (const view of group.views) { view.colours(); view.drawNow(); } });
  return group;
};

parts.push(async () => {
  const data = json('timeline-data'), place = document.getElementById('timeline-view');
  if (!data || !place) return;
  const group = await showTimelines(place, [{data}]);
  if (group) checkTimeline(group.views[0], json('report'));
});

// Runs that are compared: their timelines above each other.
parts.push(async () => {
  const place = document.getElementById('timelines');
  if (!place) return;
  const report = json('report'), runs = [];
  report.runs.forEach((run, i) => {
    const data = json('timeline-' + i);
    if (data) runs.push({data, report: run, heading: [make('b', {class: 'letter'}, place.dataset.letters.split(' ')[i]), report.labels[i] + ' · ',
      make('b', {}, timeText(run.iteration_time_s * 1e9))]});
  });
  if (!runs.length) return;
  const group = await showTimelines(place, runs);
  if (!group) return;
  group.views.forEach((view, i) => checkTimeline(view, runs[i].report));
  checks.push(() => {
    const drawn = group.views.filter((view) => view.places.some((row) => row.stream === 'compute'));
    return drawn.length === runs.length ? '' : `timeline: rows of ${drawn.length} runs of ${runs.length}`;
  });
  checks.push(() => {
    const end = Math.max(...runs.map((run) => run.data.end));
    group.views[0].show(end / 4, end / 2);
    const fault = group.views.find((view) => view.from !== end / 4 || view.to !== end / 2 || view.time(view.gutter) !== end / 4);
    group.show(0, end);
    return fault ? 'timeline: the runs do not move together' : '';
  });
});
