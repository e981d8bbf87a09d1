// An open page follows what happens, says when nobody answers it, and takes nothing from under anybody's hands.
import { ask, enter, service, tell, until, write } from './bot.mjs';
import { open } from './browser.mjs';

/** Counts the requests for the page itself, and when it last changed. */
const watch = (page) => page.evaluate(() => {
  globalThis.seen = new Map();
  const look = () => {
    for (const one of document.querySelectorAll('main a[href^="/runs/"]')) {
      const path = one.getAttribute('href');
      if (!globalThis.seen.has(path)) globalThis.seen.set(path, Date.now());
    }
  };
  look();
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
});

/** Fires a job; the run's record when it has ended, well or not. */
async function fire(id) {
  await tell('fire', id, '--wait').catch(() => {});
  return (await ask('runs', id))[0];
}

/** Waits until the page shows a run; when it did. */
const shows = (page, run) => until(`run ${run} is shown`, () => page.evaluate((path) => globalThis.seen.get(path), '/runs/' + run));

export async function test({ browser, url, check, figures }) {
  const { context, faults } = await open(browser, url);
  const page = await enter(context);
  const second = await context.newPage();

  await check('how long the timeline takes', async () => {
    for (let count = 0; count < 3; count++) await page.goto(url + '/');
    Object.assign(figures, await page.evaluate(() => {
      const [{ responseStart, loadEventEnd, transferSize }] = performance.getEntriesByType('navigation');
      const files = performance.getEntriesByType('resource').map((one) => [new URL(one.name).pathname, one.encodedBodySize]);
      return { first_byte_ms: responseStart, complete_ms: loadEventEnd, page_bytes: transferSize, files: Object.fromEntries(files) };
    }));
  });
  await check('a run is on each open page soon after it began', async () => {
    await page.goto(url + '/runs');
    await second.goto(url + '/runs?job=backup');
    await watch(page);
    await watch(second);
    figures.from_event_to_page_ms = [];
    for (let count = 0; count < 5; count++) {
      const { run, started } = await fire('backup');
      const at = [await shows(page, run), await shows(second, run)];
      figures.from_event_to_page_ms.push(...at.map((time) => time - Date.parse(started)));
    }
    return faults.splice(0);
  });
  await check('what is written, chosen and opened stays', async () => {
    await page.goto(url + '/chat');
    await page.locator('#say').fill('half a sentence');
    await second.goto(url + '/runs');
    await second.getByLabel('failed only').check();
    await watch(second);
    // The page has asked for itself when its sentence on top has changed.
    const needs = [page, second].map((one) => one.getByText('fails failed 2 times in a row'));
    await fire('fails');
    await Promise.all(needs.map((one) => one.waitFor()));
    const wrong = [];
    if ((await page.locator('#say').inputValue()) !== 'half a sentence') wrong.push('what was written in the chat is lost');
    if (!(await page.locator('#say').evaluate((one) => one === document.activeElement))) wrong.push('its focus is lost');
    if (!(await second.getByLabel('failed only').isChecked())) wrong.push('the ticked box is lost');
    return wrong;
  });
  await check('an opened text stays open, and the focus where it was', async () => {
    const slow = (await ask('runs', 'slow'))[0].run;
    await page.goto(url + '/refusals');
    await page.goto(url + '/jobs/backup');
    await watch(page);
    await page.locator('main summary').first().click();
    await page.locator('main summary').first().focus();
    const { run } = await fire('backup');
    await shows(page, run);
    const [isOpen, at] = await page.evaluate(() => [document.querySelector('main details').open, document.activeElement.tagName]);
    await tell('cancel-run', slow);
    return [...(isOpen ? [] : ['it was closed']), ...(at === 'SUMMARY' ? [] : [`the focus is on ${at}`])];
  });
  await check('a pointer that rests on a button holds nothing back', async () => {
    await page.goto(url + '/jobs/backup');
    await watch(page);
    await page.getByRole('button', { name: 'Run now' }).hover();
    const { run } = await fire('backup');
    await shows(page, run);
  });
  await check('a page whose service is gone says so, and comes back by itself', async () => {
    await page.goto(url + '/runs');
    await watch(page);
    faults.length = 0;
    await service('stop');
    await page.locator('#stale').waitFor();
    const said = await page.locator('#stale').innerText();
    await service('start');
    await page.locator('#stale').waitFor({ state: 'hidden' });
    const { run } = await fire('backup');
    await shows(page, run);
    // That nobody answers stands on the console. Nothing else may.
    const other = faults.splice(0).filter((fault) => !/ERR_(CONNECTION_REFUSED|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET)/.test(fault));
    return said.includes('The service does not answer') ? other : [said, ...other];
  });
  await check('a page whose service is stopped, or whose tunnel is lost, says so, and comes back by itself', async () => {
    await page.goto(url + '/runs');
    await watch(page);
    await service('freeze');
    const wrong = [];
    try {
      await page.locator('#stale').waitFor();
      const said = await page.locator('#stale').innerText();
      if (!said.includes('The service does not answer')) wrong.push(said);
    } finally {
      await service('thaw');
    }
    await page.locator('#stale').waitFor({ state: 'hidden' });
    const { run } = await fire('backup');
    await shows(page, run);
    return [...wrong, ...faults.splice(0)];
  });
  await check('a page of what is not there any more says so', async () => {
    await write('routines/gone.md', "---\ncron: '0 0 29 2 *'\n---\nGo.\n");
    await until('it is read', async () => (await ask('routine', 'list')).some((one) => one.id === 'gone'));
    await page.goto(url + '/jobs/gone');
    await tell('routine', 'cancel', 'gone');
    await page.getByText('This is not there any more. What you see is from').waitFor();
    faults.length = 0;
    return (await page.locator('h1').innerText()) === 'gone' ? [] : ['what was seen is gone'];
  });
  await check('how far off a time is grows old by itself, whatever the service answers', async () => {
    const { context: other } = await open(browser, url);
    const aside = await enter(other);
    await fire('refused');
    await other.clock.install();
    await aside.goto(url + '/refusals');
    const off = aside.locator('main time.off').first();
    const before = await off.textContent();
    // Nothing that it asks for is answered any more.
    await aside.route(url + '/refusals', () => {});
    await other.clock.runFor('00:25');
    const after = await off.textContent();
    await other.close();
    return before !== after && /^\d+m? ?\d*s ago$/.test(after) ? [] : [`${before}, then ${after}`];
  });
  await check('one tab that logs out takes the other with it', async () => {
    await second.goto(url + '/next');
    await page.goto(url + '/runs');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('You are not logged in here').waitFor();
    await tell('fire', 'backup');
    await second.getByText('You are not logged in here').waitFor();
  });
  await check('who is logged out by the command sees it at once, whatever happens besides', async () => {
    const { context: other } = await open(browser, url);
    const aside = await enter(other);
    await aside.goto(url + '/next');
    await tell('web', '--end-sessions');
    await aside.getByText('You are not logged in here').waitFor();
    await other.close();
  });
  await check('what is written stays when the session ends, and is sent in the next', async () => {
    const { context: other } = await open(browser, url);
    const aside = await enter(other);
    await aside.goto(url + '/chat');
    await aside.locator('#say').fill('half a sentence');
    await tell('web', '--end-sessions');
    await aside.getByText('You are not logged in here any more').waitFor();
    await aside.locator('#say').press('Control+Enter');
    const wrong = (await aside.locator('#say').inputValue()) === 'half a sentence' ? [] : ['it is lost'];
    await (await enter(other)).close();
    await aside.locator('#stale').waitFor({ state: 'hidden' });
    await aside.locator('#say').press('Control+Enter');
    await aside.locator('main').getByText('half a sentence').waitFor();
    await other.close();
    return wrong;
  });
}
