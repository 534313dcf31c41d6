// Charts, drawn with uPlot. Those over one axis are one: cursor and zoom go together, by pointer and by keyboard.
//
// Invariant: the cursor is at one place of an axis (`group.at`), whichever chart it was moved in; the range that is
// shown is `group.now`, within `group.full`.
'use strict';
const Charts = (() => {
  const { digits, shown, tick } = Numbers;
  const root = document.documentElement;
  const spoken = document.getElementById('spoken');
  const all = new Set(); // all that are on the page now
  const LEAST_WIDTH = 120;
  const FONT = 'system-ui, sans-serif';

  // --- Looks ---------------------------------------------------------------------------------------------------

  let colours = new Map();
  const colour = (name) => {
    if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue('--' + name).trim());
    return colours.get(name);
  };
  const DASHES = { solid: [], long: [9, 4], dots: [3, 3], 'long-dot': [10, 3, 3, 3] };
  const CORNERS = [
    [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]],
    [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
  ];

  // Markers: round, square, triangle, diamond.
  function marker(path, form, x, y, r) {
    if (form === 0) {
      path.moveTo(x + r, y);
      path.arc(x, y, r, 0, 2 * Math.PI);
      return;
    }
    CORNERS[form - 1].forEach(([dx, dy], at) => path[at ? 'lineTo' : 'moveTo'](x + dx * r * 0.9, y + dy * r * 0.9));
    path.closePath();
  }

  function points(line) {
    return (u, series, first, last) => {
      const path = new Path2D();
      for (let at = first; at <= last; at++) {
        const value = u.data[series][at];
        if (value == null) continue;
        const [x, y] = [u.valToPos(u.data[0][at], 'x', true), u.valToPos(value, 'y', true)];
        marker(path, line.colour % (1 + CORNERS.length), x, y, 4 * uPlot.pxRatio);
      }
      return { fill: path, stroke: path, clip: null, flags: 3 };
    };
  }

  function seriesOf(line) {
    const stroke = () => colour('c' + line.colour);
    const { linear, stepped } = uPlot.paths;
    const shapes = { before: stepped({ align: -1 }), after: stepped({ align: 1 }), points: () => null };
    const paths = shapes[line.shape] || linear();
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
    if (!groups.has(key)) {
      groups.set(key, { axis: figure.x, full: figure.range, now: null, charts: new Set(), at: null });
    }
    const group = groups.get(key);
    const isWhole = !group.now || group.now === group.full;
    group.full = [Math.min(group.full[0], figure.range[0]), Math.max(group.full[1], figure.range[1])];
    if (isWhole) group.now = group.full;
    return group;
  }

  // An axis that is of no other figure goes from the least to the most of what is chosen.
  function across(figure, choice) {
    if (figure.over) return;
    const group = groupOf(figure);
    group.full = group.now = choice.across;
    for (const button of group.resets || []) button.disabled = true;
  }

  function zoom(group, from, to) {
    const [low, high] = group.full;
    const span = Math.max(to - from, (high - low) * 1e-6);
    if (group.axis.log) group.now = [Math.max(from, low), Math.min(to, high)];
    else {
      from = Math.min(Math.max(from, low), high - span);
      group.now = span >= high - low ? group.full : [Math.max(low, from), Math.min(high, from + span)];
    }
    if (!(group.now[0] < group.now[1]) || (group.now[0] <= low && group.now[1] >= high)) group.now = group.full;
    for (const chart of group.charts) chart.u.setScale('x', { min: group.now[0], max: group.now[1] });
    for (const button of group.resets || []) button.disabled = group.now === group.full;
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
    const [least, most] = [digits(line.least[at]), digits(line.most[at])];
    return least === most ? text : `${text} (${least} to ${most})`;
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
    const [right, left] = at == null ? [low, high] : [at + step, at - step];
    const moves = { ArrowRight: right, ArrowLeft: left, Home: low, End: high };
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

  // Description of a chart for screen readers.
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
      return `${line.name}: minimum ${at(low)}, maximum ${at(high)}`;
    });
    const title = [figure.title, panel.name].filter(Boolean).join(', ');
    return `Chart, ${title}. ${lines.join('; ')}. Arrow keys read values.`;
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
      label: axis.label + unit, labelSize: 18, labelGap: 0, labelFont: '12px ' + FONT, font: '11px ' + FONT,
      stroke: ink, size: isX ? 30 : 56, gap: 4, space: isX ? 60 : 28,
      grid: { stroke: () => colour('grid'), width: 1 }, ticks: { stroke: () => colour('grid'), width: 1, size: 4 },
      values: (u, splits, at, space, step) => splits.map((value) => tick(axis, value, step)),
      ...(axis.names.length ? words(axis) : {}),
    };
  }

  // Ticks of an axis of words: all, or every n-th if there is no room.
  function words(axis) {
    const longest = Math.max(...axis.names.map((name) => name.length));
    const every = (u) => {
      const room = (u.width - 80) / axis.names.length;
      return Math.max(1, Math.ceil((longest * 6.5 + 10) / Math.max(room, 1)));
    };
    return {
      splits: () => axis.names.map((name, at) => at + 1),
      values: (u, splits) => splits.map((place) => ((place - 1) % every(u) ? '' : Numbers.nameAt(axis, place))),
    };
  }

  function drawMarks(chart) {
    const { u, panel } = chart;
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = `${11 * uPlot.pxRatio}px ${FONT}`;
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
      // Above the chart, so that it covers nothing.
      ctx.fillText(mark.text, x, bbox.top - 6 * uPlot.pxRatio);
    }
    ctx.restore();
  }

  // Legend text of a line that is above the end of the scale, always or at times.
  function beyondClip(figure, choice, line) {
    const end = rangeOfChoice(choice)[1];
    const values = line.y.filter((value) => value != null);
    const nrBeyond = values.filter((value) => value > end).length;
    if (!nrBeyond) return '';
    return `(${nrBeyond < values.length ? 'at times ' : ''}above ${shown(figure.y, end)}, off the scale) `;
  }

  // Adds a chart with its legend to `view`. `draw` draws it when the width is known.
  function prepare(figure, choice, panel, view) {
    const group = groupOf(figure);
    const about = summary(figure, panel);
    const plot = element('div', { class: 'plot', tabindex: '0', role: 'group', 'aria-label': about });
    const time = element('span', { class: 'time' });
    const legend = element('ul', { class: 'legend' });
    const outputs = panel.lines.map((line) => {
      const output = element('span', { class: 'read' });
      const beyond = beyondClip(figure, choice, line);
      legend.append(element('li', null, swatch(line), line.name + ' ', beyond, output));
      return output;
    });
    const details = element('details', null, element('summary', null, 'Values as a table'));
    details.addEventListener('toggle', () => {
      if (details.open && details.children.length === 1) details.append(tableOf(figure, panel));
    });
    const head = element('h4', null, panel.name || '\u00a0', time);
    view.append(element('div', { class: 'panel' }, head, plot, legend, details));
    const chart = { figure, choice, panel, group, plot, time, outputs, u: null };
    plot.addEventListener('keydown', (event) => onKey(chart, event));
    return chart;
  }

  // Draws a prepared chart.
  function draw(chart, width) {
    const { figure, choice, panel, group, plot } = chart;
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
    const distr = (axis) => (axis.log ? 3 : 1);
    chart.u = new uPlot({
      width: Math.max(width, LEAST_WIDTH), height: heightOf(choice), legend: { show: false }, bands, series,
      scales: {
        x: { time: false, distr: distr(figure.x), log: Numbers.baseOf(figure.x), range: () => group.now },
        y: { distr: distr(figure.y), log: Numbers.baseOf(figure.y), range: () => rangeOfChoice(choice) },
      },
      axes: [axisOf(figure.x, true), axisOf(figure.y, false)],
      padding: [panel.marks.length ? 22 : 8, 30, 0, 0],
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
    group.charts.add(chart);
    all.add(chart);
  }

  // Takes the charts of a figure away.
  function remove(figure) {
    for (const chart of [...all].filter((chart) => chart.figure === figure)) {
      chart.group.charts.delete(chart);
      all.delete(chart);
      chart.u.destroy();
    }
  }

  // Panels side by side, if there is room: of four two, rather than three and a rest.
  const abreast = (choice) => (choice.panels.length === 4 ? 2 : Math.min(choice.panels.length, 3));
  const heightOf = (choice) => (choice.panels.length > 1 ? 200 : 260);
  const rangeOfChoice = (choice) => {
    const [low, high] = choice.range;
    return choice.clip != null && !choice.whole && choice.clip < high ? [low, choice.clip] : [low, high];
  };

  // With the colours that the page has now.
  function redraw() {
    colours = new Map();
    for (const chart of all) chart.u.redraw(false);
  }

  // To the widths that the page has now.
  function fit(widthOf) {
    const widths = [...all].map((chart) => [chart, Math.max(widthOf(chart), LEAST_WIDTH)]);
    for (const [chart, width] of widths) {
      if (width !== chart.u.width) chart.u.setSize({ width, height: heightOf(chart.choice) });
    }
  }

  return { all, abreast, across, groupOf, zoom, zoomBy, element, prepare, draw, remove, redraw, fit };
})();
