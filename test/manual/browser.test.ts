/** The manual in a real browser, from the compiled program: every page fits, can be read in light and dark, and is searched. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { PAGES } from '../../src/manual/pages.ts';
import { type Gateway, startGateway } from '../support/binary.ts';
import { browserSuite } from '../ui/page-browser.ts';
import { faintTexts } from '../ui/page-contrast.ts';

browserSuite('the manual', (browser) => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway('samples: { mode: "off" }\n');
  }, 180_000);
  afterAll(async () => {
    await gateway?.stop();
  });

  const SIZES = [
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
    { width: 380, colorScheme: 'light' },
  ] as const;
  /** Widths at which no table of two or three columns scrolls. */
  const TABLE_WIDTHS = [360, 768];

  // Each page is opened once and looked at in every size: to open it is most of the work.
  test('fits a wide screen, by night too, and a telephone, and every text stands out from its ground', async () => {
    const { page } = await browser.visit(gateway.url);
    const tables = { narrow: 0, wide: 0 };
    const paths = PAGES.map((one) => `/docs/${one.name}`);
    for (const path of [...paths, '/docs?q=web+search']) {
      await page.goto(`${gateway.url}${path}`);
      for (const { width, colorScheme } of SIZES) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        // What is wider than the page scrolls in a box of its own.
        const [wide, dark] = await page.evaluate<[number, boolean]>(
          '[document.documentElement.scrollWidth - innerWidth, getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)"]',
        );
        const where = `${path} at ${width}, ${colorScheme}`;
        expect([where, wide, dark]).toEqual([where, 0, colorScheme === 'dark']);
        expect([where, await page.locator('body').evaluate(faintTexts)]).toEqual([where, []]);
        // A picture far below loads when it is scrolled to, and by night it is another one.
        const pictures = await page.evaluate<boolean>(
          `Promise.all([...document.images].map(async (one) => {
            one.loading = 'eager';
            while (!one.complete) await new Promise((go) => setTimeout(go, 10));
            return one.naturalWidth > 0;
          })).then((all) => all.every(Boolean))`,
        );
        expect([where, pictures]).toEqual([where, true]);
      }
      if (!paths.includes(path)) continue;
      for (const width of TABLE_WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        const found = await page.evaluate<[columns: number, over: number, shown: boolean][]>(
          `[...document.querySelectorAll('.table')].map((box) => [
            box.querySelectorAll('th').length,
            box.scrollWidth - box.clientWidth,
            box.getBoundingClientRect().right <= innerWidth,
          ])`,
        );
        for (const [columns, over, shown] of found) {
          expect([path, width, columns, shown]).toEqual([path, width, columns, true]);
          tables[columns <= 3 ? 'narrow' : 'wide']++;
          if (columns <= 3) expect([path, width, columns, over]).toEqual([path, width, columns, 0]);
        }
      }
    }
    expect(tables.narrow).toBeGreaterThan(100 * TABLE_WIDTHS.length);
    expect(tables.wide).toBeGreaterThan(40 * TABLE_WIDTHS.length);
  }, 300_000);

  test('the theme is chosen here or on the page, and is that of both', async () => {
    const { page } = await browser.visit(gateway.url, { colorScheme: 'light' });
    const paper = () =>
      page.locator('body').evaluate((body) => {
        const { backgroundColor } = body.ownerDocument.defaultView.getComputedStyle(body);
        return backgroundColor === 'rgb(255, 255, 255)' ? 'light' : 'dark';
      });
    await page.goto(`${gateway.url}/docs`);
    expect(await paper()).toBe('light');
    await page.getByRole('button', { name: 'Theme: that of the system' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    expect(await paper()).toBe('dark');
    await page.goto(`${gateway.url}/ui`);
    await page.getByRole('button', { name: 'Theme: dark' }).click();
    await page.goto(`${gateway.url}/docs/zh-CN`);
    expect(await paper()).toBe('light');
    await page.getByRole('button', { name: '主题：跟随系统' }).waitFor();
  });

  test('is searched without a script, and a hit leads to its place', async () => {
    const seen = await browser.visit(gateway.url, { javaScriptEnabled: false });
    const { page } = seen;
    await page.goto(`${gateway.url}/docs`);
    await page.getByRole('searchbox').fill('tool_text_shortened');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs?q=tool_text_shortened');
    const hit = page.locator('.hits a').first();
    expect(await hit.textContent()).toBe('Notes – tool_text_shortened');
    await hit.click();
    await page.waitForURL('**/docs/notes#tool_text_shortened');
    expect(await page.locator('#tool_text_shortened').isVisible()).toBe(true);
  });

  test('takes the keyboard: the first stop skips to the page', async () => {
    const seen = await browser.visit(gateway.url);
    const { page } = seen;
    await page.goto(`${gateway.url}/docs/recipes`);
    await page.keyboard.press('Tab');
    const skip = page.locator('.skip:focus');
    expect(await skip.textContent()).toBe('Skip to the page');
    expect((await skip.boundingBox())!.x).toBeGreaterThanOrEqual(0);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/recipes#content');
  });
});
