'use strict';
(() => {
const $ = (s, e = document) => [...e.querySelectorAll(s)];
const NS = 'http://www.w3.org/2000/svg';
const L = 58, R = 576, T = 14, B = 290;
const make = (name, attributes = {}, text = '') => {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.textContent = text;
  return e;
};
const draw = (name, attributes, text) => {
  const e = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};
const button = (text, act, pressed) => {
  const b = make('button', { type: 'button' }, text);
  if (pressed !== undefined) b.setAttribute('aria-pressed', pressed);
  b.addEventListener('click', () => act(b));
  return b;
};

// Tools of the whole page: theme, intervals, tables.
const root = document.documentElement, tools = document.getElementById('tools');
tools.hidden = false;
tools.className = 'buttons';
const dark = () => root.dataset.theme
  ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
tools.append(
  button('Dark or light', () => { root.dataset.theme = dark() ? 'light' : 'dark'; }),
  button('Intervals', (b) => {
    const off = document.body.classList.toggle('nobands');
    b.setAttribute('aria-pressed', !off);
  }, true),
  button('Open all tables', (b) => {
    const open = b.textContent.startsWith('Open');
    for (const d of $('main details')) d.open = open;
    b.textContent = open ? 'Close all tables' : 'Open all tables';
  }));
addEventListener('beforeprint', () => { for (const d of $('figure details')) d.open = false; });

// Tables: a click on a head sorts by it.
const key = (cell) => {
  if (!cell || cell.textContent === '') return null;
  if (cell.dataset.v !== undefined) return +cell.dataset.v;
  const n = parseFloat(cell.textContent);
  return cell.classList.contains('n') && !Number.isNaN(n) ? n : cell.textContent;
};
for (const table of $('table')) {
  $('thead th', table).forEach((th, column) => {
    const b = button(th.textContent, () => {
      const up = th.getAttribute('aria-sort') === 'descending';
      for (const other of $('th', table)) other.removeAttribute('aria-sort');
      th.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[column]), row]);
      rows.sort(([a], [c]) => {
        if (a === null || c === null) return (a === null) - (c === null);
        const order = typeof a === 'number' && typeof c === 'number'
          ? a - c : String(a).localeCompare(String(c));
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
    th.textContent = '';
    th.append(b);
  });
}

// Plots: their figures are those of the table below.
const FIGURES = /^(-?[\d.]+)(?: \[(-?[\d.]+), (-?[\d.]+)\])?$/;
const read = (table, lines) => $('thead th', table).slice(1, 1 + lines).map((th, n) => ({
  name: th.textContent,
  points: [...table.tBodies[0].rows].flatMap((row) => {
    const m = FIGURES.exec(row.cells[n + 1].textContent);
    if (!m) return [];
    const v = +m[1];
    return [{ x: +row.cells[0].dataset.v, xs: row.cells[0].textContent, v, lo: +(m[2] ?? v), hi: +(m[3] ?? v),
      text: m[0] }];
  }).sort((a, b) => a.x - b.x),
}));
const linear = (lo, hi) => {
  const raw = (hi - lo) / 6, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const out = [];
  for (let n = Math.ceil(lo / step - 1e-9); n * step <= hi * (1 + 1e-9); n++) out.push(n * step);
  return out;
};
const decades = (lo, hi) => {
  const out = [];
  for (let n = Math.floor(Math.log10(lo)); 10 ** n <= hi; n++) {
    for (const m of Math.log10(hi / lo) < 3 ? [1, 2, 5] : [1]) {
      const v = m * 10 ** n;
      if (v >= lo * 0.999 && v <= hi * 1.001) out.push(v);
    }
  }
  return out;
};
// A range of x: by dragging, by two sliders, or by Shift with the arrow keys. The table below shows
// its rows alone, and a line says what they amount to.
const brush = ({ svg, figure, table, bar, series, xs, xAt, nearest }) => {
  const HINT = 'Select a time: drag across the plot, move the sliders, or hold Shift with the arrow keys.';
  const unit = svg.dataset.brush, last = xs.length - 1, rows = [...table.tBodies[0].rows];
  const shade = draw('rect', { class: 'brush', y: T, width: 0, height: B - T });
  const told = make('p', { class: 'selected', role: 'status' }, HINT);
  const slider = (name, value) => make('input', { type: 'range', min: 0, max: last, value, 'aria-label': name });
  const ends = [slider('Begin of the time shown', 0), slider('End of the time shown', last)];
  svg.prepend(shade);
  const name = (x) => `${+x.toPrecision(4)} s`;
  const edge = (n) => (n < 0 ? L : n >= last ? R : (xAt(xs[n]) + xAt(xs[n + 1])) / 2);
  const mean = (points, k) => points.reduce((sum, p) => sum + p[k], 0) / points.length;
  const select = (a, b) => {
    const [lo, hi] = [Math.min(a, b), Math.max(a, b)], whole = lo <= 0 && hi >= last;
    const within = (x) => x >= xs[lo] && x <= xs[hi];
    [lo, hi].forEach((n, k) => { ends[k].value = n; ends[k].setAttribute('aria-valuetext', name(xs[n])); });
    shade.setAttribute('x', edge(lo - 1));
    shade.setAttribute('width', whole ? 0 : edge(hi) - edge(lo - 1));
    const words = {};
    for (const row of rows) {
      row.hidden = !within(+row.cells[0].dataset.v);
      const word = row.cells.length > series.length + 1 ? row.cells[row.cells.length - 1].textContent : '';
      if (!row.hidden && word) words[word] = (words[word] || 0) + 1;
    }
    const most = Object.entries(words).sort((p, q) => q[1] - p[1])[0];
    const means = series.map((s) => [s.name, s.points.filter((p) => within(p.x))]).filter(([, p]) => p.length)
      .map(([of, p]) => [of, ...['v', 'lo', 'hi'].map((k) => +mean(p, k).toPrecision(3))]);
    const said = means.map(([of, v, lo, hi]) => `${of} ${v} [${lo}, ${hi}] ${unit} in the mean`).join('; ');
    told.textContent = whole ? HINT
      : `Around ${name(xs[lo])} to ${name(xs[hi])}: ${said}${most ? `; mostly for ${most[0]}` : ''}`;
    if (!whole) table.closest('details').open = true;
  };
  const clear = () => select(0, last);
  ends.forEach((end) => end.addEventListener('input', () => select(+ends[0].value, +ends[1].value)));
  bar.append(...ends, button('Whole run', clear));
  figure.querySelector('.scroll').after(told);
  let from = -1, anchor = -1;
  svg.addEventListener('pointerdown', (e) => {
    // A finger moves the page: it has the sliders.
    if (e.button || e.pointerType === 'touch') return;
    from = nearest(e);
    svg.setPointerCapture(e.pointerId);
  });
  svg.addEventListener('pointermove', (e) => { if (from >= 0) select(from, nearest(e)); });
  svg.addEventListener('pointerup', (e) => { if (from >= 0 && from === nearest(e)) clear(); from = -1; });
  svg.addEventListener('pointercancel', () => { from = -1; });
  return {
    clear,
    key: (before, now, shift) => {
      if (shift && anchor < 0) anchor = before;
      if (shift) select(anchor, now); else anchor = -1;
    },
  };
};
for (const svg of $('svg.plot')) {
  const figure = svg.closest('figure'), table = figure.querySelector('table.points');
  if (!table) continue;
  const series = read(table, $('.series', svg).length), data = svg.dataset;
  const [x0, x1] = [+data.x0, +data.x1], all = series.flatMap((s) => s.points);
  if (!all.length) continue;
  const xAt = (x) => L + (R - L) * (+data.xlog ? Math.log(x / x0) / Math.log(x1 / x0) : (x - x0) / (x1 - x0));
  const levels = $('.level', svg).map((g) => +g.dataset.v);
  const range = (log) => {
    const hi = Math.max(...levels, ...all.map((p) => Math.max(Math.min(p.hi, p.v * 3), p.v)));
    const lo = Math.min(...levels, ...all.map((p) => Math.min(Math.max(p.lo, p.v / 3), p.v)));
    return log ? [lo * 0.9, hi * 1.12] : [Math.min(lo, 0), hi > 0 ? hi * 1.06 : 1];
  };
  let log = !!+data.ylog, yAt;
  const scale = () => {
    const [lo, hi] = range(log);
    yAt = (v) => {
      const t = log ? Math.log(Math.max(v, lo / 1000) / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo);
      return B + Math.min(Math.max(t, -0.02), 1.02) * (T - B);
    };
    return [lo, hi];
  };
  scale();
  const redraw = () => {
    const [lo, hi] = scale(), grid = svg.querySelector('.yg');
    grid.replaceChildren(...(log ? decades : linear)(lo, hi).flatMap((v) => [
      draw('path', { d: `M${L} ${yAt(v)}H${R}` }),
      draw('text', { x: L - 5, y: yAt(v) + 4, 'text-anchor': 'end' }, String(+v.toPrecision(4))),
    ]));
    $('.series', svg).forEach((g, n) => {
      const points = series[n].points, at = (k) => points.map((p) => `${xAt(p.x).toFixed(1)} ${yAt(p[k]).toFixed(1)}`);
      g.querySelector('.line').setAttribute('d', 'M' + at('v').join('L'));
      g.querySelector('.band').setAttribute('d', 'M' + at('hi').join('L') + 'L' + at('lo').reverse().join('L') + 'Z');
      g.querySelector('.dots').replaceChildren();
    });
    for (const g of $('.level', svg)) g.setAttribute('transform', `translate(0 ${yAt(+g.dataset.v) - g.dataset.y})`);
  };
  const bar = make('div', { class: 'buttons' });
  if (all.every((p) => p.v > 0)) {
    bar.append(button('Logarithmic', (b) => { log = !log; b.setAttribute('aria-pressed', log); redraw(); }, log));
  }
  figure.querySelector('.scroll').before(bar);

  // The crosshair: by pointer, or by arrow keys once the plot has the focus.
  const xs = [...new Set(all.map((p) => p.x))].sort((a, b) => a - b);
  const cross = draw('path', { class: 'cross' }), tip = make('div', { class: 'tip', role: 'status' });
  tip.hidden = true;
  svg.append(cross);
  figure.append(tip);
  let at = -1;
  const show = (n) => {
    at = Math.min(Math.max(n, 0), xs.length - 1);
    const x = xs[at], box = svg.getBoundingClientRect(), outer = figure.getBoundingClientRect();
    cross.setAttribute('d', `M${xAt(x)} ${T}V${B}`);
    const here = series.flatMap((s) => s.points.filter((p) => p.x === x).map((p) => [s.name, p]));
    tip.replaceChildren(make('strong', {}, here.length ? here[0][1].xs : ''),
      ...here.map(([name, p]) => make('div', {}, `${name}: ${p.text}`)));
    tip.hidden = false;
    const left = box.left - outer.left + xAt(x) / 600 * box.width;
    tip.style.left = `${Math.max(0, Math.min(left + 12, outer.width - tip.offsetWidth))}px`;
    tip.style.top = `${box.top - outer.top + 16}px`;
  };
  const hide = () => { tip.hidden = true; cross.removeAttribute('d'); };
  const nearest = (e) => {
    const box = svg.getBoundingClientRect(), px = (e.clientX - box.left) / box.width * 600;
    let best = 0;
    xs.forEach((x, n) => { if (Math.abs(xAt(x) - px) < Math.abs(xAt(xs[best]) - px)) best = n; });
    return best;
  };
  const selection = data.brush === undefined ? null
    : brush({ svg, figure, table, bar, series, xs, xAt, nearest });
  svg.addEventListener('pointermove', (e) => show(nearest(e)));
  svg.addEventListener('pointerleave', hide);
  const region = svg.parentElement;
  region.addEventListener('keydown', (e) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[e.key];
    if (step !== undefined) {
      const before = Math.max(at, 0);
      e.preventDefault();
      show(at + step);
      if (selection) selection.key(before, at, e.shiftKey);
    }
    if (e.key === 'Escape') { hide(); if (selection) selection.clear(); }
  });
  region.addEventListener('blur', hide);
}

// Flame graphs: a click, or Enter, zooms into a frame.
for (const svg of $('svg.flame')) {
  const frames = $('.f', svg).map((g) => {
    const rect = g.querySelector('rect');
    g.setAttribute('tabindex', '-1');
    return { g, rect, x: +rect.getAttribute('x'), w: +rect.getAttribute('width'), y: +rect.getAttribute('y'),
      x0: +rect.getAttribute('x'), w0: +rect.getAttribute('width') + 0.6,
      name: g.querySelector('title').textContent.replace(/: [\d.]+% \(\d+ \w+\)(, [-+][\d.]+ points)?$/, '') };
  });
  const zoom = (to) => {
    const whole = !to || to.w > 990;
    const [x0, w0] = whole ? [0, 1000] : [to.x, to.w + 0.6];
    for (const f of frames) {
      const inside = f.x >= x0 - 0.05 && f.x + f.w <= x0 + w0 + 0.05, around = f.x <= x0 + 0.05 && f.x + f.w >= x0 + w0 - 0.7;
      f.g.setAttribute('display', inside || around ? 'inline' : 'none');
      const x = inside ? (f.x - x0) / w0 * 1000 : 0, w = inside ? Math.max(f.w / w0 * 1000, 0.4) : 999.4;
      f.rect.setAttribute('x', x);
      f.rect.setAttribute('width', w);
      f.g.classList.toggle('dim', around && !whole && f.y > to.y);
      let text = f.g.querySelector('text');
      if (!text) { text = draw('text', { y: f.y + 13 }); f.g.append(text); }
      const letters = Math.floor((w - 6) / 6.9);
      text.setAttribute('x', x + 3);
      text.textContent = letters < 3 ? '' : f.name.length > letters ? f.name.slice(0, letters - 1) + '\u2026' : f.name;
    }
  };
  frames.sort((a, b) => b.y - a.y || a.x - b.x);
  if (frames.length) frames[0].g.setAttribute('tabindex', '0');
  frames.forEach((f, n) => {
    f.g.addEventListener('click', () => zoom(f));
    f.g.addEventListener('keydown', (e) => {
      const move = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[e.key];
      if (e.key === 'Enter') zoom(f);
      if (e.key === 'Escape') zoom();
      if (move) {
        e.preventDefault();
        for (let k = n + move; frames[k]; k += move) {
          if (frames[k].g.getAttribute('display') !== 'none') { frames[k].g.focus(); break; }
        }
      }
    });
  });
  const bar = make('div', { class: 'buttons' });
  // What is found is marked, and told with its share: a frame below another one counts once.
  const told = make('span', { role: 'status' });
  const search = make('input', { type: 'search', placeholder: 'Find functions', 'aria-label': 'Find functions' });
  search.addEventListener('input', () => {
    const text = search.value.toLowerCase(), outer = [];
    let count = 0;
    for (const f of frames) {
      const found = text !== '' && f.name.toLowerCase().includes(text);
      f.g.classList.toggle('found', found);
      if (!found) continue;
      count++;
      if (!outer.some((o) => f.x0 >= o.x0 - 0.05 && f.x0 + f.w0 <= o.x0 + o.w0 + 0.05)) outer.push(f);
    }
    const share = outer.reduce((sum, f) => sum + f.w0, 0) / 10;
    told.textContent = text ? `${count} frames, ${share.toFixed(1)}% of the samples` : '';
  });
  bar.append(button('Whole graph', () => zoom()), search, told);
  svg.closest('figure').querySelector('.scroll').before(bar);
}
})();
