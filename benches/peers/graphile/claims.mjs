// How long graphile-worker takes for what several hosts of ours claim: jobs that do nothing, in one database.
// `node claims.mjs URL HOSTS JOBS ROUNDS` prints: seconds in which JOBS jobs are added and HOSTS processes have done them; then, with one host, the median and the
// 99th of 100 of ROUNDS times in milliseconds from a job that is added until it begins.
import { fork } from "node:child_process";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const [connectionString, hosts, jobs, rounds] = process.argv.slice(2);
const logger = new Logger(() => () => {});
const common = { connectionString, logger, noHandleSignals: true };

if (process.send) {
  const runner = await run({
    ...common,
    concurrency: 10,
    maxPoolSize: 11,
    taskList: { nothing: async () => {}, begins: async ({ number }) => process.send({ number }) },
  });
  process.send({ ready: true });
  process.on("message", () => runner.stop().then(() => process.exit(0)));
} else {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  const pool = new pg.Pool({ connectionString });
  let begun = () => {};
  const host = () => new Promise((resolve) => {
    const child = fork(process.argv[1], process.argv.slice(2));
    child.on("message", ({ ready, number }) => (ready ? resolve(child) : begun(number)));
  });
  const children = await Promise.all(Array.from({ length: Number(hosts) }, host));
  const start = performance.now();
  await pool.query(`select graphile_worker.add_jobs(array(
    select json_populate_record(null::graphile_worker.job_spec, '{"identifier":"nothing"}') from generate_series(1, $1::int)))`, [jobs]);
  while ((await pool.query("select count(*)::int as left from graphile_worker.jobs")).rows[0].left > 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const all = (performance.now() - start) / 1000;
  children.slice(1).forEach((child) => child.send("stop"));
  const took = [];
  for (let number = 0; number < Number(rounds); number++) {
    const started = new Promise((resolve) => { begun = resolve; });
    const asked = performance.now();
    await utils.addJob("begins", { number });
    await started;
    took.push(performance.now() - asked);
  }
  children[0].send("stop");
  took.sort((one, other) => one - other);
  const at = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))].toFixed(2);
  console.log(all.toFixed(2), at(0.5), at(0.99));
  await utils.release();
  await pool.end();
}
