// The bot whose page is tested: its commands, its files, and its service, which the test in Rust stops and starts.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** Milliseconds that a test waits for one thing. */
export const PATIENCE = 180_000;

const run = promisify(execFile);
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** What a command prints, as JSON. */
export async function ask(...words) {
  const { stdout } = await run(process.env.OLLIM_BOT, ['--json', ...words], { maxBuffer: 1 << 26 });
  return JSON.parse(stdout);
}

/** Runs a command. */
export async function tell(...words) {
  await run(process.env.OLLIM_BOT, words);
}

/** Writes a file of the data folder. */
export function write(path, text) {
  return writeFile(`${process.env.OLLIM_HOME}/${path}`, text);
}

/** A link that begins one session. */
export async function link() {
  return (await ask('web')).url;
}

/** Stops or starts the service: `stop`, `start`; or makes it stand still, as it is: `freeze`, `thaw`. */
export async function service(action) {
  process.stdout.write(action + '\n');
  await replies.next();
}

/** Logs a window in: its page. Where no script runs, the button is pressed. */
export async function enter(context, { scripts = true } = {}) {
  const [page, to] = [await context.newPage(), await link()];
  await page.goto(to);
  if (!scripts) await page.getByRole('button').click();
  await page.waitForURL(new URL('/', to).href);
  return page;
}

/** Waits until something is so; what it is then. */
export async function until(what, so) {
  for (const end = Date.now() + PATIENCE; Date.now() < end;) {
    const found = await so();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error(`it never came to be that ${what}`);
}
