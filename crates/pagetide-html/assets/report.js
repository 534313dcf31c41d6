// Draws the figures of a page, and handles choices, zoom, copy, print, and the dark and light theme.
//
// The data is the JSON in #data. Without this script the page has its text and tables.
// Invariants: nothing is fetched or stored; a figure that fails does not affect others; theme, width and printing
// change only the looks of charts.
'use strict';
(() => {
  const began = performance.now();
  const root = document.documentElement;
  const { element, groupOf, zoom, zoomBy, redraw, fit } = Charts;

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
    place.replaceChildren();
    const bar = element('div', { class: 'bar-of-figure' });
    const view = element('div', { class: 'panels' });
    if (!group.resets) {
      const zooms = zoomBar(group);
      if (figure.over) place.closest('figure').before(zooms);
      else bar.append(zooms);
    }
    const put = (choice) => {
      Charts.remove(figure);
      Charts.across(figure, choice);
      view.replaceChildren();
      view.classList.toggle('several', choice.panels.length > 1);
      view.style.setProperty('--n', Charts.abreast(choice));
      const charts = choice.panels.map((panel) => Charts.prepare(figure, choice, panel, view));
      whole.hidden = choice.clip == null || choice.clip >= choice.range[1];
      return charts;
    };
    const check = element('input', { type: 'checkbox' });
    const whole = element('label', { class: 'whole' }, check, ' whole scale');
    let now = figure.choices[0];
    const change = () => {
      now.whole = check.checked;
      drawAll(put(now));
    };
    check.addEventListener('change', change);
    if (figure.choices.length > 1) {
      const list = element('select', { 'aria-label': 'Choose' });
      figure.choices.forEach((choice, at) => list.append(element('option', { value: String(at) }, choice.name)));
      list.addEventListener('change', () => {
        now = figure.choices[Number(list.value)];
        change();
      });
      bar.append(element('label', null, 'Shown: ', list));
    }
    bar.append(whole);
    place.append(bar, view);
    return now ? put(now) : [];
  }

  const placeOf = (figure) => document.querySelector(`[data-figure="${CSS.escape(figure.id)}"]`);

  // The result of `act`; if it fails, null and a message in the figure.
  function attempt(figure, act) {
    try {
      return act();
    } catch (error) {
      root.dataset.error = String(error && error.message);
      placeOf(figure).replaceChildren('This chart could not be drawn: ' + error);
      return null;
    }
  }

  // --- The page ------------------------------------------------------------------------------------------------

  // Reads all widths before drawing: each read after a change costs a layout of the page.
  function drawAll(charts) {
    const widths = charts.map((chart) => chart.plot.clientWidth);
    charts.forEach((chart, at) => attempt(chart.figure, () => Charts.draw(chart, widths[at])));
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

  // Pixels per chart on paper, by the number of charts side by side.
  const PAPER = [660, 660, 322, 212];
  let before = null;
  addEventListener('beforeprint', () => {
    before = root.dataset.theme || '';
    root.dataset.theme = 'light';
    fit((chart) => PAPER[Charts.abreast(chart.choice)]);
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
    fit((chart) => chart.plot.clientWidth || chart.u.width);
  });

  // Hidden figures miss `resize` (choose.js).
  addEventListener('shown', () => fit((chart) => chart.plot.clientWidth || chart.u.width));

  for (const button of document.querySelectorAll('button[data-copy]')) {
    const text = document.getElementById(button.dataset.copy);
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        // Browsers that deny files the clipboard can copy a selection.
        getSelection().selectAllChildren(text);
        document.execCommand('copy');
      }
      button.textContent = 'Copied';
    });
  }

  const data = document.getElementById('data');
  if (data) {
    const { arrays, figures } = JSON.parse(data.textContent);
    for (const figure of figures) figure.places = Numbers.panelsOf(figure).map((panel) => panel.x);
    const sound = figures.filter((figure) => attempt(figure, () => {
      Numbers.unpack(figure, arrays, figures);
      return groupOf(figure);
    }));
    drawAll(sound.flatMap((figure) => attempt(figure, () => show(figure, placeOf(figure))) || []));
  }
  // After uPlot's microtasks.
  queueMicrotask(() => {
    const charts = [...Charts.all];
    root.dataset.drawn = String(charts.filter((chart) => chart.drawn).length);
    root.dataset.charts = String(charts.length);
    root.dataset.ms = (performance.now() - began).toFixed(0);
  });
})();
