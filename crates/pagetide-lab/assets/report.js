// Draws the charts of a page with uPlot, and makes them one: cursor and zoom of charts over the same axis go together.
//
// The data is the JSON in #data (see src/html/data.rs). Without this script the page has its text and tables.
// Invariants: nothing is fetched or kept; a figure that fails leaves the others alone; a theme, a width or a printer
// changes how charts look, never what they say.
'use strict';
(() => {
  const began = performance.now();
  const root = document.documentElement;
  const spoken = document.getElementById('spoken');
  const charts = []; // all that are on the page now

  // --- Numbers -------------------------------------------------------------------------------------------------

  const KIB = 1024;
  const sizes = (end) => ['B', 'KiB', 'MiB', 'GiB', 'TiB'].map((name, step) => [name + end, KIB ** step]);
  const LADDERS = {
    seconds: [['ns', 1e-9], ['us', 1e-6], ['ms', 1e-3], ['s', 1]],
    bytes: sizes(''),
    'bytes-per-second': sizes('/s'),
  };
  const SYMBOLS = { pages: 'pages', percent: '%', 'per-second': '/s' };

  // The unit in which values up to `most` are shown: its symbol, and the size of one.
  function unitOf(unit, most) {
    const ladder = LADDERS[unit];
    if (!ladder) return [SYMBOLS[unit] || '', 1];
    let step = ladder[0];
    for (const next of ladder) if (most >= next[1]) step = next;
    return step;
  }

  // Four digits, as the tables have.
  function digits(value) {
    const size = Math.abs(value);
    if (size === 0) return '0';
    if (size < 0.001) return value.toPrecision(2);
    return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
  }

  // A value of an axis, in the unit of the axis or, if that is logarithmic, in one of its own.
  function shown(axis, value) {
    if (value == null) return '-';
    const [symbol, size] = axis.log ? unitOf(axis.unit, Math.abs(value)) : [axis.symbol, 1];
    return digits(value / size) + (symbol ? '\u00a0' + symbol : '');
  }

  function tick(axis, value, step) {
    if (value == null) return '';
    if (!axis.log) return value.toFixed(Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
    const [symbol, size] = unitOf(axis.unit, value * 1.000001);
    return Number((value / size).toPrecision(3)) + (symbol ? ' ' + symbol : '');
  }

  // --- Data ----------------------------------------------------------------------------------------------------

  // An array of the document, in the unit of its axis.
  function column(arrays, number, length, axis) {
    const array = arrays[number];
    const value = (raw) => {
      if (raw == null) return null;
      const value = raw * axis.factor;
      return axis.log ? (value > 0 ? value : null) : value / axis.size;
    };
    if (!Array.isArray(array)) return new Array(length).fill(value(array));
    return array.map(value);
  }

  function most(arrays, numbers, axis) {
    let found = 0;
    for (const number of numbers) {
      const array = arrays[number];
      for (const raw of Array.isArray(array) ? array : [array]) {
        if (raw != null && raw * axis.factor > found) found = raw * axis.factor;
      }
    }
    return found;
  }

  const ends = (line) => [line.y, line.least, line.most].filter((number) => number != null);

  // Unpacks a figure: columns of numbers for arrays' numbers, and one range a choice and axis.
  function unpack(figure, arrays) {
    const panels = figure.choices.flatMap((choice) => choice.panels);
    const axes = [[figure.x, panels.map((panel) => panel.x)],
      [figure.y, panels.flatMap((panel) => panel.lines.flatMap(ends))]];
    for (const [axis, numbers] of axes) {
      [axis.symbol, axis.size] = axis.log ? ['', 1] : unitOf(axis.unit, most(arrays, numbers, axis));
    }
    for (const panel of panels) {
      const of = (number, axis) => (number == null ? null : column(arrays, number, panel.length, axis));
      panel.x = of(panel.x, figure.x);
      for (const line of panel.lines) {
        for (const key of ['y', 'least', 'most']) line[key] = of(line[key], figure.y);
      }
      for (const mark of panel.marks) mark.x = mark.x * figure.x.factor / figure.x.size;
    }
    for (const choice of figure.choices) {
      if (choice.clip != null) choice.clip = choice.clip * figure.y.factor / figure.y.size;
      const all = choice.panels.flatMap((panel) => panel.lines.flatMap((line) => ends(line).flat()));
      choice.range = rangeOf(all, figure.y, 0);
    }
    figure.range = rangeOf(panels.flatMap((panel) => panel.x), figure.x, null);
  }

  // From the least to the most; a linear axis of amounts begins at `from`, a logarithmic one at a power of ten.
  function rangeOf(values, axis, from) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value == null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return axis.log ? [1, 10] : [0, 1];
    if (axis.log) {
      const range = [10 ** Math.floor(Math.log10(low) + 1e-9), 10 ** Math.ceil(Math.log10(high) - 1e-9)];
      return range[0] < range[1] ? range : [range[0], range[0] * 10];
    }
    if (from == null) return low < high ? [Math.min(low, low > 0 && low < high / 4 ? 0 : low), high] : [low - 0.5, high + 0.5];
    low = Math.min(low, from);
    return low < high ? [low, high + (high - low) * 0.04] : [low, low + 1];
  }

  // --- Looks ---------------------------------------------------------------------------------------------------

  let colours = new Map();
  const colour = (name) => {
    if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue('--' + name).trim());
    return colours.get(name);
  };
  const DASHES = { solid: [], long: [9, 4], dots: [2, 3], 'long-dot': [9, 3, 2, 3] };
  const FORMS = 4;

  // Markers: round, square, triangle, diamond.
  function marker(path, form, x, y, r) {
    if (form === 0) {
      path.moveTo(x + r, y);
      path.arc(x, y, r, 0, 2 * Math.PI);
      return;
    }
    const corners = [[[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]], [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]][form - 1];
    corners.forEach(([dx, dy], at) => path[at ? 'lineTo' : 'moveTo'](x + dx * r * 0.9, y + dy * r * 0.9));
    path.closePath();
  }

  function points(line) {
    return (u, series, first, last) => {
      const path = new Path2D();
      for (let at = first; at <= last; at++) {
        const value = u.data[series][at];
        if (value == null) continue;
        marker(path, line.colour % FORMS, u.valToPos(u.data[0][at], 'x', true), u.valToPos(value, 'y', true), 4 * uPlot.pxRatio);
      }
      return { fill: path, stroke: path, clip: null, flags: 3 };
    };
  }

  function seriesOf(line) {
    const stroke = () => colour('c' + line.colour);
    const { linear, stepped } = uPlot.paths;
    const paths = { before: stepped({ align: -1 }), after: stepped({ align: 1 }), points: () => null }[line.shape] || linear();
    const marked = line.shape === 'points' || line.shape === 'line-and-points';
    return {
      stroke, width: 1.75, dash: DASHES[line.dash], paths,
      points: marked ? { show: true, paths: points(line), fill: stroke, stroke, size: 8, width: 1 } : { show: false },
    };
  }

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function swatch(line) {
    const drawing = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    drawing.setAttribute('class', 'swatch c' + line.colour);
    drawing.setAttribute('aria-hidden', 'true');
    const stroke = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    stroke.setAttribute('d', 'M0 5H28');
    stroke.setAttribute('stroke-dasharray', DASHES[line.dash].join(' '));
    drawing.append(stroke);
    return drawing;
  }

  // --- Charts over one axis ------------------------------------------------------------------------------------

  const groups = new Map();

  function groupOf(figure) {
    const key = figure.over || figure.id;
    if (!groups.has(key)) groups.set(key, { axis: figure.x, full: figure.range.slice(), now: figure.range.slice(), charts: new Set(), at: null });
    return groups.get(key);
  }

  function zoom(group, from, to) {
    const [low, high] = group.full;
    const span = Math.max(to - from, (high - low) * 1e-6);
    if (group.axis.log) group.now = [Math.max(from, low), Math.min(to, high)];
    else {
      from = Math.min(Math.max(from, low), high - span);
      group.now = span >= high - low ? group.full.slice() : [Math.max(low, from), Math.min(high, from + span)];
    }
    if (!(group.now[0] < group.now[1])) group.now = group.full.slice();
    for (const chart of group.charts) chart.u.setScale('x', { min: group.now[0], max: group.now[1] });
    for (const button of group.resets || []) button.disabled = group.now.every((end, at) => end === group.full[at]);
  }

  // In or out, about the cursor or the middle.
  function zoomBy(group, factor) {
    const to = (value) => (group.axis.log ? Math.log10(value) : value);
    const back = (value) => (group.axis.log ? 10 ** value : value);
    const [low, high] = group.now.map(to);
    const about = group.at == null ? (low + high) / 2 : to(group.at);
    zoom(group, back(about - (about - low) * factor), back(about + (high - about) * factor));
  }

  // Puts the cursors of all charts of a group to `x`; of `null`, takes them away.
  function pointAt(group, x, from) {
    group.at = x;
    for (const chart of group.charts) {
      if (chart !== from) {
        const left = x == null ? -10 : chart.u.valToPos(x, 'x');
        chart.u.setCursor({ left, top: x == null ? -10 : 1 }, false);
      }
      read(chart);
    }
  }

  // The place of a chart that the cursor of its group is at.
  function placeOf(chart) {
    const { group, panel, u } = chart;
    const beyond = group.at == null || !panel.x.length || group.at > panel.x[panel.x.length - 1] * 1.000001;
    return beyond ? null : u.valToIdx(group.at);
  }

  const valueAt = (figure, line, at) => {
    const text = shown(figure.y, line.y[at]);
    if (!line.least || line.least[at] == null || line.least[at] === line.most[at]) return text;
    return `${text} (${digits(line.least[at])} to ${digits(line.most[at])})`;
  };

  function read(chart) {
    const at = placeOf(chart);
    chart.time.textContent = at == null ? '' : 'at ' + shown(chart.figure.x, chart.panel.x[at]);
    chart.outputs.forEach((output, number) => {
      output.textContent = at == null ? '' : valueAt(chart.figure, chart.panel.lines[number], at);
    });
  }

  function say(chart) {
    const at = placeOf(chart);
    if (at == null) return;
    const { figure, panel } = chart;
    const values = panel.lines.map((line) => `${line.name} ${valueAt(figure, line, at)}`);
    spoken.textContent = `${panel.name} at ${shown(figure.x, panel.x[at])}: ${values.join(', ')}`;
  }

  function onKey(chart, event) {
    const { group, panel } = chart;
    if (event.ctrlKey || event.altKey || event.metaKey || !panel.x.length) return;
    const last = panel.x.length - 1;
    const [low, high] = [chart.u.valToIdx(group.now[0]), chart.u.valToIdx(group.now[1])];
    const at = placeOf(chart);
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowRight: at == null ? low : at + step, ArrowLeft: at == null ? high : at - step, Home: low, End: high };
    if (event.key in moves) {
      const to = Math.min(last, Math.max(0, moves[event.key]));
      pointAt(group, panel.x[to], null);
      say(chart);
    } else if (event.key === '+' || event.key === '=') zoomBy(group, 0.5);
    else if (event.key === '-') zoomBy(group, 2);
    else if (event.key === '0' || event.key === 'Escape') zoom(group, ...group.full);
    else return;
    event.preventDefault();
  }

  // --- A chart -------------------------------------------------------------------------------------------------

  // What a chart says to those who do not see it.
  function summary(figure, panel) {
    const lines = panel.lines.map((line) => {
      let [low, high] = [null, null];
      line.y.forEach((value, at) => {
        if (value == null) return;
        if (low == null || value < line.y[low]) low = at;
        if (high == null || value > line.y[high]) high = at;
      });
      if (low == null) return `${line.name}: no values`;
      if (line.y[low] === line.y[high]) return `${line.name}: ${shown(figure.y, line.y[low])} throughout`;
      const at = (place) => `${shown(figure.y, line.y[place])} at ${shown(figure.x, panel.x[place])}`;
      return `${line.name}: least ${at(low)}, most ${at(high)}`;
    });
    return `Chart, ${[figure.title, panel.name].filter(Boolean).join(', ')}. ${lines.join('; ')}. Arrow keys read values.`;
  }

  function tableOf(figure, panel) {
    const head = element('tr', null, element('th', { scope: 'col' }, figure.x.label));
    for (const line of panel.lines) head.append(element('th', { scope: 'col' }, line.name));
    const body = element('tbody');
    panel.x.forEach((x, at) => {
      const row = element('tr', null, element('th', { scope: 'row' }, shown(figure.x, x)));
      for (const line of panel.lines) row.append(element('td', { class: 'number' }, shown(figure.y, line.y[at])));
      body.append(row);
    });
    const table = element('table', null, element('thead', null, head), body);
    return element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Values' }, table);
  }

  function axisOf(axis, isX) {
    const unit = axis.symbol ? `, ${axis.symbol}` : '';
    const ink = () => colour('soft');
    return {
      label: axis.label + unit, labelSize: 18, labelGap: 0, labelFont: '12px system-ui, sans-serif', font: '11px system-ui, sans-serif',
      stroke: ink, size: isX ? 30 : 56, gap: 4, space: isX ? 60 : 28,
      grid: { stroke: () => colour('grid'), width: 1 }, ticks: { stroke: () => colour('grid'), width: 1, size: 4 },
      values: (u, splits, at, space, step) => splits.map((value) => tick(axis, value, step)),
    };
  }

  function drawMarks(chart) {
    const { u, panel } = chart;
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = `${11 * uPlot.pxRatio}px system-ui, sans-serif`;
    ctx.strokeStyle = ctx.fillStyle = colour('ink');
    ctx.lineWidth = uPlot.pxRatio;
    ctx.setLineDash([4 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
    for (const mark of panel.marks) {
      if (mark.x < u.scales.x.min || mark.x > u.scales.x.max) continue;
      const x = u.valToPos(mark.x, 'x', true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const isRight = x > bbox.left + bbox.width * 0.6;
      ctx.textAlign = isRight ? 'right' : 'left';
      ctx.fillText(mark.text, x + (isRight ? -4 : 4) * uPlot.pxRatio, bbox.top + 12 * uPlot.pxRatio);
    }
    ctx.restore();
  }

  function draw(figure, choice, panel, view) {
    const group = groupOf(figure);
    const plot = element('div', { class: 'plot', tabindex: '0', role: 'group', 'aria-label': summary(figure, panel) });
    const time = element('span', { class: 'time' });
    const legend = element('ul', { class: 'legend' });
    const outputs = panel.lines.map((line) => {
      const output = element('span', { class: 'read' });
      legend.append(element('li', null, swatch(line), line.name + ' ', output));
      return output;
    });
    const details = element('details', null, element('summary', null, 'Values as a table'));
    details.addEventListener('toggle', () => {
      if (details.open && details.children.length === 1) details.append(tableOf(figure, panel));
    });
    const box = element('div', { class: 'panel' }, element('h4', null, panel.name || '\u00a0', time), plot, legend, details);
    view.append(box);

    const series = [{}];
    const data = [panel.x];
    const bands = [];
    for (const line of panel.lines) {
      if (line.least) {
        const hidden = { ...seriesOf({ ...line, shape: 'line' }), stroke: 'transparent', width: 0 };
        bands.push({ series: [series.length, series.length + 1], fill: () => colour('c' + line.colour) + '2e' });
        series.push(hidden, { ...hidden });
        data.push(line.most, line.least);
      }
      series.push(seriesOf(line));
      data.push(line.y);
    }
    const chart = { figure, choice, panel, group, plot, time, outputs, u: null };
    const distr = (axis) => (axis.log ? 3 : 1);
    chart.u = new uPlot({
      width: Math.max(plot.clientWidth, 120), height: heightOf(choice), legend: { show: false }, bands, series,
      scales: {
        x: { time: false, distr: distr(figure.x), range: () => group.now },
        y: { distr: distr(figure.y), range: () => rangeOfChoice(choice) },
      },
      axes: [axisOf(figure.x, true), axisOf(figure.y, false)],
      padding: [8, 12, 0, 0],
      cursor: {
        y: false, drag: { x: true, y: false, setScale: false, dist: 4 }, points: { size: 6 },
        bind: { dblclick: () => () => { zoom(group, ...group.full); return null; } },
      },
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const { left, width } = u.select;
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          zoom(group, u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
        }],
        setCursor: [(u) => {
          const { left } = u.cursor;
          if (chart.u) pointAt(group, left == null || left < 0 ? null : u.posToVal(left, 'x'), chart);
        }],
        draw: [() => { chart.drawn = true; if (chart.u) drawMarks(chart); }],
      },
    }, data, plot);
    plot.addEventListener('keydown', (event) => onKey(chart, event));
    group.charts.add(chart);
    charts.push(chart);
    return chart;
  }

  const heightOf = (choice) => (choice.panels.length > 1 ? 200 : 260);
  const rangeOfChoice = (choice) => {
    const [low, high] = choice.range;
    return choice.clip != null && !choice.whole && choice.clip < high ? [low, choice.clip] : [low, high];
  };

  // --- A figure ------------------------------------------------------------------------------------------------

  function zoomBar(group) {
    const button = (text, label, act) => {
      const made = element('button', { type: 'button', 'aria-label': label }, text);
      made.addEventListener('click', act);
      return made;
    };
    const reset = button('Reset', 'Reset zoom', () => zoom(group, ...group.full));
    reset.disabled = true;
    group.resets = [reset];
    return element('div', { class: 'zoom' },
      element('span', { class: 'hint' }, 'Drag in a chart to zoom. '),
      button('\u2212', 'Zoom out', () => zoomBy(group, 2)), button('+', 'Zoom in', () => zoomBy(group, 0.5)), reset);
  }

  function show(figure, place) {
    const group = groupOf(figure);
    group.full = [Math.min(group.full[0], figure.range[0]), Math.max(group.full[1], figure.range[1])];
    group.now = group.full.slice();
    place.replaceChildren();
    const bar = element('div', { class: 'bar-of-figure' });
    const view = element('div', { class: 'panels' });
    if (!group.resets) {
      const zooms = zoomBar(group);
      if (figure.over) place.closest('figure').before(zooms);
      else bar.append(zooms);
    }
    const put = (choice) => {
      for (const chart of charts.filter((chart) => chart.figure === figure)) {
        group.charts.delete(chart);
        charts.splice(charts.indexOf(chart), 1);
        chart.u.destroy();
      }
      view.replaceChildren();
      view.classList.toggle('several', choice.panels.length > 1);
      // Two rows of two rather than one of three and a rest.
      view.style.setProperty('--n', choice.panels.length === 4 ? 2 : Math.min(choice.panels.length, 3));
      for (const panel of choice.panels) draw(figure, choice, panel, view);
      whole.hidden = choice.clip == null || choice.clip >= choice.range[1];
    };
    const check = element('input', { type: 'checkbox' });
    const whole = element('label', null, check, ' the whole scale');
    let now = figure.choices[0];
    check.addEventListener('change', () => {
      now.whole = check.checked;
      put(now);
    });
    if (figure.choices.length > 1) {
      const list = element('select', { 'aria-label': 'Choose' });
      figure.choices.forEach((choice, at) => list.append(element('option', { value: String(at) }, choice.name)));
      list.addEventListener('change', () => {
        now = figure.choices[Number(list.value)];
        now.whole = check.checked;
        put(now);
      });
      bar.append(element('label', null, 'Shown: ', list));
    }
    bar.append(whole);
    place.append(bar, view);
    if (now) put(now);
  }

  // --- The page ------------------------------------------------------------------------------------------------

  function redraw() {
    colours = new Map();
    for (const chart of charts) chart.u.redraw(false);
  }

  function fit(widthOf) {
    for (const chart of charts) {
      const width = Math.max(widthOf(chart), 120);
      if (width !== chart.u.width) chart.u.setSize({ width, height: heightOf(chart.choice) });
    }
  }

  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme || (dark.matches ? 'dark' : 'light')) === 'dark';
  const theme = document.querySelector('button.theme');
  theme.hidden = false;
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    redraw();
  });
  dark.addEventListener('change', redraw);
  if (location.hash === '#dark' || location.hash === '#light') root.dataset.theme = location.hash.slice(1);

  // Paper is white, and as wide as two charts.
  let before = null;
  addEventListener('beforeprint', () => {
    before = root.dataset.theme || '';
    root.dataset.theme = 'light';
    fit((chart) => (chart.choice.panels.length > 1 ? 322 : 660));
    redraw();
  });
  addEventListener('afterprint', () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    fit((chart) => chart.plot.clientWidth);
    redraw();
  });
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width) return;
    width = innerWidth;
    fit((chart) => chart.plot.clientWidth);
  });

  for (const button of document.querySelectorAll('button[data-copy]')) {
    const text = document.getElementById(button.dataset.copy);
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        // Browsers that keep the clipboard from files let what is selected be copied.
        getSelection().selectAllChildren(text);
        document.execCommand('copy');
      }
      button.textContent = 'Copied';
    });
  }

  const data = document.getElementById('data');
  if (data) {
    const { arrays, figures } = JSON.parse(data.textContent);
    for (const figure of figures) {
      const place = document.querySelector(`[data-figure="${CSS.escape(figure.id)}"]`);
      try {
        unpack(figure, arrays);
        groupOf(figure).full = groupOf(figure).full.map((end, at) => Math[at ? 'max' : 'min'](end, figure.range[at]));
      } catch (error) {
        figure.failed = error;
      }
      figure.place = place;
    }
    for (const figure of figures) {
      try {
        if (figure.failed) throw figure.failed;
        show(figure, figure.place);
      } catch (error) {
        root.dataset.error = String(error && error.message);
        figure.place.replaceChildren('This chart could not be drawn: ' + error);
      }
    }
  }
  // uPlot draws in microtasks, which come before this one.
  queueMicrotask(() => {
    root.dataset.drawn = String(charts.filter((chart) => chart.drawn).length);
    root.dataset.charts = String(charts.length);
    root.dataset.ms = (performance.now() - began).toFixed(0);
  });
})();
