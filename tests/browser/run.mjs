// Runs the tests of one subject: `node run.mjs SUBJECT URL`. Its last line is a report as JSON: each case with what is wrong.
import { PATIENCE } from './bot.mjs';
import { launch } from './browser.mjs';

const [subject, url] = process.argv.slice(2);
const { args, test } = await import(`./${subject}.mjs`);
const report = { cases: [], figures: {} };

/** Fails once something has taken too long, since a browser that hangs answers no question. */
async function within(patience, what, promise) {
  let timer;
  const end = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} takes more than ${patience / 1000} s`)), patience);
  });
  return Promise.race([promise, end]).finally(() => clearTimeout(timer));
}

/** One case: it throws, or gives a list of what is wrong. The test ends if it hangs. */
async function check(name, body) {
  let wrong;
  const done = async () => {
    try {
      wrong = (await body()) ?? [];
    } catch (error) {
      wrong = [error.stack.split('\n').slice(0, 6).join(' / ')];
    }
  };
  await within(PATIENCE + 20_000, name, done());
  report.cases.push({ name, wrong });
}

const browser = await launch(args?.(url));
try {
  await test({ browser, url, check, figures: report.figures });
} catch (error) {
  report.cases.push({ name: 'the test itself', wrong: [error.stack] });
} finally {
  await within(10_000, 'closing the browser', browser.close()).catch(() => {});
}
process.stdout.write(JSON.stringify(report) + '\n');
process.exit();
