// Opens a page in a real browser with nothing cached, a few times, and prints the medians: milliseconds to the first byte, to the
// first paint of content, and until all is there; then kilobytes and requests.
// `node load.mjs ours URL COOKIE`: a page of ollim-bot. `node load.mjs kuma FOLDER`: Uptime Kuma's, which it starts on a new folder.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const TIMES = 7;
const browserParts = process.env.OLLIM_BROWSER;
const { chromium } = createRequire(browserParts + '/npm/')('playwright-core');
const browser = await chromium.launch({ executablePath: browserParts + '/chromium', args: ['--no-sandbox'] });

/** One load in a context of its own, so that nothing is cached; `state`: cookies and what else says who asks. */
async function load(url, state, ready) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, storageState: state });
  const page = await context.newPage();
  const client = await context.newCDPSession(page);
  await client.send('Network.enable');
  let bytes = 0, requests = 0;
  client.on('Network.loadingFinished', (done) => { bytes += done.encodedDataLength; requests += 1; });
  const began = Date.now();
  await page.goto(url, { waitUntil: 'load' });
  await page.waitForSelector(ready);
  const whole = Date.now() - began;
  const [first, painted] = await page.evaluate(async () => {
    const paint = () => performance.getEntriesByName('first-contentful-paint')[0];
    while (!paint()) await new Promise((resolve) => setTimeout(resolve, 5));
    return [performance.getEntriesByType('navigation')[0].responseStart, paint().startTime];
  });
  await context.close();
  return [first, painted, whole, bytes / 1000, requests];
}

async function measure(url, state, ready) {
  const all = [];
  for (let time = 0; time < TIMES; time += 1) all.push(await load(url, state, ready));
  const medians = all[0].map((_, at) => all.map((one) => one[at]).sort((a, b) => a - b)[TIMES >> 1]);
  console.log(medians.map((value) => Math.round(value)).join(' '));
}

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

/** A Kuma with a user and as many monitors as its own form is patient enough for: none. So what is measured is its page alone. */
async function kuma(data) {
  const root = dirname(createRequire(import.meta.url).resolve('uptime-kuma/package.json'));
  // The package of this version has some files in the folder above the one where it looks for them.
  for (const file of readdirSync(join(root, 'db')).filter((name) => name.startsWith('patch-'))) {
    cpSync(join(root, 'db', file), join(root, 'db/old_migrations', file));
  }
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, 'db-config.json'), '{"type":"sqlite"}');
  const port = await freePort(), url = `http://127.0.0.1:${port}`;
  const server = spawn(process.execPath, ['server/server.js', `--port=${port}`, `--data-dir=${data}/`], {
    cwd: root, stdio: 'ignore', env: { ...process.env, UPTIME_KUMA_HOST: '127.0.0.1' },
  });
  try {
    for (let tries = 0; !(await fetch(url + '/setup').then((got) => got.ok, () => false)); tries += 1) {
      if (tries > 300 || server.exitCode !== null) throw new Error('Uptime Kuma does not start');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(url + '/setup');
    await page.fill('#floatingInput', 'admin');
    await page.fill('#floatingPassword', 'Only-4-a-measurement');
    await page.fill('#repeat', 'Only-4-a-measurement');
    await page.click('button[type=submit]');
    await page.waitForURL('**/dashboard');
    const state = await context.storageState();
    await context.close();
    await measure(url + '/dashboard', state, '.quick-stats, .shadow-box');
  } finally {
    server.kill();
  }
}

const [which, where, cookie] = process.argv.slice(2);
try {
  if (which === 'kuma') await kuma(where);
  else {
    const [name, value] = cookie.split('=');
    const { hostname } = new URL(where);
    const cookies = [{ name, value, domain: hostname, path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' }];
    await measure(where, { cookies, origins: [] }, 'main');
  }
} finally {
  await browser.close();
}
