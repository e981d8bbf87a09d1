// Makes screenshots of the main pages: `node screenshots.mjs FOLDER`. The bot is one that it makes itself.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { enter, until } from './bot.mjs';
import { launch } from './browser.mjs';
import { files, history } from './demo.mjs';

/** A name for each picture, and what it shows. */
const pictures = (run) => [
  ['timeline', '/', 1280, 'light'],
  ['timeline-dark', '/?days=7', 360, 'dark'],
  ['run', `/runs/${run}`, 1280, 'light'],
  ['next', '/next', 1280, 'light'],
  ['refusals', '/refusals', 1280, 'light'],
  ['costs', '/costs', 1280, 'light'],
  ['policy', '/policy?job=evening-review&tool=Bash&input=' + encodeURIComponent('cat journal/today.md; rm -r photos'), 1280, 'light'],
];

const into = process.argv[2];
const person = mkdtempSync(join(tmpdir(), 'ollim-demo-'));
Object.assign(process.env, { HOME: person, OLLIM_HOME: join(person, 'bot'), OLLIM_AGENT_CLIENT: 'notify', TZ: 'UTC' });

const port = await new Promise((done) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});
const url = `http://127.0.0.1:${port}`;
for (const [path, text] of Object.entries({ ...files, 'config.yaml': `web: 127.0.0.1:${port}\nbudget: { day: 5.00, month: 60.00 }\n` })) {
  mkdirSync(dirname(join(process.env.OLLIM_HOME, path)), { recursive: true });
  writeFileSync(join(process.env.OLLIM_HOME, path), text);
}

/** Starts the service; how to stop it. */
async function start() {
  const child = spawn(process.env.OLLIM_BOT, ['run'], { stdio: 'ignore' });
  const ended = new Promise((done) => child.on('exit', done));
  await until('the page answers', () => fetch(url).then(() => true, () => false));
  return () => { child.kill(); return ended; };
}

let stop = await start();
try {
  // The service makes the journal. The past is written while it does not run.
  await stop();
  const { sql, shown } = history(Date.now());
  execFileSync('sqlite3', [join(process.env.OLLIM_HOME, 'state/journal.db')], { input: sql });
  stop = await start();
  const browser = await launch();
  mkdirSync(into, { recursive: true });
  for (const [name, path, width, colorScheme] of pictures(shown)) {
    const context = await browser.newContext({ viewport: { width, height: width === 360 ? 720 : 600 }, colorScheme });
    const page = await enter(context);
    await page.goto(url + path);
    await page.screenshot({ path: join(into, name + '.png') });
    await context.close();
  }
  await browser.close();
} finally {
  await stop();
  rmSync(person, { recursive: true, force: true });
}
process.exit();
