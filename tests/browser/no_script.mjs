// Without JavaScript every page reads, and every button works.
import { ask, enter, until, write } from './bot.mjs';
import { open } from './browser.mjs';
import { paths } from './pages.mjs';

export async function test({ browser, url, check }) {
  const { context } = await open(browser, url, { javaScriptEnabled: false });
  const page = await enter(context, { scripts: false });
  const go = (path) => page.goto(url + path);
  const at = () => decodeURIComponent(new URL(page.url()).pathname);
  const press = (name) => page.getByRole('button', { name, exact: true }).first().click();
  const sees = async (text) => ((await page.locator('body').innerText()).includes(text) ? [] : ['it does not say ' + text]);

  for (const path of await paths()) {
    await check(`${path} reads`, async () => {
      await go(path);
      const [title, text] = [await page.locator('h1').innerText(), await page.locator('main').innerText()];
      return title && text.length > title.length ? [] : [`it says no more than ${text}`];
    });
  }
  await check('a job is run', async () => {
    await go('/jobs/backup');
    await press('Run now');
    return at().startsWith('/runs/') ? sees('backup') : [at()];
  });
  await check('a job is paused and resumed', async () => {
    await go('/jobs/backup');
    await press('Pause');
    const paused = !(await ask('routine', 'show', 'backup')).enabled;
    await press('Resume');
    return paused && (await ask('routine', 'show', 'backup')).enabled ? [] : ['it was not'];
  });
  await check('a reminder is snoozed', async () => {
    // What is due in months would come sooner by it.
    await go('/jobs/walk');
    const early = await page.getByRole('button', { name: /^Snooze/ }).count();
    const soon = new Date(Date.now() + 1800000).toISOString().slice(0, 19) + 'Z';
    await write('reminders/walk.md', `---\nrun_at: "${soon}"\n---\n\nTake a walk.\n`);
    await until('it is due soon', async () => (await go('/jobs/walk')) && (await page.getByRole('button', { name: 'Snooze 1h' }).count()));
    await press('Snooze 1h');
    const later = Date.parse((await ask('reminder', 'show', 'walk')).run_at) > Date.parse(soon);
    return at() === '/jobs/walk' && later && early === 0 ? [] : [at(), early, later, await page.locator('main').innerText()];
  });
  await check('a run is ended', async () => {
    const { run } = (await ask('runs', 'slow'))[0];
    await go('/runs/' + run);
    await press('End it');
    await until('it has ended', async () => (await ask('runs', 'show', run)).ended);
    await go('/runs/' + run);
    return sees('cancelled');
  });
  await check('a question is answered', async () => {
    await go('/questions');
    await press('Skip it');
    return (await ask('questions'))[0].answer === null ? ['it is still open'] : [];
  });
  await check('a file is saved when it is right, and only then', async () => {
    await go('/jobs/fails/edit');
    const text = await page.locator('#text').inputValue();
    await page.locator('#text').fill(text.replace('deliver: never', 'delivers: never'));
    await press('Check and save');
    const wrong = await sees('It was not saved');
    const kept = await page.locator('#text').inputValue();
    if (!kept.includes('delivers: never')) wrong.push('what was written is lost');
    await page.locator('#text').fill(text.replace('deliver: never', 'deliver: never\ndescription: Said without a script'));
    await press('Check and save');
    return wrong.concat(at() === '/jobs/fails' ? await sees('Said without a script') : [at()]);
  });
  await check('what only a script does is not offered', async () => {
    await go('/refusals');
    const offered = page.locator('[data-copy]');
    return (await offered.count()) > 0 && !(await offered.first().isVisible()) ? [] : ['Copy does nothing here'];
  });
  await check('a policy is asked', async () => {
    await go('/policy');
    await page.getByLabel('Job').selectOption('refused');
    await page.getByLabel('Command, path').fill('curl https://example.com');
    await press('Ask');
    return sees('It would be refused');
  });
  await check('everything is paused and resumed', async () => {
    await go('/service');
    await press('Pause everything');
    const paused = (await ask('status')).daemon.paused;
    await press('Resume everything');
    return paused && !(await ask('status')).daemon.paused ? [] : ['it was not'];
  });
  await check('something is said', async () => {
    await go('/chat');
    await page.getByLabel('Say something').fill('hello');
    await press('Send');
    // There is no agent here to answer. What was written is there to be sent again.
    const kept = await page.getByLabel('Say something').inputValue();
    return kept === 'hello' ? sees('It was not sent: there is no agent') : [`what was written became "${kept}"`];
  });
  await check('who logs out is out', async () => {
    await go('/');
    await press('Log out');
    return sees('You are not logged in here');
  });
}
