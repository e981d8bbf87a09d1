// Texts of agents, of files and of programs are shown as they are, and are never anything but text.
import { ask, enter, until, write } from './bot.mjs';
import { look, open, size } from './browser.mjs';

const ODD = 'odd <b>"name"& ü';
/** The longest id that there can be. */
const WIDE = 'w'.repeat(64);
const LONG = 'w'.repeat(1_000_000);

/** What a text must not have become. */
const strange = (page) => page.evaluate(() => {
  const wrong = [];
  const active = 'img, iframe, object, embed, main script, main style, main link, main b, [onerror], [onload], [href^="javascript:"]';
  for (const one of document.querySelectorAll(active)) wrong.push('an element: ' + one.outerHTML.slice(0, 200));
  if (!document.title.endsWith(' – ollim-bot')) wrong.push('the title: ' + document.title);
  return wrong;
});

export async function test({ browser, url, check, figures }) {
  const runs = await ask('runs', '-n', '100');
  const run = '/runs/' + runs.find((one) => one.id === ODD).run;
  const job = '/jobs/' + encodeURIComponent(ODD);
  await write('routines/long.md', `---\ncron: '0 0 29 2 *'\n---\n\n<script>document.title = "taken"</script> ${LONG}\n`);
  await until('the long file is read', async () => (await ask('routine', 'list')).some((one) => one.id === 'long'));
  await write(`routines/${WIDE}.md`, "---\ncron: '0 0 29 2 *'\nclient: exec\nbackground: true\ncommand: exit 1\n---\n");
  await until('the wide id is read', async () => (await ask('routine', 'list')).some((one) => one.id === WIDE));
  await ask('fire', WIDE);
  await until('it has run', async () => (await ask('runs', WIDE))[0]?.ended);
  const { context, faults } = await open(browser, url, { viewport: { width: 360, height: 800 } });
  const page = await enter(context);
  const shown = {
    [run]: ['<script>document.title = "taken"</script>', '"><img src=x onerror', 'שלום עולם', ODD],
    [job]: ['"><img src=x onerror=x>', ODD],
    [job + '/edit']: ['"><img src=x onerror=x>'],
    [job + '/dry-run']: ['odd'],
    '/inbox': ['<script>document.title = "taken"</script>', 'مرحبا', '"><script>'],
    '/jobs': [ODD, 'enabeld'],
    '/jobs/broken': ['<img src=x onerror=x>'],
    '/jobs/long': [LONG],
    '/jobs/long/edit': [LONG],
    '/jobs/long/dry-run': [LONG],
    '/runs?job=%3Cimg%20src%3Dx%20onerror%3D1%3E%22': ['<img src=x onerror=1>"'],
    '/policy?job=%22%3E%3Cimg%20src%3Dx%3E&tool=%22%3E%3Cimg%20src%3Dx%3E&input=%22%3E%3Cimg%20src%3Dx%3E': [],
    '/jobs/%3Cimg%20src=x%20onerror=1%3E': ['<img src=x onerror=1>'],
    '/jobs/%2E%2E%2F%2E%2E%2Fetc%2Fpasswd': ['passwd'],
  };
  for (const [path, texts] of Object.entries(shown)) {
    await check(path.slice(0, 60), async () => {
      const began = Date.now();
      const answer = await page.goto(url + path);
      figures[path] = { bytes: await size(page), ms: Date.now() - began };
      const isError = answer.status() >= 400;
      const wrong = isError ? [] : await strange(page);
      if (isError && (await page.locator('img').count()) > 0) wrong.push('an image');
      const all = await page.evaluate(() => {
        const fields = [...document.querySelectorAll('textarea, input')].map((one) => one.value);
        return [document.body.textContent, ...fields].join('\n');
      });
      for (const text of texts) if (!all.includes(text)) wrong.push('it does not show ' + text.slice(0, 80));
      if (!path.includes('long')) wrong.push(...(await look(page)));
      return wrong.concat(faults.splice(0).filter((fault) => !(isError && fault.includes('status of 4'))));
    });
  }
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const path of ['/', '/next', '/jobs', '/runs', '/jobs/' + WIDE]) {
      await check(`a wide id on ${path.slice(0, 20)} at ${width}`, async () => {
        await page.goto(url + path);
        const shown = await page.getByText(WIDE).count();
        return [...(shown > 0 ? [] : ['it is not shown']), ...(await look(page)), ...faults.splice(0)];
      });
    }
  }
}
