// A page of somebody else's on another port of this machine, open in the same browser, does nothing here and reads nothing.
import { createServer } from 'node:http';
import { ask, enter } from './bot.mjs';
import { newContext } from './browser.mjs';

/** What that page tries. Each attempt says `nothing`, or what it got. The port is no part of a site: our cookie goes with all of it. */
const attempts = (url) => {
  const nothing = 'nothing';
  const loads = (name, to) => new Promise((done) => {
    const one = document.createElement(name);
    one.onload = () => done('it loaded');
    one.onerror = () => done(nothing);
    one[name === 'link' ? 'href' : 'src'] = to;
    if (name === 'link') one.rel = 'stylesheet';
    document.body.append(one);
  });
  const frame = (to) => new Promise((done) => {
    const one = document.createElement('iframe');
    one.onload = () => {
      try {
        done(one.contentDocument.body.textContent ? 'it can be read' : nothing);
      } catch {
        done(nothing);
      }
    };
    one.src = to;
    document.body.append(one);
  });
  const get = async (to, options) => {
    try {
      const answer = await fetch(to, { credentials: 'include', ...options });
      const text = await answer.text();
      return answer.type === 'opaque' && !text ? nothing : 'it read ' + text.slice(0, 80);
    } catch {
      return nothing;
    }
  };
  const form = (to, fields, target) => {
    const one = document.createElement('form');
    Object.assign(one, { method: 'post', action: to, target });
    for (const [name, value] of Object.entries(fields)) {
      const field = document.createElement('input');
      Object.assign(field, { type: 'hidden', name, value });
      one.append(field);
    }
    document.body.append(one);
    one.submit();
  };
  const stream = (to) => new Promise((done) => {
    const one = new EventSource(to, { withCredentials: true });
    one.onmessage = (event) => done('it heard ' + event.data);
    one.onopen = () => done('it is open');
    one.onerror = () => { one.close(); done(nothing); };
  });
  const socket = (to) => new Promise((done) => {
    const one = new WebSocket(to.replace('http', 'ws'));
    one.onopen = () => done('it is open');
    one.onerror = () => done(nothing);
  });
  const post = { method: 'POST', body: new URLSearchParams({ do: 'pause', token: 'x' }) };
  const hidden = document.createElement('iframe');
  hidden.name = 'hidden';
  document.body.append(hidden);
  const formed = new Promise((done) => { hidden.onload = () => done(nothing); });
  form(url + '/service', { do: 'pause', token: 'x' }, 'hidden');
  const all = {
    formed,
    fetch: get(url + '/inbox'),
    'fetch without CORS': get(url + '/inbox', { mode: 'no-cors' }),
    post: get(url + '/service', post),
    'post without CORS': get(url + '/service', { ...post, mode: 'no-cors' }),
    'post of JSON': get(url + '/service', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }),
    stream: stream(url + '/events'),
    'stream of the chat': stream(url + '/events?chat=1'),
    socket: socket(url + '/events'),
    frame: frame(url + '/'),
    image: loads('img', url + '/icon.svg'),
    'image of a page': loads('img', url + '/inbox'),
    script: loads('script', url + '/page.js'),
    style: loads('link', url + '/style.css'),
  };
  return Promise.all(Object.entries(all).map(async ([name, got]) => [name, await got]));
};

export async function test({ browser, url, check }) {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>Somebody else</title><p id=here>Good day');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const elsewhere = `http://127.0.0.1:${server.address().port}/`;
  const context = await newContext(browser);
  await (await enter(context)).close();
  const answers = [];
  // A frame asks for the page as a link does. It gets it, and the browser shows nothing of it.
  context.on('response', (answer) => {
    const isFrame = answer.request().method() === 'GET' && answer.request().isNavigationRequest();
    if (answer.url().startsWith(url) && !isFrame) answers.push(answer);
  });
  const page = await context.newPage();
  await page.goto(elsewhere);
  const before = [(await ask('runs', '-n', '1000')).length, await ask('status')];
  await check('nothing is done and nothing is read', async () => {
    answers.length = 0;
    const got = await page.evaluate(attempts, url);
    const wrong = got.filter(([, what]) => what !== 'nothing').map(([name, what]) => `${name}: ${what}`);
    for (const answer of answers.filter((one) => one.status() < 400)) {
      wrong.push(`${answer.request().method()} ${answer.url()}: ${answer.status()}`);
    }
    return wrong;
  });
  await check('nothing has changed', async () => {
    const after = [(await ask('runs', '-n', '1000')).length, await ask('status')];
    const [was, is] = [before, after].map(([runs, status]) => `${runs} runs, paused: ${JSON.stringify(status.daemon.paused ?? null)}`);
    return was === is ? [] : [`${was}; then ${is}`];
  });
  await check('a window that it opens tells it nothing', async () => {
    const opened = context.waitForEvent('page');
    const handle = await page.evaluateHandle((to) => window.open(to), url + '/inbox');
    await (await opened).waitForLoadState();
    const wrong = await handle.evaluate((other) => {
      try {
        return other.closed || !other.document ? [] : ['it can be read: ' + other.document.title];
      } catch {
        return [];
      }
    });
    await handle.dispose();
    return wrong;
  });
  await check('a window that it opens tries no command line', async () => {
    const trial = '/policy?job=backup&tool=Bash&input=' + encodeURIComponent('while :; do :; done');
    const opened = context.waitForEvent('page');
    const answered = context.waitForEvent('response', (answer) => answer.url().includes('/policy'));
    await page.evaluate((to) => { window.open(to); }, url + trial);
    await opened;
    const status = (await answered).status();
    return status === 403 ? [] : [`${status}`];
  });
  await check('a form that takes the whole window there does nothing', async () => {
    await page.goto(elsewhere);
    const [answer] = await Promise.all([
      page.waitForNavigation(),
      page.evaluate((to) => {
        document.body.innerHTML = `<form method=post action="${to}"><input name=do value=pause></form>`;
        document.forms[0].submit();
      }, url + '/service'),
    ]);
    return answer.status() === 403 ? [] : [`${answer.status()}`];
  });
  server.close();
}
