/** Makes the pictures of the page from the real page: those of the manual, or with `--every FOLDER` every view at three widths, in the language that follows. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import {
  ADMIN,
  CLIENT,
  gateway,
  replayed,
  samples,
  stop,
  teams,
  traffic,
} from './pictures/world.ts';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const SIZE = { width: 1280, height: 620 };
const PHONE = { width: 390, height: 700 };
/** A phone, a laptop, a large screen. */
const SIZES = [
  { width: 390, height: 800 },
  { width: 1280, height: 850 },
  { width: 2560, height: 1300 },
];

/** Where a user has recorded exchanges by default; shown in place of the folder that lasts as long as the pictures take. */
const FOLDER = '/home/alice/.hopgate/samples';

interface View {
  readonly path: string;
  readonly name: string;
  /** An element that is scrolled to the top. */
  readonly at?: string;
}

/** A page that has both keys, as after the forms that ask for them. */
async function openPage(browser: Browser, viewport: typeof SIZE, locale = 'en-US'): Promise<Page> {
  const page = await (await browser.newContext({ viewport, locale })).newPage();
  const kept = Object.entries({ 'hopgate-key': CLIENT, 'hopgate-admin-key': ADMIN });
  await page.addInitScript(
    `if (location.protocol === 'http:') for (const [name, value] of ${JSON.stringify(kept)}) sessionStorage.setItem(name, value)`,
  );
  await page.route('**/ui/api/info', async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replaceAll(samples, FOLDER);
    await route.fulfill({ response, body });
  });
  return page;
}

/** A view in both themes. */
async function picture(page: Page, folder: string, { path, name, at }: View): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.goto('about:blank');
    await page.goto(gateway.url + path, { waitUntil: 'domcontentloaded' });
    await page.waitForTimeout(1500);
    if (at !== undefined) await page.locator(at).evaluate((found) => found.scrollIntoView());
    const file = join(folder, `${name}-${theme}.png`);
    await page.screenshot({ path: file });
    console.log(file);
  }
}

async function ofTheManual(browser: Browser, hops: string): Promise<void> {
  const folder = join(import.meta.dir, '../docs/img');
  const page = await openPage(browser, SIZE);
  const job = await replayed(hops);
  const views: readonly View[] = [
    { path: '/ui', name: 'page-list' },
    { path: `/ui#/x/${hops}/timeline`, name: 'page-exchange' },
    { path: `/ui#/x/${hops}`, name: 'page-conversation' },
    { path: '/ui#/s/tides', name: 'page-session' },
    { path: `/ui#/x/${hops}/diff`, name: 'page-diff' },
    { path: '/ui#/?q=tide', name: 'page-search' },
    { path: `/ui#/x/${hops}/replay?job=${job}`, name: 'page-replay', at: '.bench' },
  ];
  for (const view of views) await picture(page, folder, view);
  await picture(await openPage(browser, PHONE), folder, {
    path: `/ui#/x/${hops}`,
    name: 'page-phone',
  });
  await teams();
  await picture(page, folder, { path: '/ui#/keys', name: 'page-keys' });
  await picture(page, folder, { path: '/ui#/usage', name: 'page-usage' });
}

async function everyView(
  browser: Browser,
  hops: string,
  folder: string,
  locale: string | undefined,
): Promise<void> {
  await teams();
  const job = await replayed(hops);
  const views = {
    list: '/ui',
    search: '/ui#/?q=tide',
    sessions: '/ui#/sessions',
    session: '/ui#/s/tides',
    conversation: `/ui#/x/${hops}`,
    timeline: `/ui#/x/${hops}/timeline`,
    messages: `/ui#/x/${hops}/messages`,
    json: `/ui#/x/${hops}/messages?as=json`,
    headers: `/ui#/x/${hops}/messages?as=headers`,
    diff: `/ui#/x/${hops}/diff`,
    changes: `/ui#/x/${hops}/diff?as=json`,
    events: `/ui#/x/${hops}/messages?as=events`,
    replay: `/ui#/x/${hops}/replay?job=${job}`,
    bisect: `/ui#/x/${hops}/bisect`,
    missing: '/ui#/x/req_1_none',
    charts: '/ui#/charts',
    keys: '/ui#/keys',
    'new-key': '/ui#/keys/new',
    'one-key': '/ui#/keys/laptop',
    budgets: '/ui#/budgets',
    usage: '/ui#/usage',
    health: '/ui#/health',
    audit: '/ui#/audit',
    manual: '/docs/browser',
    'manual-configuration': '/docs/configuration',
    'manual-search': '/docs?q=streaming',
    'manual-chinese': '/docs/browser.zh-CN',
    'manual-chinese-start': '/docs/getting-started.zh-CN',
  };
  for (const size of SIZES) {
    const page = await openPage(browser, size, locale);
    for (const [name, path] of Object.entries(views)) {
      await picture(page, folder, { path, name: `${name}-${size.width}` });
    }
  }
}

const [flag, folder, locale] = process.argv.slice(2);
if (flag !== undefined && (flag !== '--every' || folder === undefined)) {
  throw new Error('usage: npx bun scripts/pictures.ts [--every FOLDER [zh-CN]]');
}
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const hops = await traffic();
  if (folder === undefined) await ofTheManual(browser, hops);
  else {
    mkdirSync(folder, { recursive: true });
    await everyView(browser, hops, folder, locale);
  }
} finally {
  await browser.close();
  await stop();
}
