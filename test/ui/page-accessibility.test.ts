/** The rules of axe over every view of the page and of the manual, in both themes; and what moves for those who want no motion. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { say } from '../support/fake-upstream/index.ts';
import { browserSuite } from './page-browser.ts';
import { longLines } from './page-prose.ts';
import { type PageSetup, startPageSetup } from './page-setup.ts';

const ADMIN = 'an-admin-key-of-the-accessibility-tests';
const CLIENT = 'a-client-key-of-the-accessibility-tests';
const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/**
 * What axe finds on the page: the rule and the elements.
 * @param rules left out: all
 */
async function violations(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  // What is still fading in has another contrast than a moment later.
  await page.evaluate(
    'Promise.all(document.getAnimations().filter((one) => one.effect.getTiming().iterations !== Infinity).map((one) => one.finished))',
  );
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(AXE);
  const found = await page.evaluate<{ id: string; nodes: { html: string; target: string[] }[] }[]>(
    `axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })}).then(({ violations }) => violations)`,
  );
  return found.flatMap(({ id, nodes }) =>
    nodes.slice(0, 4).map(({ html, target }) => `${id}: ${target.join(' ')} ${html.slice(0, 160)}`),
  );
}

browserSuite('the page and the manual for everybody', (browser) => {
  let setup: PageSetup;
  let tides: string;
  let refused: string;
  let told: string;

  beforeAll(async () => {
    setup = await startPageSetup(
      {
        auth: { admin_keys: [ADMIN], keys: [{ name: 'fixed', key: CLIENT, sees: 'all' }] },
        budgets: [{ name: 'all', usd: 1, per: 'month' }],
      },
      { input: 1, output: 2 },
      CLIENT,
    );
    tides = await setup.threeHops();
    setup.upstream.enqueue({ status: 400 });
    refused = await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    const prose = 'The tide turns, and the water that was so far out comes back over the flats. ';
    setup.upstream.enqueue(say(`${prose.repeat(40)}\n\n- ${prose.repeat(20)}`));
    told = await setup.post(
      '/v1/messages',
      {
        model: 'via-chat',
        max_tokens: 100,
        system: prose.repeat(20),
        messages: [{ role: 'user', content: prose.repeat(40) }],
      },
      { 'anthropic-version': '2023-06-01', 'x-claude-code-session-id': 'session-of-the-prose' },
    );
  }, 180_000);
  afterAll(async () => {
    await setup?.stop();
  });

  /** Every view, and an element that is there once it is ready. */
  const views = () =>
    [
      ['/ui#/', '.story .answered'],
      ['/ui#/?q=Brest&model=via-chat', '.hit mark'],
      ['/ui#/?q=nothing-of-the-kind', '.blank'],
      ['/ui#/sessions', '.session-card .begins'],
      ['/ui#/s/session-of-the-tides', '.step .turn'],
      [`/ui#/x/${tides}`, '.answer .text'],
      [`/ui#/x/${tides}/timeline`, '.notelist .note-about'],
      [`/ui#/x/${tides}/messages`, '.talk'],
      [`/ui#/x/${tides}/messages?as=json`, '.tree'],
      [`/ui#/x/${tides}/messages?as=raw`, 'pre'],
      [`/ui#/x/${tides}/diff`, '.meaning'],
      [`/ui#/x/${tides}/diff?as=json`, '.changelist'],
      [`/ui#/x/${tides}/messages?as=events`, '.events'],
      [`/ui#/x/${tides}/replay`, '.jobform'],
      [`/ui#/x/${refused}`, '.exchange-head .pill-status, .exchange-head h1'],
      [`/ui#/x/${refused}/bisect`, '.jobform'],
      ['/ui#/x/req_1_none', '.missing'],
      ['/ui#/charts', '.chart rect.mark'],
      ['/ui#/keys', '.page-pane h1'],
      ['/ui#/keys/new', '.key-form'],
      ['/ui#/keys/fixed', '.key-grid'],
      ['/ui#/budgets', '.budget-bar'],
      ['/ui#/usage', '.usage-chart rect.mark'],
      ['/ui#/health', '.provider'],
      ['/ui#/audit', '.chain .state'],
      ['/docs', 'main h1'],
      ['/docs/limits', 'main h1'],
      ['/docs/browser', 'main h1'],
      ['/docs/browser.zh-CN', 'main h1'],
      ['/docs?q=streaming', '.hits'],
      ['/docs?q=nothing-of-the-kind', 'main h1'],
    ] as const;

  async function visit(options: BrowserContextOptions): Promise<Page> {
    const { page } = await browser.visit(setup.gateway.url, options);
    const kept = { 'hopgate-key': CLIENT, 'hopgate-admin-key': ADMIN };
    await page.addInitScript(
      `if (location.protocol === 'http:') for (const [name, value] of Object.entries(${JSON.stringify(kept)})) sessionStorage.setItem(name, value)`,
    );
    return page;
  }

  for (const [colorScheme, width, rules] of [
    ['light', 1300, undefined],
    ['light', 360, undefined],
    // A theme changes colours alone.
    ['dark', 1300, ['color-contrast']],
  ] as const) {
    test(`axe finds nothing on any view (${colorScheme}, ${width} pixels)`, async () => {
      // The view of an exchange that is not there.
      browser.tolerate(/Failed to load resource/);
      const page = await visit({ colorScheme, viewport: { width, height: 800 } });
      const all: unknown[] = [];
      for (const [path, ready] of views()) {
        await page.goto('about:blank');
        await page.goto(setup.gateway.url + path);
        await page.locator(ready).first().waitFor();
        const found = await violations(page, rules);
        if (found.length > 0) all.push([path, found]);
      }
      expect(all).toEqual([]);
    });
  }

  test('a 4K screen: nothing scrolls sideways, and prose stays as narrow as it is read', async () => {
    browser.tolerate(/Failed to load resource/);
    const page = await visit({ viewport: { width: 3840, height: 2160 } });
    const all: unknown[] = [];
    const long = [
      [`/ui#/x/${told}`, '.answer .text'],
      ['/ui#/s/session-of-the-prose', '.step .turn'],
      [`/ui#/x/${told}/messages`, '.talk'],
    ] as const;
    for (const [path, ready] of [...views(), ...long]) {
      await page.goto('about:blank');
      await page.goto(setup.gateway.url + path);
      await page.locator(ready).first().waitFor();
      const wide = await page
        .locator('html, main, .page-pane, .tab-body, .charts-pane, .filters, .exchange')
        .evaluateAll((boxes) =>
          boxes
            .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
            .map((box) => `${box.className || box.tagName} ${box.scrollWidth}`),
        );
      const lines = await page.locator('body').evaluate(longLines);
      if (wide.length + lines.length > 0) all.push([path, wide, lines]);
    }
    expect(all).toEqual([]);
  });

  for (const language of ['en', 'zh-CN']) {
    test(`a phone: no control reaches over the edge of the screen, and the two bodies of a comparison are chosen in one line (${language})`, async () => {
      browser.tolerate(/Failed to load resource/);
      const page = await visit({ viewport: { width: 390, height: 844 } });
      await page.addInitScript(
        `if (location.protocol === 'http:') localStorage.setItem('hopgate-language', '${language}')`,
      );
      const all: unknown[] = [];
      for (const [path, ready] of views().filter(([path]) => path.startsWith('/ui'))) {
        await page.goto('about:blank');
        await page.goto(setup.gateway.url + path);
        await page.locator(ready).first().waitFor();
        const over = await page
          .locator('button, select, input, .button')
          .evaluateAll((controls) =>
            controls
              .filter(
                (one) => one.getBoundingClientRect().right > 390 && one.closest('nav') === null,
              )
              .map((one) => `${one.className} ${one.textContent}`),
          );
        const picked = await page
          .locator('.pickers select')
          .evaluateAll((choices) => choices.map((one) => one.getBoundingClientRect().top));
        if (over.length > 0 || new Set(picked).size > 1) all.push([path, over, picked]);
      }
      expect(all).toEqual([]);
    });
  }

  test('axe finds nothing in open menus, folds and the dialog of the keys', async () => {
    const page = await visit({});
    await page.goto(`${setup.gateway.url}/ui#/`);
    await page.locator('.row').first().waitFor();
    await page.getByLabel('More filters', { exact: true }).click();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.locator('dialog[open]').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.goto(`${setup.gateway.url}/ui#/x/${tides}/replay`);
    await page.locator('.jobform').waitFor();
    for (const fold of await page.locator('.jobform summary').all()) await fold.click();
    expect(await violations(page)).toEqual([]);
  });

  test('nothing moves for a reader who wants no motion', async () => {
    const page = await visit({ reducedMotion: 'reduce' });
    setup.upstream.enqueue({
      parts: [{ kind: 'text', text: 'At last.' }],
      delivery: { firstByteMs: 2500 },
    });
    await page.goto(`${setup.gateway.url}/ui#/`);
    await page.locator('.row').first().waitFor();
    const asked = setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Take your time.' }],
    });
    await page.locator('.row[data-tone="open"]').waitFor();
    expect(await page.evaluate<number>('document.getAnimations().length')).toBe(0);
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect(await page.evaluate<number>('document.getAnimations().length')).toBeGreaterThan(0);
    await asked;
  });
});
