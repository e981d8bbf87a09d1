// Files and a month of history for the walk and its pictures: the journal's rows as SQL. A bot writes its history as it happens, and no
// command writes a past, so these rows stand in for one. They follow the schema of src/journal/schema.rs.

const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** Each job: its file's fields and body; the hours (UTC) at which it has run; how many minutes and dollars a run took. */
const JOBS = {
  'email-triage': {
    fields: "description: Look through the new mail\ncron: '0 1-23/2 * * *'\nallowed_tools: ['Bash(ollim-bot gmail *)', 'Bash(ollim-bot tasks *)', mcp__discord__report_updates]\ntimeout: 10m",
    body: 'Read the mail that came since the last run with `ollim-bot gmail unread`.\n\nMake a task with `ollim-bot tasks add` for everything that needs an answer today.',
    hours: Array.from({ length: 12 }, (_, hour) => 2 * hour + 1), minutes: 4, cost: 0.06,
  },
  'deploy-check': {
    fields: "description: See whether the last deployment is well\ncron: '15 8,14 * * *'\nallowed_tools: ['Bash(gh run list *)', Read]",
    body: 'Look at the last runs of the pipeline, and say what failed and why.', hours: [8.25, 14.25], minutes: 7, cost: 0.11,
  },
  'evening-review': {
    fields: "description: What was done today, what is left\ncron: '0 20 * * *'\nallowed_tools: [Read, 'Edit(journal/**)']",
    body: "Write today's entry of the journal.", hours: [20], minutes: 19, cost: 0.34,
  },
  'photo-backup': {
    fields: "description: Copies new photos\ncron: '30 2 * * *'\nclient: exec\ncommand: echo copied\nallowed_tools: []", body: '',
    hours: [2.5], minutes: 47, cost: 0,
  },
  'price-watch': {
    fields: "description: Whether the camera became cheaper\ncron: '40 * * * *'\nallowed_tools: ['WebFetch(domain:example.com)']",
    body: 'Say so when it costs less than 500.', hours: Array.from({ length: 24 }, (_, hour) => hour + 2 / 3), minutes: 1, cost: 0.008,
  },
  'reading-list': {
    fields: "description: One article for the way to work\ncron: '30 6 * * 1-5'\nallowed_tools: ['Read(reading/**)']",
    body: 'Choose one.', hours: [6.5], minutes: 3, cost: 0.05,
  },
};

/** The files of the data folder. */
export const files = Object.fromEntries(Object.entries(JOBS).map(([id, job]) => {
  const background = job.cost ? 'background: true\n' : '';
  return [`routines/${id}.md`, `---\n${background}${job.fields}\n---\n\n${job.body}\n`];
}));

/** The same numbers each time. */
function numbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    const mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const value = (it) => (it === null ? 'NULL' : typeof it === 'number' ? `${it}` : `'${it.replaceAll("'", "''")}'`);
const row = (table, columns) => `INSERT INTO ${table} (${Object.keys(columns).join()}) VALUES (${Object.values(columns).map(value).join()});`;

/** How a run ended: mostly well. */
function outcome(id, chance) {
  if (id === 'price-watch' && chance < 0.05) return ['failed', 'client', 'example.com did not answer within 30 s'];
  if (id === 'price-watch' && chance < 0.12) return ['skipped', null, 'the run before was still going'];
  if (id === 'deploy-check' && chance < 0.15) return ['timed_out', 'timeout', 'it took longer than 30m (`timeout`) and was ended'];
  if (id === 'photo-backup' && chance < 0.3) return ['failed', 'command_failed', 'the command ended with exit code 23: "no space is left"'];
  return ['completed', null, null];
}

