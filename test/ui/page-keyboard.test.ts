/** The page by keyboard alone: from the list to an exchange, its diff, a replay, its session, a search and the settings. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { say } from '../support/fake-upstream/index.ts';
import { browserSuite } from './page-browser.ts';
import { type PageSetup, startPageSetup, TIDES } from './page-setup.ts';

/** The focused element as a reader hears and sees it. */
const FOCUSED = `(() => {
  const one = document.activeElement;
  const label = one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent;
  const style = getComputedStyle(one);
  return {
    name: (label ?? one.textContent).trim(),
    // A check box or a row shows the focus around itself as well.
    marked: style.outlineStyle !== 'none' || style.boxShadow !== 'none',
    shown: one.checkVisibility() && one.getBoundingClientRect().width > 0,
  };
})()`;

interface Focused {
  readonly name: string;
  readonly marked: boolean;
  readonly shown: boolean;
}

browserSuite('the page by keyboard alone', (browser) => {
  let setup: PageSetup;
  let tides: string;

  beforeAll(async () => {
    setup = await startPageSetup();
    tides = await setup.threeHops();
    setup.upstream.enqueue(say('Low water is at six.'));
    await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'And low tide?' }],
    });
  }, 180_000);
  afterAll(async () => {
    await setup?.stop();
  });

  const focused = (page: Page) => page.evaluate<Focused>(FOCUSED);

  /** Presses Tab until an element of this name has the focus; every stop on the way must be seen and have a name. */
  async function tabTo(page: Page, name: RegExp, backwards = false): Promise<void> {
    const passed: string[] = [];
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press(backwards ? 'Shift+Tab' : 'Tab');
      // Behind the last stop Tab leaves the page.
      if (await page.evaluate<boolean>('document.activeElement === document.body')) continue;
      const now = await focused(page);
      passed.push(now.name.slice(0, 60));
      expect(now).toMatchObject({ marked: true, shown: true });
      expect(now.name).not.toBe('');
      if (name.test(now.name)) return;
    }
    throw new Error(`no stop of Tab is named ${name}: ${passed.join(' | ')}`);
  }

  test('list, exchange, diff, replay, session, search and settings', async () => {
    const { page, open } = await browser.visit(setup.gateway.url);
    await open('#/');
    await page.locator('.row').nth(1).waitFor();

    // The list: the second row is the one with three hops.
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.locator(`.row[data-id="${tides}"][aria-selected="true"]`).waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.answer .text', { hasText: TIDES }).waitFor();

    // The diff, and its changes one by one.
    await page.keyboard.press('3');
    await page.locator('.meaning').waitFor();
    await page.keyboard.press('v');
    await page.locator('.changelist').waitFor();
    await page.keyboard.press('n');
    await page.locator('.changelist .here').waitFor();

    // A replay of it.
    await page.keyboard.press('r');
    await page.locator('.jobform').waitFor();
    setup.upstream.enqueue(say('High water at Brest is at one.'));
    await tabTo(page, /^Replay$/);
    // The link of this name comes before the button.
    while (
      await page.evaluate<boolean>("document.activeElement.closest('.jobform button') === null")
    ) {
      await tabTo(page, /^Replay$/);
    }
    await page.keyboard.press('Enter');
    await page.getByText('Done: 1 of 1 request').waitFor();
    await page.locator('.answer-text', { hasText: 'is at one' }).waitFor();

    // Its session, by the list of sessions.
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    await page.locator('.session-card').waitFor();
    await page.keyboard.press('j');
    expect((await focused(page)).name).toContain('session-of-the-tides');
    await page.keyboard.press('Enter');
    await page.locator('.step').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.locator('.answer .text', { hasText: TIDES }).waitFor();
    expect(page.url()).toContain(tides);

    // The filter of the session away, a search, and from it to what was found.
    await page.keyboard.press('Escape');
    await page.locator('.chip').waitFor();
    await tabTo(page, /^session session-of-the-tides/);
    await page.keyboard.press('Enter');
    await page.locator('.row').nth(1).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('low tide');
    await page.keyboard.press('Enter');
    await page.locator('.hit mark', { hasText: 'low' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.locator('.row[aria-selected="true"]').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.answer', { hasText: 'Low water is at six.' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await page.locator('.row').nth(1).waitFor();

    // A menu is left by Escape, and the theme is another one.
    await page.reload();
    await page.locator('.row').nth(1).waitFor();
    await tabTo(page, /^More filters$/);
    await page.keyboard.press('Enter');
    await tabTo(page, /^Model$/);
    await page.keyboard.press('Escape');
    expect((await focused(page)).name).toBe('More filters');
    await tabTo(page, /^Theme: system/, true);
    await page.keyboard.press('Enter');
    await page.locator('html[data-theme="light"]').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('html[data-theme="dark"]').waitFor();
  });

  // Keys that come in one go, before the browser has a moment for anything else.
  test.each([
    [['g', 'c', 'g', 'l'], '#/', '.list-page'],
    [['g', 'k', 'n'], '#/keys/new', '.admin-page'],
    [['j', 'Enter', '2'], '/timeline', '.exchange[data-tab=timeline]'],
    [['j', 'Enter', 'Escape', 'g', 'c'], '#/charts', '.charts-bar'],
  ] as const)(
    'what is typed right after a key that leads elsewhere belongs there: %p',
    async (keys, hash, seen) => {
      // This gateway has no admin API.
      browser.tolerate(/Failed to load resource/);
      const { page, open } = await browser.visit(setup.gateway.url);
      await open('#/');
      await page.locator('.row').nth(1).waitFor();
      await page.evaluate(`for (const key of ${JSON.stringify(keys)}) {
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      }`);
      expect(new URL(page.url()).hash).toEndWith(hash);
      await page.locator(seen).first().waitFor();
    },
  );
});
