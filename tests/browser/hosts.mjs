// The page of the hosts, and what stands on top of every page when one is gone: on any screen, and reached by its link.
import { enter } from './bot.mjs';
import { open } from './browser.mjs';
import { lookAtEach } from './pages.mjs';

export async function test(tools) {
  await lookAtEach(['/hosts', '/'], tools);
  const { browser, url, check } = tools;
  const { context } = await open(browser, url, { viewport: { width: 360, height: 800 } });
  const page = await enter(context);
  await check('the sentence on top leads to the hosts', async () => {
    await page.goto(url + '/costs', { waitUntil: 'load' });
    await page.click('#needs a:has-text("the host laptop is gone, with 1 job open")');
    await page.waitForURL(url + '/hosts');
    const [attic, laptop] = await page.locator('tbody tr').allInnerTexts();
    const current = await page.locator('nav a[aria-current]').innerText();
    const wrong = [];
    if (!/^attic\s+up since .*its lease ends in/.test(attic) || !attic.includes('main session and channels')) wrong.push(attic);
    if (!/^laptop\s+gone, last seen/.test(laptop) || !laptop.includes('1 of 4 open')) wrong.push(laptop);
    if (current !== 'Hosts') wrong.push(current);
    return wrong;
  });
  await context.close();
}
