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

/** An address, and an element that is there once it is ready. */
type View = readonly [path: string, ready: string];

interface Look {
  readonly size: { readonly width: number; readonly height: number };
  readonly theme?: 'light' | 'dark';
  /** What is wrong with the view that is open. */
  faults(page: Page): Promise<readonly unknown[]>;
  /** The views that are looked at; left out: all. */
  of?(view: View): boolean;
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

  const views = (): readonly View[] => [
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
  ];

  async function visit(options: BrowserContextOptions): Promise<Page> {
    const { page } = await browser.visit(setup.gateway.url, options);
    const kept = { 'hopgate-key': CLIENT, 'hopgate-admin-key': ADMIN };
    await page.addInitScript(
      `if (location.protocol === 'http:') for (const [name, value] of Object.entries(${JSON.stringify(kept)})) sessionStorage.setItem(name, value)`,
    );
    return page;
  }

  const open = async (page: Page, [path, ready]: View): Promise<void> => {
    await page.goto('about:blank');
    await page.goto(setup.gateway.url + path);
    await page.locator(ready).first().waitFor();
  };

  /** What reaches over the edge of a phone's screen, cut columns of tokens, and the rows of the two bodies of a comparison. */
  async function phoneFaults(page: Page): Promise<readonly unknown[]> {
    const over = await page
      .locator('button, select, input, .button')
      .evaluateAll((controls) =>
        controls
          .filter((one) => one.getBoundingClientRect().right > 390 && one.closest('nav') === null)
          .map((one) => `${one.className} ${one.textContent}`),
      );
    const picked = await page
      .locator('.pickers select')
      .evaluateAll((choices) => choices.map((one) => one.getBoundingClientRect().top));
    const cut = await page
      .locator('.tablebox:has(.tokens)')
      .evaluateAll((boxes) =>
        boxes
          .filter((box) => box.scrollWidth > box.clientWidth + 1)
          .map((box) => `cut: ${box.textContent}`),
      );
    return [...over, ...cut, ...(new Set(picked).size > 1 ? [picked] : [])];
  }

  /** What scrolls sideways, and lines that are too long to read. */
  async function wideFaults(page: Page): Promise<readonly unknown[]> {
    const wide = await page
      .locator('html, main, .page-pane, .tab-body, .charts-pane, .filters, .exchange')
      .evaluateAll((boxes) =>
        boxes
          .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
          .map((box) => `${box.className || box.tagName} ${box.scrollWidth}`),
      );
    return [...wide, ...(await page.locator('body').evaluate(longLines))];
  }

  const isOfPage = ([path]: View) => path.startsWith('/ui');

  /** Each way to look at a view: the window, the theme, what is looked for, and which views. */
  const LOOKS = {
    'axe finds nothing on any view (light, 1300 pixels)': {
      size: { width: 1300, height: 800 },
      faults: (page: Page) => violations(page),
    },
    'axe finds nothing on any view (dark, 1300 pixels)': {
      size: { width: 1300, height: 800 },
      theme: 'dark',
      // A theme changes colours alone.
      faults: (page: Page) => violations(page, ['color-contrast']),
    },
    'axe finds nothing on any view (light, 360 pixels)': {
      size: { width: 360, height: 800 },
      faults: (page: Page) => violations(page),
    },
    'a phone: no control reaches over the edge of the screen, and the two bodies of a comparison are chosen in one line (en)':
      { size: { width: 390, height: 844 }, faults: phoneFaults, of: isOfPage },
    'a 4K screen: nothing scrolls sideways, and prose stays as narrow as it is read': {
      size: { width: 3840, height: 2160 },
      faults: wideFaults,
    },
  } as const satisfies Record<string, Look>;
  type LookName = keyof typeof LOOKS;

  const prose = (): readonly View[] => [
    [`/ui#/x/${told}`, '.answer .text'],
    ['/ui#/s/session-of-the-prose', '.step .turn'],
    [`/ui#/x/${told}/messages`, '.talk'],
  ];

  /** Opens each view once and looks at it in every way: what is wrong, by the name of the look. */
  async function lookAtAll(): Promise<ReadonlyMap<LookName, readonly unknown[]>> {
    const page = await visit({});
    const found = new Map<LookName, unknown[]>();
    for (const view of [...views(), ...prose()]) {
      await open(page, view);
      for (const name of Object.keys(LOOKS) as LookName[]) {
        const { size, theme = 'light', faults, of = () => true }: Look = LOOKS[name];
        if (!of(view)) continue;
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme: theme });
        // Observers of sizes draw in the first frame, what they have changed is there in the second.
        await page.evaluate(
          'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
        );
        const wrong = await faults(page);
        if (wrong.length > 0) found.set(name, [...(found.get(name) ?? []), [view[0], wrong]]);
      }
      await page.setViewportSize(LOOKS['axe finds nothing on any view (light, 1300 pixels)'].size);
      await page.emulateMedia({ colorScheme: 'light' });
    }
    return found;
  }

  let looked: ReturnType<typeof lookAtAll> | undefined;

  test.each(Object.keys(LOOKS) as LookName[])('%s', async (name) => {
    // The view of an exchange that is not there.
    browser.tolerate(/Failed to load resource/);
    looked ??= lookAtAll();
    expect((await looked).get(name) ?? []).toEqual([]);
  });

  test('a phone: no control reaches over the edge of the screen, and the two bodies of a comparison are chosen in one line, and no comma is English (zh-CN)', async () => {
    browser.tolerate(/Failed to load resource/);
    const page = await visit({ viewport: { width: 390, height: 844 } });
    await page.addInitScript(
      "if (location.protocol === 'http:') localStorage.setItem('hopgate-language', 'zh-CN')",
    );
    const all: unknown[] = [];
    for (const view of views().filter(isOfPage)) {
      await open(page, view);
      const wrong = await phoneFaults(page);
      // A comma of English behind or before a Chinese word.
      const text = (await page.locator('.shell').textContent()) ?? '';
      const commas =
        text.match(/.{0,20}(?:\p{Script=Han}[,;] |[,;] \p{Script=Han}).{0,20}/gu) ?? [];
      if (wrong.length + commas.length > 0) all.push([view[0], wrong, commas]);
    }
    expect(all).toEqual([]);
  });

  test.each(['en', 'zh-CN'])(
    'the filters beside an exchange need no third line (%s)',
    async (language) => {
      const page = await visit({ viewport: { width: 1280, height: 850 } });
      await page.addInitScript(
        `if (location.protocol === 'http:') localStorage.setItem('hopgate-language', '${language}')`,
      );
      await open(page, [`/ui#/x/${tides}`, '.answer .text']);
      const tops = await page
        .locator('.list-page .filters > :is(.segments, select, .menu)')
        .evaluateAll((parts) => parts.map((part) => Math.round(part.getBoundingClientRect().top)));
      expect(tops).toHaveLength(3);
      expect(new Set(tops).size).toBe(1);
    },
  );

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
