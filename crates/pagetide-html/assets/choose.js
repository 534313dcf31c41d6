// Selection of one of several figures (.pick), and filter of table rows by words (.filter).
//
// Invariant: without this script everything is shown. Widths of hidden charts are read again when they are shown.
'use strict';
(() => {
  for (const place of document.querySelectorAll('.pick')) {
    const parts = place.dataset.of.split(' ').map((id) => document.getElementById(id)).filter(Boolean);
    const list = document.createElement('select');
    for (const part of parts) {
      const option = document.createElement('option');
      option.textContent = part.querySelector('h3').textContent;
      list.append(option);
    }
    const show = () => parts.forEach((part, at) => { part.hidden = at !== list.selectedIndex; });
    list.addEventListener('change', () => {
      show();
      dispatchEvent(new Event('shown'));
    });
    const label = document.createElement('label');
    label.append(place.dataset.label + ' ', list);
    place.append(label);
    // Charts are drawn in microtasks while they are visible.
    setTimeout(show);
    // A link to a figure shows it.
    const follow = () => {
      const at = parts.findIndex((part) => '#' + part.id === decodeURIComponent(location.hash));
      if (at < 0) return;
      list.selectedIndex = at;
      show();
      parts[at].scrollIntoView();
    };
    addEventListener('hashchange', follow);
    setTimeout(follow);
  }

  for (const place of document.querySelectorAll('.filter')) {
    const rows = [...document.getElementById(place.dataset.of).querySelectorAll('tbody tr')];
    const input = document.createElement('input');
    input.type = 'search';
    input.spellcheck = false;
    const count = document.createElement('output');
    const words = rows.map((row) => row.textContent.toLowerCase());
    const tell = () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, at) => {
        row.hidden = !wanted.every((word) => words[at].includes(word));
        if (!row.hidden) shown += 1;
      });
      count.textContent = ` ${shown} of ${rows.length} rows`;
    };
    input.addEventListener('input', tell);
    const label = document.createElement('label');
    label.append(place.dataset.label + ' ', input);
    place.append(label, count);
    tell();
  }
})();
