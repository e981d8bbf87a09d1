// Who gets in: whoever follows a fresh link, once, by the page's own name.
import { randomBytes } from 'node:crypto';
import { enter, link } from './bot.mjs';
import { newContext } from './browser.mjs';

export const args = () => ['--host-resolver-rules=MAP evil.example 127.0.0.1'];

export async function test({ browser, url, check, figures }) {
  const fresh = () => newContext(browser);
  const { port } = new URL(url);
  let name = '';
  const status = async (context, path) => (await context.request.get(url + path, { maxRedirects: 0 })).status();

  await check('a link is good once', async () => {
    const [first, second, to] = [await fresh(), await fresh(), await link()];
    // Who looks at it before, for a preview, does not use it up.
    const looked = await status(second, new URL(to).pathname);
    const begun = await first.newPage();
    await begun.goto(to);
    await begun.waitForURL(url + '/');
    const page = await second.newPage();
    const again = (await page.goto(to)).status();
    const text = await page.locator('body').innerText();
    const posted = (await second.request.post(to, { headers: { origin: url } })).status();
    const wrong = [looked, again, posted, await status(first, '/'), await status(second, '/')].join();
    return wrong === '200,410,410,200,401' && text.includes('ollim-bot web') ? [] : [wrong, text];
  });
  await check('the first page has its times in the zone of the browser', async () => {
    const context = await newContext(browser, { timezoneId: 'Asia/Tokyo' });
    const page = await context.newPage();
    const first = page.waitForResponse(url + '/');
    await page.goto(await link());
    const text = await (await first).text();
    await context.close();
    return text.includes('times in Asia/Tokyo') ? [] : [text.slice(0, 2000)];
  });
  await check('the session is out of reach of scripts and of other sites', async () => {
    const context = await fresh();
    const page = await enter(context);
    const cookie = (await context.cookies()).find((one) => one.name.startsWith('ollim-'));
    name = cookie.name;
    const seen = await page.evaluate(() => document.cookie);
    return cookie.httpOnly && cookie.sameSite === 'Strict' && !seen.includes('ollim') ? [] : [JSON.stringify(cookie), seen];
  });
  await check('nothing is shown to whoever has no session', async () => {
    const context = await fresh();
    const wrong = [];
    for (const value of ['', '0', randomBytes(16).toString('hex'), 'a'.repeat(4000)]) {
      const cookie = `${name}=${value}`;
      for (const path of ['/', '/jobs', '/jobs/backup', '/runs', '/inbox', '/events', '/chat', '/service']) {
        const got = (await context.request.get(url + path, { headers: { cookie } })).status();
        if (got !== 401) wrong.push(`${path} with "${cookie.slice(0, 20)}": ${got}`);
      }
      const posted = await context.request.post(url + '/service', { headers: { cookie, origin: url }, form: { do: 'pause' } });
      if (posted.status() !== 401) wrong.push(`a form with "${cookie.slice(0, 20)}": ${posted.status()}`);
    }
    return wrong;
  });
  await check('links cannot be guessed, and guessing takes nothing from others', async () => {
    const [context, to] = [await fresh(), await link()];
    const began = Date.now();
    const answers = new Set();
    for (let round = 0; round < 20; round++) {
      const tries = Array.from({ length: 50 }, () => {
        const guess = `${url}/in/${randomBytes(16).toString('hex')}`;
        return context.request.post(guess, { headers: { origin: url }, maxRedirects: 0 });
      });
      for (const answer of await Promise.all(tries)) answers.add(answer.status());
    }
    figures.guesses_in_a_second = Math.round(1_000_000 / (Date.now() - began));
    const before = await status(context, '/');
    const page = await context.newPage();
    await page.goto(to);
    await page.waitForURL(url + '/');
    const found = [...answers, before, await status(context, '/')].join();
    return found === '410,401,200' ? [] : [found];
  });
  await check("another's name that leads here is not answered", async () => {
    const [context, to] = [await fresh(), await link()];
    const page = await context.newPage();
    const evil = (path) => `http://evil.example:${port}${path}`;
    const wrong = [];
    for (const path of ['/', '/style.css', new URL(to).pathname]) {
      const got = (await page.goto(evil(path))).status();
      if (got !== 421) wrong.push(`${path}: ${got}`);
    }
    // The link was not used up by that.
    await page.goto(to);
    await page.waitForURL(url + '/');
    return wrong;
  });
  await check('a form without what makes it ours does nothing', async () => {
    const context = await fresh();
    await enter(context);
    const wrong = [];
    for (const [headers, form] of [
      [{ origin: url }, { do: 'pause' }],
      [{ origin: url }, { do: 'pause', token: 'x' }],
      [{}, { do: 'pause' }],
      [{ origin: 'null' }, { do: 'pause' }],
      [{ origin: 'http://evil.example' }, { do: 'pause' }],
    ]) {
      const got = (await context.request.post(url + '/service', { headers, form })).status();
      if (got !== 403) wrong.push(`${JSON.stringify([headers, form])}: ${got}`);
    }
    return wrong;
  });
}