/** What happened in a run of the mail job. */
function events(run, began, ended) {
  const call = (number, command, reason) => [
    { event: 'tool_call', call: `c${number}`, tool: 'Bash', input: { command } },
    { event: 'tool_decided', call: `c${number}`, allowed: !reason, reason: reason ?? '', layer: 'allowed_tools', ...(reason ? {} : { rule: command.replace(/(gmail|tasks).*/, '$1 *').replace(/.*/, 'Bash($&)') }) },
    { event: 'tool_result', call: `c${number}`, bytes: reason ? 96 : 1840, failed: !!reason },
  ];
  const all = [
    { event: 'run_started', attempt: 1, scheduled: new Date(began).toISOString() },
    ...call(1, 'ollim-bot gmail unread'),
    { event: 'said', text: 'Seven new messages. Two need an answer today: the landlord about the heating, and the invoice of the dentist.' },
    ...call(2, 'ollim-bot tasks add "Answer the landlord about the heating"'),
    ...call(3, 'curl -s https://example.com/invoice.pdf', 'Bash "curl -s https://example.com/invoice.pdf": `curl` is not granted'),
    ...call(4, 'ollim-bot tasks add "Pay the dentist"'),
    { event: 'run_ended', outcome: 'completed', error: null, retry_at: null },
  ];
  const step = (ended - began) / (all.length - 1);
  return all.map((one, at) => row('event', { at: Math.round(began + at * step), run, id: 'email-triage', kind: one.event, data: JSON.stringify(one) }));
}

/** Six weeks before `now` as SQL, and the run that is shown alone. */
export function history(now) {
  const [random, sql, due] = [numbers(7), ['BEGIN;'], []];
  const midnight = now - (now % DAY);
  for (const [id, job] of Object.entries(JOBS)) {
    for (let day = -45; day <= 0; day++) {
      for (const hour of job.hours) due.push({ id, job, at: Math.round(midnight + day * DAY + hour * HOUR) });
    }
  }
  const past = due.filter(({ at, job }) => at + 2 * job.minutes * MINUTE < now).sort((a, b) => a.at - b.at);
  let shown;
  past.forEach(({ id, job, at }, index) => {
    const number = index + 1, run = (0x1000_0000 + Math.floor(random() * 0xe000_0000)).toString(16);
    // The last copy of the photos has failed, so that something needs somebody.
    const isLast = id === 'photo-backup' && !past.slice(index + 1).some((one) => one.id === id);
    const [state, why, error] = outcome(id, isLast ? 0 : random());
    past[index].state = state;
    const began = at + Math.round(random() * 4000), took = job.minutes * MINUTE * (0.5 + random());
    const ended = Math.round(state === 'skipped' ? at : state === 'timed_out' ? began + 30 * MINUTE : began + took);
    const isAgent = job.cost > 0 && state !== 'skipped';
    const cost = isAgent ? job.cost * (0.6 + random()) : null;
    const tokens = isAgent ? JSON.stringify({ input: 900, cache_read: Math.round(cost * 4e5), cache_write: Math.round(cost * 5e4), output: Math.round(cost * 2e4) }) : null;
    sql.push(row('occurrence', { number, id, kind: 'routine', at, by_hand: 0, file: `routines/${id}.md`, claimed: at, outcome: state, file_done: 0 }));
    sql.push(row('run', {
      number, run, occurrence: number, attempt: 1, state, launched: state === 'skipped' ? null : began, started: state === 'skipped' ? null : began, ended,
      class: why, error, cost_usd: cost, tokens, model: isAgent ? 'claude-sonnet-4-5' : null, client: isAgent ? 'claude' : 'exec',
      client_version: isAgent ? '2.1.0' : null, api_retries: 0, payer: id, forgotten: 0,
    }));
    const refused = (tool, input, reason) => sql.push(row('denial', { run: number, position: 0, at: began + 9000, tool, input: JSON.stringify(input), layer: 'allowed_tools', reason }));
    if (id === 'deploy-check' && random() < 0.4) refused('Bash', { command: 'gh run rerun 4711' }, 'Bash "gh run rerun 4711": `gh` is not granted; the rule `Bash(gh run *)` would be needed');
    if (id === 'evening-review' && random() < 0.2) refused('WebSearch', { query: 'weather tomorrow' }, '`WebSearch` is not among the tools of the job');
    if (id === 'email-triage' && state === 'completed' && number > past.length - 40) {
      refused('Bash', { command: 'curl -s https://example.com/invoice.pdf' }, 'Bash "curl -s https://example.com/invoice.pdf": `curl` is not granted; the rule `Bash(curl https://example.com/*)` would be needed');
      sql.push(...events(run, began, ended));
      shown = run;
    }
  });
  // What failed last needs somebody.
  for (const id of Object.keys(JOBS)) {
    const ends = past.filter((one) => one.id === id && one.state !== 'skipped');
    const failures = ends.length - 1 - ends.findLastIndex((one) => one.state === 'completed');
    if (failures) sql.push(row('streak', { id, failures, told: 1 }));
  }
  return { sql: [...sql, 'COMMIT;'].join('\n'), shown };
}
