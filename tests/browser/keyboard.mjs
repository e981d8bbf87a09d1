// By keyboard alone.
import { ask, enter } from './bot.mjs';
import { open } from './browser.mjs';
import { paths } from './pages.mjs';

/** What has the focus: its address or its name, and whether that can be seen. */
const focus = (page) => page.evaluate(() => {
  const at = document.activeElement;
  const { outlineStyle, opacity } = getComputedStyle(at);
  const name = at.getAttribute('href') ?? at.getAttribute('name') ?? at.textContent.trim();
  return { tag: at.tagName.toLowerCase(), name, id: at.id, seen: outlineStyle !== 'none' || opacity !== '1' };
});

/** Presses Tab until `is` so; how often, and which stops on the way show no focus. */
async function tabTo(page, is) {
  const unseen = [];
  for (let count = 1; count < 500; count++) {
    await page.keyboard.press('Tab');
    const at = await focus(page);
    if (!at.seen) unseen.push(`no focus is seen on ${at.tag} ${at.name}`);
    if (is(at)) return { count, unseen };
  }
  throw new Error('Tab does not lead there');
}

export async function test({ browser, url, check, figures }) {
  const { context } = await open(browser, url);
  const page = await enter(context);
  const failed = '/runs/' + (await ask('runs', 'fails'))[0].run;
  await check('the first stop skips to the content', async () => {
    await page.goto(url + '/');
    const { count } = await tabTo(page, (at) => at.name === '#main');
    await page.keyboard.press('Enter');
    const { id } = await focus(page);
    return count === 1 && id === 'main' ? [] : [`Tab ${count} times, then at ${id}`];
  });
  await check('a failed bar opens its run', async () => {
    const { count, unseen } = await tabTo(page, (at) => at.name === failed);
    figures.stops_from_the_content_to_the_failed_bar = count;
    await page.keyboard.press('Enter');
    await page.waitForURL(url + failed);
    return unseen;
  });
  await check('a policy is asked', async () => {
    await page.goto(url + '/policy');
    const { unseen } = await tabTo(page, (at) => at.name === 'job');
    await page.keyboard.type('refused');
    await tabTo(page, (at) => at.name === 'input');
    await page.keyboard.type('curl https://example.com');
    await page.keyboard.press('Enter');
    await page.getByText('It would be refused').waitFor();
    const job = new URL(page.url()).searchParams.get('job');
    return unseen.concat(job === 'refused' ? [] : [job]);
  });
  await check('every stop of every page shows that it is there', async () => {
    const wrong = [];
    for (const path of [...await paths(), '/hosts']) {
      await page.goto(url + path);
      const { unseen } = await tabTo(page, (at) => at.name === 'Log out');
      wrong.push(...unseen.map((one) => `${path}: ${one}`));
    }
    return wrong;
  });
  await check('Ctrl+Enter sends a form', async () => {
    await page.goto(url + '/jobs/backup/edit');
    await page.locator('#text').focus();
    await page.keyboard.press('Control+Enter');
    await page.waitForURL(url + '/jobs/backup');
  });
}
