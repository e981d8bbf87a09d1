// Five questions that a person has in the morning, each answered by a look at the page that opens, or by one press from there. Beside
// it, pictures of what is seen (`OLLIM_PICTURES`: the folder).
import { join } from 'node:path';
import { ask, enter, link } from './bot.mjs';
import { look, newContext, open } from './browser.mjs';

/** What is asked; what is pressed, if anything; and what answers it. */
const QUESTIONS = [
  { asks: 'Is anything wrong?', answers: [/^\d+ things? needs? you: .*photo-backup failed/] },
  { asks: 'What ran?', answers: ['email-triage', 'photo-backup', 'reading-list', 'completed', 'failed', 'now'] },
  { asks: 'What will run?', press: 'Next', answers: ['Next 24 hours', /^in \d/, 'price-watch', 'email-triage'] },
  { asks: 'What was refused?', press: 'Refusals', answers: [/^\d+ calls?$/, /no rule grants it/, /^To allow this/] },
  { asks: 'What did it cost?', press: 'Costs', answers: [/this month\. At the pace/, /^Last month: \$/, /of \$60\.00 spent this month/] },
];

const SCREENS = [
  { name: 'desk', viewport: { width: 1280, height: 600 }, colorScheme: 'light' },
  { name: 'phone', viewport: { width: 360, height: 720 }, colorScheme: 'dark' },
];

/** The pictures besides: a name, and a path. */
const views = (run) => ({
  run: `/runs/${run}`,
  job: '/jobs/email-triage',
  policy: '/policy?job=evening-review&tool=Bash&input=' + encodeURIComponent('cat journal/today.md; rm -r photos'),
});

const picture = (page, name) => process.env.OLLIM_PICTURES && page.screenshot({ path: join(process.env.OLLIM_PICTURES, name + '.png') });

/** What of the answers is not seen without scrolling. */
async function unseen(page, answers) {
  const wrong = [];
  for (const text of answers) {
    const found = page.locator('header, main, main *').getByText(text).locator('visible=true').first();
    await found.waitFor();
    const isSeen = await found.evaluate((one) => {
      const { top, bottom, left, right } = one.getBoundingClientRect();
      return top >= 0 && left >= 0 && bottom <= innerHeight && right <= document.documentElement.clientWidth;
    });
    if (!isSeen) wrong.push(`${text} is seen by scrolling alone`);
  }
  return wrong;
}

export async function test({ browser, url, check, figures }) {
  for (const { name: screen, ...options } of SCREENS) {
    const { context, faults } = await open(browser, url, { ...options, timezoneId: 'UTC' });
    await (await enter(context)).close();
    for (const { asks, press, answers } of QUESTIONS) {
      await check(`${asks} (${screen})`, async () => {
        const page = await context.newPage();
        const began = Date.now();
        await page.goto(url);
        if (press) await page.getByRole('link', { name: press, exact: true }).click();
        const wrong = await unseen(page, answers);
        const took = Date.now() - began;
        figures[`${asks} ${screen}, ms`] = took;
        if (took > 5000) wrong.push(`the answer took ${took} ms`);
        const name = (press ?? 'Timeline').toLowerCase();
        if (asks !== 'Is anything wrong?') await picture(page, screen === 'desk' ? name : `${name}-${screen}`);
        wrong.push(...faults.splice(0), ...(await look(page)));
        await page.close();
        return wrong;
      });
    }
    if (screen === 'desk') {
      const run = (await ask('runs', 'email-triage', '-n', '1'))[0].run;
      const page = await context.newPage();
      for (const [name, path] of Object.entries(views(run))) {
        await check(name, async () => {
          await page.goto(url + path);
          await picture(page, name);
          return [...faults.splice(0), ...(await look(page))];
        });
      }
    }
    await context.close();
  }
  // From the command that prints a link to the first answer.
  await check('from the link to the answer', async () => {
    const began = Date.now();
    const page = await (await newContext(browser)).newPage();
    await page.goto(await link());
    await page.locator('#needs').waitFor();
    figures['from the command to the answer, ms'] = Date.now() - began;
  });
}
