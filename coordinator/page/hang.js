// The section of a report that shows where each rank stood when the collectives last stood still.
'use strict';
(() => {
  const { element, grouped, time } = lockstep;
  const list = (value) => Array.isArray(value) ? value : [];

  const linesOf = (title, lines) => list(lines).length === 0 ? [] : [
    element('h4', {}, title), element('pre', {}, list(lines).map(String).join('\n'))];

  const rowOf = (rank) => element('tr', { 'data-rank': rank.rank },
    ...[['rank', grouped(rank.rank)], ['node', rank.node], ['pid', rank.pid],
        ['process', rank.process], ['where it stood', rank.stands]].map(([label, value]) =>
      element('td', { 'data-label': label }, String(value))));

  const detailsOf = (rank) => {
    const parts = [...linesOf('Collectives, oldest first', rank.lines),
                   ...linesOf('NCCL', rank.nccl)];
    return parts.length === 0 ? [] : [element('details', { 'data-rank': rank.rank },
      element('summary', {}, `Rank ${grouped(rank.rank)}: its last operations`),
      element('p', { class: 'readout' }, `Written at ${time(rank.written)}, because ${rank.why}.`),
      ...parts)];
  };

  const headOf = (...names) => element('thead', {},
    element('tr', {}, ...names.map((name) => element('th', { scope: 'col' }, name))));

  // Before the section of this id; nothing if no worker left notes.
  lockstep.showHang = (hang, before) => {
    if (!hang || list(hang.ranks).length === 0) return;
    const ranks = list(hang.ranks);
    before.before(element('section', { class: 'wide', id: 'hang', 'aria-labelledby': 'hang-title' },
      element('h2', { id: 'hang-title' }, 'Last hang'),
      element('p', {}, `Generation ${grouped(hang.generation)}, ${grouped(hang.world)} ranks, ` +
                       `at ${time(ranks[0].written)}.`),
      element('ul', { class: 'findings' },
              ...list(hang.findings).map((text) => element('li', {}, String(text)))),
      element('table', {}, headOf('rank', 'node', 'pid', 'process', 'where it stood'),
              element('tbody', {}, ...ranks.map(rowOf))),
      ...ranks.flatMap(detailsOf)));
  };
})();
