// Numbers of a page: the units they are shown in, and the data of charts (src/html/data.rs) made ready to be drawn.
//
// Invariant: after `unpack` an axis has a unit (`symbol`, `size`), and its values are in that unit; values of a
// logarithmic axis stay as they are, and each is shown in a unit of its own.
'use strict';
const Numbers = (() => {
  // --- Numbers -------------------------------------------------------------------------------------------------

  const KIB = 1024;
  const sizes = (end) => ['B', 'KiB', 'MiB', 'GiB', 'TiB'].map((name, step) => [name + end, KIB ** step]);
  // Symbol and size of a unit, and from where on it is used if that is not its size.
  const LADDERS = {
    count: [['', 1], ['thousand', 1e3, 1e5], ['million', 1e6, 1e8]],
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
    for (const next of ladder) if (most >= (next[2] || next[1])) step = next;
    return step;
  }

  // Four digits, as the tables have.
  function digits(value) {
    const size = Math.abs(value);
    if (size === 0) return '0';
    if (size < 0.001) return value.toPrecision(2);
    return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
  }

  // An axis of words has one at each whole number from 1 on.
  const nameAt = (axis, value) => axis.names[value - 1] || '';

  // A value of an axis, in the unit of the axis or, if that is logarithmic, in one of its own.
  function shown(axis, value) {
    if (value == null) return '-';
    if (axis.names.length) return nameAt(axis, value);
    const [symbol, size] = axis.log ? unitOf(axis.unit, Math.abs(value)) : [axis.symbol, 1];
    return digits(value / size) + (symbol ? '\u00a0' + symbol : '');
  }

  function tick(axis, value, step) {
    if (value == null) return '';
    if (!axis.log) {
      let decimals = 0;
      while (decimals < 9 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
      return value.toFixed(decimals);
    }
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

  const panelsOf = (figure) => figure.choices.flatMap((choice) => choice.panels);

  // Unpacks one of `figures`: columns of numbers for arrays' numbers, and one range a choice and axis. Figures over
  // the same axis have the same unit on it.
  function unpack(figure, arrays, figures) {
    const panels = panelsOf(figure);
    const others = figures.filter((other) => other === figure || (figure.over && other.over === figure.over));
    const axes = [[figure.x, others.flatMap((other) => other.places)],
      [figure.y, panels.flatMap((panel) => panel.lines.flatMap(ends))]];
    // What is cut off at first is not what the unit is for.
    const clips = figure.choices.map((choice) => choice.clip).filter((clip) => clip != null);
    const isCut = clips.length > 0 && clips.length === figure.choices.length;
    for (const [axis, numbers] of axes) {
      let high = most(arrays, numbers, axis);
      if (axis === figure.y && isCut) high = Math.min(high, Math.max(...clips) * axis.factor);
      [axis.symbol, axis.size] = axis.log ? ['', 1] : unitOf(axis.unit, high);
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
      choice.across = rangeOf(choice.panels.flatMap((panel) => panel.x), figure.x, null);
    }
    figure.range = rangeOf(panels.flatMap((panel) => panel.x), figure.x, null);
  }

  // Sizes of memory are told in powers of two.
  const baseOf = (axis) => (axis.unit === 'bytes' ? 2 : 10);

  // Down or up to 1, 2 or 5 times a power of ten, or to a power of two.
  function round(value, way, base) {
    if (base === 2) return 2 ** way(Math.log2(value) + (way === Math.floor ? 1e-9 : -1e-9));
    const ten = 10 ** Math.floor(Math.log10(value) + 1e-9);
    const steps = way === Math.floor ? [5, 2, 1] : [1, 2, 5, 10];
    const fits = (step) => (way === Math.floor ? step * ten <= value * 1.000001 : step * ten >= value * 0.999999);
    return steps.find(fits) * ten;
  }

  // From the least to the most; a linear axis of amounts begins at `from`, a logarithmic one at a round number, from
  // which its ticks are counted.
  function rangeOf(values, axis, from) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value == null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (axis.names.length) return [0.5, axis.names.length + 0.5];
    if (low > high) return axis.log ? [1, 10] : [0, 1];
    if (axis.log) {
      const base = baseOf(axis);
      const range = [round(low, Math.floor, base), round(high, Math.ceil, base)];
      return range[0] < range[1] ? range : [range[0], range[0] * base];
    }
    if (from == null) {
      if (low === high) return [low - 0.5, high + 0.5];
      return [low > 0 && low < high / 4 ? 0 : low, high];
    }
    low = Math.min(low, from);
    return low < high ? [low, high + (high - low) * 0.04] : [low, low + 1];
  }

  return { digits, shown, tick, nameAt, baseOf, panelsOf, unpack };
})();
