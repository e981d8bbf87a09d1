// A browser, and what every test of a page looks at.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { PATIENCE } from './bot.mjs';

const parts = process.env.OLLIM_BROWSER;
const require = createRequire(parts + '/npm/');
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Starts a browser. Only our own pages are opened in it. */
export function launch(args = []) {
  return chromium.launch({ executablePath: parts + '/chromium', args: ['--no-sandbox', ...args] });
}

/** A window. What hangs is ended by the test as a whole: a machine that is busy with other tests is no fault of a page. */
export async function newContext(browser, options = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE);
  return context;
}

/** A window whose pages tell what they must not do: `faults` gets a line for each error, and for each request that leaves `url`. */
export async function open(browser, url, options = {}) {
  const context = await newContext(browser, { viewport: { width: 1280, height: 800 }, ...options });
  const faults = [];
  await context.route((target) => target.origin !== new URL(url).origin, (route) => {
    faults.push('request elsewhere: ' + route.request().url());
    return route.abort();
  });
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) {
      faults.push(`console: ${message.text()} (${message.location().url})`);
    }
  });
  context.on('weberror', (error) => faults.push('exception: ' + error.error().message));
  context.on('dialog', (dialog) => {
    faults.push('dialog: ' + dialog.message());
    return dialog.dismiss();
  });
  return { context, faults };
}

/** The size of a page that is shown, in bytes. */
export function size(page) {
  return page.evaluate(() => performance.getEntriesByType('navigation')[0].decodedBodySize);
}

/** What is wrong with a page that is shown, with all that is folded on it: barriers, and whether it, or a box in it, is wider than there is room. */
export async function look(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    for (const folded of document.querySelectorAll('details')) folded.open = true;
    const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const { violations } = await globalThis.axe.run({ runOnly: { type: 'tag', values: rules } });
    const at = (one) => one.nodes.slice(0, 3).map((node) => node.target.join(' ') + ' ' + node.failureSummary.split('\n')[1].trim());
    const lines = violations.map((one) => `axe ${one.id} (${one.nodes.length}): ${at(one).join(' | ')}`);
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) {
      const wide = [...document.body.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > clientWidth + 1);
      const named = wide.slice(0, 4).map((one) => one.tagName.toLowerCase() + '.' + (one.getAttribute('class') ?? ''));
      lines.push(`${scrollWidth} px wide in a window of ${clientWidth}: ${named.join(', ')}`);
    }
    for (const box of document.querySelectorAll('.scroll')) {
      if (box.scrollWidth > box.clientWidth) lines.push(`${box.getAttribute('aria-label')}: ${box.scrollWidth} px in a box of ${box.clientWidth}`);
    }
    return lines;
  });
  return found;
}
