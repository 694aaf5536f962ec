// Asks the server again and again, and says so plainly when nobody answers.
'use strict';
(() => {
  const STATUS_MS = 1000, TIMEOUT_MS = 8000, MEMBERS = 256, POINTS = 500, EVENTS = 200;
  const data = {};
  let failures = 0;

  const get = async (path) => {
    const answer = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 300) || `HTTP ${answer.status}`);
    return answer.json();
  };

  const say = (text, kind) => {
    const line = document.getElementById('connection');
    line.textContent = text;
    line.className = kind;
  };

  const refresh = async () => {
    data.status = await get(`/api/v1/status?members=${MEMBERS}`);
    // Its settings stay, except after a resume.
    const hasJob = data.job && data.term === data.status.term;
    [data.history, data.events, data.job] = await Promise.all(
      [get(`/api/v1/history?points=${POINTS}`), get(`/api/v1/events?limit=${EVENTS}`),
       hasJob ? data.job : get('/api/v1/job')]);
    data.term = data.status.term;
    lockstep.show(data);
    document.body.dataset.shown = 'yes';
  };

  const loop = async () => {
    if (!document.hidden) {
      try {
        await refresh();
        failures = 0;
        say(`as of ${new Date().toLocaleTimeString('sv-SE')}`, '');
      } catch (error) {
        failures += 1;
        say('disconnected' + (data.status ? ': what is shown is old' : ''), 'bad');
        if (!data.status) lockstep.show({ status: { run: 'Lockstep', state: 'disconnected', message:
          `Nobody answers (${error.message}). This page tries again by itself.` } });
      }
    }
    setTimeout(loop, Math.min(STATUS_MS * 2 ** Math.min(failures, 4), 15000));
  };
  loop();
})();
