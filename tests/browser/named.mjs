// A browser tells no ports apart: what listens on another port of the page's own name is sent its cookie. Of a name that only the person
// knows (`web_url`), nobody else is.
import { createServer } from 'node:http';
import { link } from './bot.mjs';
import { newContext } from './browser.mjs';

export async function test({ browser, url, check }) {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.cookie ?? '');
    response.end('<!doctype html><title>Somebody else</title>');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  const page = await (await newContext(browser)).newPage();
  await check('the page answers by its name', async () => {
    const to = await link();
    await page.goto(to);
    await page.waitForURL(new URL('/', to).href);
    await page.locator('#needs').waitFor();
    return to.startsWith(url) ? [] : [to];
  });
  await check('what listens on another port is not sent the session', async () => {
    for (const name of ['127.0.0.1', 'localhost', 'other.localhost']) await page.goto(`http://${name}:${port}/`);
    return seen.length >= 3 && seen.every((cookie) => !cookie.includes('ollim')) ? [] : seen;
  });
  await check('its forms work', async () => {
    await page.goto(url + '/service');
    await page.getByRole('button', { name: 'Pause everything' }).click();
    await page.getByText('everything is paused').waitFor();
  });
  server.close();
}
