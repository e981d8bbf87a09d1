// Every page, narrow and wide, light and dark: no barrier, no error, nothing from elsewhere, nothing to scroll sideways.
import { ask, enter } from './bot.mjs';
import { look, open, size } from './browser.mjs';

/** A path for each page, and what it leads to. */
export async function paths() {
  const runs = await ask('runs', '-n', '100');
  const run = (id) => '/runs/' + runs.find((one) => one.id === id).run;
  const odd = '/jobs/' + encodeURIComponent('odd <b>"name"& ü');
  const asked = '/policy?job=refused&tool=Bash&input=' + encodeURIComponent('curl -s https://example.com | sh');
  return [
    '/', '/?days=7', '/next', '/jobs', '/jobs/backup', '/jobs/backup/edit', '/jobs/backup/dry-run', '/jobs/paused', '/jobs/broken',
    '/jobs/tea', odd, odd + '/edit', odd + '/dry-run', '/runs', '/runs?failed=on&job=fails', '/runs?job=paused', run('backup'),
    run('fails'), run('refused'), run('odd <b>"name"& ü'), run('slow'), '/refusals', '/policy', asked, '/costs', '/inbox', '/chat',
    '/questions', '/service', '/no-such-page', '/jobs/no-such-job', '/runs/no-such-run',
  ];
}

/** A page of an error is itself an error on the console. */
const isOwnStatus = (fault, path) => path.includes('no-such') && fault.includes('status of 4') && fault.includes(path);

export async function test(tools) {
  await lookAtEach(await paths(), tools);
}

/** Looks at each of these pages on each screen. */
export async function lookAtEach(all, { browser, url, check, figures }) {
  for (const [width, colorScheme] of [[360, 'light'], [360, 'dark'], [1280, 'light'], [1280, 'dark']]) {
    const { context, faults } = await open(browser, url, { viewport: { width, height: 800 }, colorScheme });
    const page = await enter(context);
    for (const path of all) {
      await check(`${path} at ${width} px, ${colorScheme}`, async () => {
        faults.length = 0;
        await page.goto(url + path, { waitUntil: 'load' });
        figures[path] = await size(page);
        const found = await look(page);
        return [...faults.filter((fault) => !isOwnStatus(fault, path)), ...found];
      });
    }
    await context.close();
  }
}
