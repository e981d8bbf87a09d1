// Runs the tests of one subject: `node run.mjs SUBJECT URL`. Its last line is a report as JSON: each case with what is wrong.
import { launch } from './browser.mjs';

const [subject, url] = process.argv.slice(2);
const { args, test } = await import(`./${subject}.mjs`);
const report = { cases: [], figures: {} };

/** One case: it throws, or gives a list of what is wrong. */
async function check(name, body) {
  let wrong;
  try {
    wrong = (await body()) ?? [];
  } catch (error) {
    wrong = [error.stack.split('\n').slice(0, 6).join(' / ')];
  }
  report.cases.push({ name, wrong });
}

const browser = await launch(args?.(url));
try {
  await test({ browser, url, check, figures: report.figures });
} catch (error) {
  report.cases.push({ name: 'the test itself', wrong: [error.stack] });
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(report) + '\n');
process.exit();
