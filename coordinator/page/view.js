// Fills the page from what the coordinator says. Whatever is missing in it is left empty: the
// server may be older or newer than this page.
'use strict';
(() => {
  const { element, isNumber, grouped, short, percent, perplexity, duration, time } = lockstep;
  const PHASES = ['data_wait', 'forward', 'backward', 'communication', 'optimizer', 'other'];
  const PHASE_NAMES = ['data wait', 'forward', 'backward', 'communication', 'optimizer', 'other'];
  const STATES = { training: 'good', ended: '', gathering: 'warn', prepared: 'warn',
                   stopping: 'warn', restarting: 'warn', interrupted: 'bad' };
  const NOTICES = {
    gathering: 'The run waits for its workers.',
    prepared: 'The workers agree on the next generation; no step is computed at the moment.',
    restarting: 'The run goes on from its newest checkpoint in a moment.',
    stopping: 'The run is being stopped: a checkpoint is written at the next step boundary.',
    interrupted: 'Nothing of this run is alive, and it has not ended by itself. ' +
                 'lockstep run --resume goes on from its newest checkpoint.' };
  const at = (id) => document.getElementById(id);
  const list = (value) => Array.isArray(value) ? value : [];

  const warnings = (status) => [
    isNumber(status.tainted_from_step) &&
      `Workers disagreed: the run is tainted from step ${grouped(status.tainted_from_step)} on.`,
    list(status.unfit_gpus).length > 0 &&
      'GPUs that are not fit: ' + list(status.unfit_gpus).map((gpu) =>
        `worker ${gpu.local_rank} of ${gpu.node} (${gpu.reason})`).join(', ') + '.',
    status.failed_checkpoints > 0 &&
      `Checkpoints that could not be written: ${grouped(status.failed_checkpoints)}.`,
    status.skipped_by_policy > 0 &&
      `Left out by policy: samples in ${grouped(status.skipped_by_policy)} places; ` +
      'lockstep audit names them.'];

  const showHeader = (status) => {
    const state = String(status.state || 'unknown');
    at('job').textContent = String(status.run || 'Lockstep');
    document.title = `${status.run || 'Lockstep'} · ${state}`;
    const failed = state === 'ended' && isNumber(status.exit_code) && status.exit_code !== 0 &&
                   status.exit_code !== 75;
    at('state').textContent = state;
    at('state').className = `badge ${failed ? 'bad' : STATES[state] || ''}`;
    const said = [NOTICES[state], status.message, ...warnings(status)].filter(Boolean)
      .map(String).join(' ');
    at('notice').textContent = said;
    at('notice').hidden = said === '';
    const warns = NOTICES[state] || warnings(status).some(Boolean);
    at('notice').className = `notice ${failed ? 'bad' : warns ? 'warn' : ''}`;
  };

  const isOfTokens = (status) => status.predicts === 'tokens';
  const recent = (status, span, what) => ((status.recent || {})[span] || {})[what];

  // "512 (60 s: 498)": what happens now, and whether it is as it was a moment ago.
  const twice = (status, what, write) => {
    const minute = recent(status, '60s', what);
    return write(status[what]) + (isNumber(minute) ? ` (60 s: ${write(minute)})` : '');
  };

  // Of a model with metrics of its own.
  const metricFacts = (whose, metrics) =>
    Object.entries(metrics || {}).map(([name, value]) => [`${whose} ${name}`, short(value)]);

  // The best checkpoint or, where none is kept, the best evaluation if it is not the last.
  const bestFacts = (status) => {
    const best = status.best_checkpoint || status.best_evaluation;
    if (!best || !isNumber(best.step)) return [];
    const isKept = Boolean(status.best_checkpoint);
    if (!isKept && status.eval && status.eval.step === best.step) return [];
    const result = isNumber(best.accuracy) && !isOfTokens(status)
      ? percent(best.accuracy, 2) : `loss ${short(best.loss)}`;
    return [['best', `${result} (step ${grouped(best.step)}${isKept ? '' : ', not kept'})`]];
  };

  const epochText = (status) =>
    status.epochs > 0
      ? `${grouped(Math.min(status.epoch + 1, status.epochs))} / ${grouped(status.epochs)}`
      : grouped(status.epoch + 1);

  const showFacts = (status) => {
    const steps = isNumber(status.total_steps) ? status.total_steps : 0;
    const share = steps > 0 && isNumber(status.step) ? status.step / steps : 0;
    at('progress').value = share;
    at('progress-text').textContent = steps > 0
      ? `step ${grouped(status.step)} of ${grouped(steps)} (${percent(share, 0)})`
      : `step ${grouped(status.step)}`;
    const isOver = status.state === 'ended' || status.state === 'interrupted';
    const facts = [
      [isOver ? 'took' : 'time left', duration(isOver ? status.wall_seconds : status.eta_s)],
      ['samples/s', twice(status, 'samples_per_second', short)],
      ['training loss', twice(status, 'loss', short)],
      ...(isOfTokens(status)
        ? [['training perplexity', short(perplexity(status.loss))]]
        : isNumber(status.accuracy) || !isNumber(status.loss)
          ? [['training accuracy', percent(status.accuracy)]] : []),
      ...metricFacts('training', status.metrics),
      ['test loss', short(status.eval && status.eval.loss)],
      ...(isOfTokens(status)
        ? [['test perplexity', short(perplexity(status.eval && status.eval.loss))]]
        : status.eval && !isNumber(status.eval.accuracy)
          ? [] : [['test accuracy', percent(status.eval && status.eval.accuracy, 2)]]),
      ...metricFacts('test', status.eval && status.eval.metrics),
      ...bestFacts(status),
      ['learning rate', short(status.lr)],
      ['goodput', percent(status.goodput)],
      ['epoch', isNumber(status.epoch) ? epochText(status) : '–'],
      ['generation', grouped(status.generation)],
      ['workers', `${grouped(list(status.members).length && status.members_total)} / ` +
                  `${grouped(status.workers)}`],
      ['running for', duration(status.wall_seconds)],
    ].filter(([name]) => !(isOver && name === 'running for'));
    at('facts').replaceChildren(...facts.map(([name, value]) =>
      element('div', {}, element('dt', {}, name), element('dd', { 'data-fact': name }, value))));
  };

  const showCurves = (status, history, events) => {
    const first = list(history.first);
    // A bin of `width` steps is shown at its last step.
    const x = first.map((step) => Math.min(step + (history.width || 1), history.steps || Infinity));
    const marks = list(events.generations).filter((g) => g.step > 0)
      .map((g) => ({ x: g.step, text: `generation ${g.generation}: ${g.why || g.what}` }));
    const per = history.width > 1 ? ` A point is the mean of ${grouped(history.width)} steps.` : '';
    const last = (values) => list(values).filter(isNumber).slice(-1)[0];
    const none = 'No step is done yet.';
    const evals = history.evals || {};
    const steps = list(evals.step), losses = list(evals.loss);
    const tested = losses.some(isNumber)
      ? ` In red: test loss, at the last evaluation ${short(last(losses))}.` : '';
    lockstep.curve(at('loss'), {
      x, y: list(history.loss), low: list(history.loss_min), high: list(history.loss_max), marks,
      more: tested ? [{ x: steps, y: losses, class: 'c1', name: 'test loss' }] : [],
      dots: true, unit: '', empty: none,
      label: `Training loss of every step.${per}${tested} Dashed lines: new generations` });
    lockstep.curve(at('lr'), { x, y: list(history.lr), fromZero: true, unit: '', empty: none,
      label: `Learning rate, at the last step ${short(last(history.lr))}` });
    lockstep.curve(at('throughput'), {
      x, y: list(history.samples_per_second), marks, fromZero: true, unit: 'samples/s',
      empty: none, label: `Samples per second within steps.${per}` });
    const results = {
      accuracy: { y: list(evals.accuracy).map((v) => isNumber(v) ? v * 100 : v), most: 100,
                  unit: '%', hidden: isOfTokens(status) || !list(evals.accuracy).some(isNumber),
                  label: `Test accuracy in %, at the last evaluation ${
                    short(last(evals.accuracy) * 100)}` },
      top5: { y: list(evals.top5).map((v) => isNumber(v) ? v * 100 : v), most: 100, unit: '%',
              hidden: !list(evals.top5).some(isNumber),
              label: `Test accuracy of the best five classes in %, at the last evaluation ${
                short(last(evals.top5) * 100)}` },
      perplexity: { y: losses.map(perplexity), hidden: !isOfTokens(status),
                    label: `Test perplexity, at the last evaluation ${
                      short(perplexity(last(losses)))}` } };
    for (const [id, result] of Object.entries(results)) {
      at(`${id}-section`).hidden = steps.length === 0 || Boolean(result.hidden);
      if (at(`${id}-section`).hidden) continue;
      lockstep.curve(at(id), { x: steps, dots: true, unit: '', empty: 'Nothing was evaluated yet.',
                               ...result });
    }
    showMetrics(evals);
  };

  // A plot for each metric of the model's own, made when it is first there.
  const showMetrics = (evals) => {
    for (const [name, values] of Object.entries(evals.metrics || {})) {
      let plot = [...at('metrics').querySelectorAll('.plot')]
        .find((p) => p.dataset.metric === name);
      if (!plot) {
        plot = element('div', { class: 'plot', 'data-metric': name });
        at('metrics').append(element('section', {}, element('h2', {}, `Test ${name}`), plot));
      }
      lockstep.curve(plot, { x: list(evals.step), y: list(values), dots: true, unit: '',
        empty: 'Nothing was evaluated yet.',
        label: `Test ${name}, at the last evaluation ${short(values[values.length - 1])}` });
    }
  };

  const partsOf = (phases) => {
    const whole = PHASES.reduce((sum, name) => sum + (phases[name] || 0), 0);
    return PHASES.map((name, i) => ({
      value: phases[name] || 0, class: `p${i}`, name: PHASE_NAMES[i],
      share: whole > 0 ? (phases[name] || 0) / whole : 0,
      text: `${PHASE_NAMES[i]} ${percent(whole > 0 ? (phases[name] || 0) / whole : 0)}` }));
  };

  const showPhases = (status) => {
    if (!status.phases) {
      at('phases').replaceChildren(
        element('p', { class: 'empty' }, 'No rank has told of a step yet.'));
      return;
    }
    const parts = partsOf(status.phases);
    const label = 'Time of the steps of all ranks in the last 10 s: ' + parts.map((p) => p.text).join(', ');
    const before = status.phases_60s ? partsOf(status.phases_60s) : [];
    const computing = before.filter((p) => ['forward', 'backward', 'optimizer'].includes(p.name))
      .reduce((sum, part) => sum + part.share, 0);
    const minute = before.length ? `; in the last 60 s ${percent(computing)} of the time was ` +
      'forward, backward and optimizer' : '';
    at('phases').replaceChildren(
      lockstep.bar(parts, { class: 'bar', 'aria-label': label }),
      element('ul', { class: 'legend' }, ...parts.map((part) => element('li', {},
        element('span', { class: `swatch ${part.class}`, 'aria-hidden': 'true' }), part.name,
        element('span', { class: 'value' }, percent(part.share))))),
      element('p', { class: 'readout' }, 'Steps of all ranks in the last 10 s' + minute +
        '. Communication is what backward does not hide, waiting for slower ranks included.'));
  };

  const cell = (label, ...content) => element('td', { 'data-label': label }, ...content);

  const speed = (value) => isNumber(value) ? `${short(value)}/s` : '–';

  const rankRow = (member) => {
    const parts = member.phases ? partsOf(member.phases) : null;
    const text = parts ? parts.map((p) => p.text).join(', ') : '';
    const slots = list(member.slots);
    const isAway = member.state === 'training' && member.connected === false;
    const state = element('span', { class: isAway ? 'warn' : '' },
                          String(member.state) + (isAway ? ', away' : ''));
    return element('tr', { 'data-member': member.id },
      cell('rank', grouped(member.rank)), cell('state', state),
      cell('node', String(member.node)),
      cell('pid', String(member.pid)), cell('member', String(member.id)),
      cell('step', grouped(member.step)),
      cell('slots', slots[1] > slots[0] ? `${slots[0]}–${slots[1] - 1}` : 'none'),
      cell('speed, 10 s', speed(member.own_samples_per_second)),
      cell('60 s', speed(member.own_samples_per_second_60s)),
      cell('phases', parts ? lockstep.bar(parts, { class: 'bar small', 'aria-label': text })
                           : '–'));
  };

  const showRanks = (status) => {
    const members = list(status.members);
    const total = isNumber(status.members_total) ? status.members_total : members.length;
    const states = Object.entries(status.members_by_state || {})
      .map(([state, count]) => `${grouped(count)} ${state}`);
    if (status.standbys > 0) states.push(`${grouped(status.standbys)} standing by`);
    let text = states.join(', ') || 'Nobody is here';
    if (members.length < total) text += `; the first ${grouped(members.length)} are listed`;
    text += members.length ? '. Speed: samples per second if it never waited for others.' : '';
    at('ranks-count').textContent = text;
    at('ranks').hidden = members.length === 0;
    at('ranks').tBodies[0].replaceChildren(...members.map(rankRow));
  };

  const when = (text) => element('time', { datetime: String(text) }, time(text));

  const showGenerations = (events, history) => {
    const generations = list(events.generations);
    at('generations').replaceChildren(...generations.map((g) => element('li',
      { 'data-generation': g.generation }, when(g.time),
      element('strong', {}, `generation ${g.generation}`),
      element('span', {}, g.why ? `${g.what}. Why: ${g.why}` : String(g.what)))));
    if (generations.length === 0) {
      at('generations').replaceChildren(element('li', {},
        element('span', { class: 'empty' }, 'No generation was started yet.')));
    }
    const ascending = [...generations].reverse();
    const end = Math.max(history.steps || 0, 1);
    const parts = ascending.map((g, i) => {
      const next = i + 1 < ascending.length ? ascending[i + 1].step : end;
      return { value: Math.max(next - g.step, 0), class: i % 2 ? 'odd' : 'even',
               text: `generation ${g.generation}: steps ${grouped(g.step)} to ${grouped(next)}` };
    });
    at('generations-strip').replaceChildren(...(parts.length === 0 ? [] : [lockstep.bar(parts,
      { class: 'strip', 'aria-label': `${parts.length} generations along the steps` })]));
  };

  const eventRow = (e, message) => element('li', { 'data-event': e.event }, when(e.time),
    element('span', { class: { warn: 'warn', error: 'bad' }[e.level] || '' },
            String(e.event).replaceAll('_', ' ')),
    element('span', {}, String(message)));

  // Of many of a kind in a row, such as checkpoints, the newest two and how many more.
  const showEvents = (events) => {
    const rows = list(events.events), SHOWN = 2, items = [];
    for (let begin = 0, end = 0; begin < rows.length; begin = end) {
      while (end < rows.length && rows[end].event === rows[begin].event) ++end;
      const hides = end - begin > SHOWN + 1;
      const shown = hides ? begin + SHOWN : end;
      for (let i = begin; i < shown; ++i) items.push(eventRow(rows[i], rows[i].message));
      if (hides) items.push(eventRow(rows[end - 1], `and ${grouped(end - shown)} before these`));
    }
    if (items.length === 0) {
      items.push(element('li', {},
        element('span', { class: 'empty' }, 'Nothing happened yet.')));
    }
    at('events').replaceChildren(...items);
  };

  const settingRow = ({ key, value }) => element('tr', { 'data-key': key },
    element('td', {}, String(key)), element('td', {}, value === '' ? '(empty)' : String(value)));

  const showSettings = (job) => {
    const settings = list(job.settings);
    const rows = (isChanged) => settings.filter((s) => Boolean(s.changed) === isChanged)
      .map(settingRow);
    at('settings').tBodies[0].replaceChildren(...rows(true));
    at('defaults').tBodies[0].replaceChildren(...rows(false));
  };

  // {status, history, events, job}, each as its path of the server gives it.
  lockstep.show = ({ status = {}, history = {}, events = {}, job = {} }) => {
    showHeader(status);
    showFacts(status);
    showCurves(status, history, events);
    showPhases(status);
    showRanks(status);
    showGenerations(events, history);
    showSettings(job);
    showEvents(events);
  };
})();
