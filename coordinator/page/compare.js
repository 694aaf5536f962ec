// Several runs beside each other: a file of its own, in which the data of all of them lie.
'use strict';
(() => {
  const { element, isNumber, grouped, short, percent, perplexity, duration, time } = lockstep;
  const COLORS = 8;  // then they begin again, with dashes
  const data = JSON.parse(document.getElementById('data').textContent);
  const list = (value) => Array.isArray(value) ? value : [];
  const color = (i) => `c${i % COLORS}${i >= COLORS ? ' again' : ''}`;

  const runs = list(data.runs).map((run, i) => ({
    name: String(run.name), color: color(i), status: run.status || {}, history: run.history || {},
    settings: Object.fromEntries(list((run.job || {}).settings).map((s) => [s.key, s.value])) }));
  const areOfTokens = runs.every((run) => run.status.predicts === 'tokens');

  const stepsOf = ({ history }) => list(history.first)
    .map((step) => Math.min(step + (history.width || 1), history.steps || Infinity));

  const card = (title, ...content) =>
    element('section', {}, element('h2', {}, title), ...content);

  // One line for each run.
  const plot = (title, id, options, lineOf) => {
    const where = element('div', { id, class: 'plot' });
    const draw = () => {
      const lines = runs.map((run) => ({ class: run.color, name: run.name, ...lineOf(run) }));
      lockstep.curve(where, { ...options, ...lines[0], more: lines.slice(1), unit: '',
                              label: title, empty: 'No run has anything to show here.' });
    };
    return { node: card(title, where), draw };
  };

  const ofSteps = (key) => (run) => ({ x: stepsOf(run), y: list(run.history[key]) });
  const ofEvals = (map) => (run) => {
    const evals = run.history.evals || {};
    return { x: list(evals.step), y: map(evals) };
  };
  const plots = [
    plot('Training loss', 'loss', {}, ofSteps('loss')),
    plot('Test loss', 'test-loss', { dots: true }, ofEvals((evals) => list(evals.loss))),
    areOfTokens
      ? plot('Test perplexity', 'perplexity', { dots: true },
             ofEvals((evals) => list(evals.loss).map(perplexity)))
      : plot('Test accuracy in %', 'accuracy', { dots: true, most: 100 },
             ofEvals((evals) => list(evals.accuracy).map((v) => isNumber(v) ? v * 100 : v))),
    plot('Learning rate', 'lr', { fromZero: true }, ofSteps('lr')),
    plot('Samples per second', 'throughput', { fromZero: true }, ofSteps('samples_per_second'))];

  const table = (id, heads, rows) => element('table', { id },
    element('thead', {}, element('tr', {},
      ...heads.map((head) => element('th', { scope: 'col' }, head)))),
    element('tbody', {}, ...rows));
  const cell = (label, ...content) => element('td', { 'data-label': label }, ...content);
  const swatch = (run) => element('span', { class: `swatch ${run.color}`, 'aria-hidden': 'true' });

  const figures = () => table('runs',
    ['run', 'state', 'steps', 'test loss', areOfTokens ? 'test perplexity' : 'test accuracy',
     'samples/s', 'time'],
    runs.map((run) => {
      const { status } = run, result = status.eval || {};
      return element('tr', {}, cell('run', swatch(run), run.name),
        cell('state', String(status.state)), cell('steps', grouped(status.step)),
        cell('test loss', short(result.loss)),
        cell('test', areOfTokens ? short(perplexity(result.loss)) : percent(result.accuracy, 2)),
        cell('samples/s', short(status.samples_per_second)),
        cell('time', duration(status.wall_seconds)));
    }));

  const differences = () => {
    const keys = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))]
      .filter((key) => new Set(runs.map((run) => run.settings[key])).size > 1);
    if (keys.length === 0) return element('p', { class: 'empty' }, 'The jobs are the same.');
    return table('differences', ['key', ...runs.map((run) => run.name)],
      keys.map((key) => element('tr', { 'data-key': key }, cell('key', key),
        ...runs.map((run) => cell(run.name, String(run.settings[key] ?? '–'))))));
  };

  const wide = (node) => { node.className = 'wide'; return node; };
  document.title = `Lockstep · ${runs.length} runs`;
  document.getElementById('job').textContent = `${runs.length} runs`;
  document.getElementById('state').hidden = true;
  document.querySelector('main').replaceChildren(
    wide(card('Runs', figures())), ...plots.map((p) => p.node),
    wide(card('In which settings they differ', differences())));
  const draw = () => plots.forEach((p) => p.draw());
  draw();
  addEventListener('resize', draw);
  document.getElementById('connection').textContent = `as of ${time(data.made)}`;
  document.body.dataset.shown = 'yes';
})();
