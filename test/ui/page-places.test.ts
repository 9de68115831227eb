/** Tables in a narrow window, the cards of sessions, what three clicks lead to, and addresses of what is not there. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { refuse, say } from '../support/fake-upstream/index.ts';
import { browserSuite } from './page-browser.ts';
import { type PageSetup, startPageSetup } from './page-setup.ts';

const ADMIN = 'an-admin-key-of-the-tests-of-places';
const CLIENT = 'a-client-key-of-the-tests-of-places';
const CLAUDE = {
  'user-agent': 'claude-cli/2.1.197 (external, cli)',
  'anthropic-version': '2023-06-01',
  'x-claude-code-session-id': 'session-of-the-cards',
};

browserSuite('places of the page', (browser) => {
  let setup: PageSetup;
  let tides: string;

  const turn = (content: string) =>
    setup.post(
      '/v1/messages',
      { model: 'via-messages', max_tokens: 99, messages: [{ role: 'user', content }] },
      CLAUDE,
    );

  beforeAll(async () => {
    setup = await startPageSetup(
      {
        auth: { admin_keys: [ADMIN], keys: [{ name: 'agents', key: CLIENT, sees: 'all' }] },
        budgets: [{ name: 'all', usd: 1, per: 'month' }],
      },
      { input: 1, output: 2 },
      CLIENT,
    );
    setup.upstream.enqueue(
      say('First.', { usage: { input: 1000, cached: 0, output: 40, reasoning: 0 } }),
      say('Second.', { usage: { input: 3000, cached: 3000, output: 60, reasoning: 0 } }),
      refuse(400),
    );
    await turn('Mend the crane.');
    await turn('Test the crane.');
    await turn('Break the crane.');
    tides = await setup.threeHops();
  }, 180_000);
  afterAll(async () => {
    await setup?.stop();
  });

  async function open(hash: string, width = 1300): Promise<Page> {
    const { page } = await browser.visit(setup.gateway.url, { viewport: { width, height: 780 } });
    const kept = { 'hopgate-key': CLIENT, 'hopgate-admin-key': ADMIN };
    await page.addInitScript(
      `if (location.protocol === 'http:') for (const [name, value] of Object.entries(${JSON.stringify(kept)})) sessionStorage.setItem(name, value)`,
    );
    await page.goto(`${setup.gateway.url}/ui${hash}`);
    return page;
  }

  const ANSWERS: readonly (readonly [
    question: string,
    clicks: (page: Page) => readonly Locator[],
    answer: (page: Page) => Locator,
    words: RegExp,
  ])[] = [
    [
      'why a request was changed',
      (page) => [
        page.locator(`.row[data-id="${tides}"]`),
        page.getByRole('link', { name: 'Timeline' }),
      ],
      (page) => page.locator('.notelist li', { hasText: 'top_k' }).first(),
      /parameter_dropped.*target/s,
    ],
    [
      'what a session cost',
      (page) => [
        page.getByRole('link', { name: 'Sessions' }),
        page.locator('.session-card', { hasText: 'session-of-the-cards' }),
      ],
      (page) => page.locator('.session-head .facts div', { hasText: 'Cost' }),
      /\$0\.0042/,
    ],
    [
      'who spent most',
      (page) => [page.getByRole('link', { name: 'Usage' })],
      (page) => page.getByRole('table', { name: 'Usage in all' }).locator('tbody tr').first(),
      /^agents100 %\$0\.00/,
    ],
  ];

  test.each(ANSWERS)('a new user finds %s in three clicks', async (_, clicks, answer, words) => {
    const page = await open('#/');
    const all = clicks(page);
    expect(all.length).toBeLessThanOrEqual(3);
    for (const one of all) await one.click();
    await answer(page).waitFor();
    expect(await answer(page).textContent()).toMatch(words);
  });

  test('a table of 360 pixels: every cell is inside, as a card or in a box that scrolls by keyboard', async () => {
    const page = await open('#/', 360);
    await page.locator('.row').first().waitFor();
    setup.upstream.enqueue(say('Again.'));
    for (const [hash, ready, form] of [
      [`#/x/${tides}/timeline`, 'table.tokens', 'scrolls'],
      [`#/x/${tides}/messages?as=raw`, 'pre', undefined],
      ['#/keys', 'table.data tbody tr', 'cards'],
      ['#/budgets', 'table.data tbody tr', 'cards'],
      ['#/usage', 'table.data tbody tr', 'cards'],
      ['#/health', 'table.data tbody tr', 'cards'],
    ] as const) {
      await page.goto('about:blank');
      await page.goto(`${setup.gateway.url}/ui${hash}`);
      await page.locator(ready).first().waitFor();
      const found = await page.evaluate<{ forms: string[]; lost: string[] }>(`(() => {
        const forms = [];
        const lost = [];
        for (const table of document.querySelectorAll('table')) {
          if (!table.checkVisibility()) continue;
          const box = table.closest('.tablebox');
          forms.push(getComputedStyle(table).display === 'block' ? 'cards' : 'scrolls');
          const reach = box === null ? innerWidth : box.getBoundingClientRect().left + box.scrollWidth;
          if (box !== null && box.tabIndex !== 0) lost.push('the box takes no keys');
          for (const cell of table.querySelectorAll('tbody :is(th, td)')) {
            const { left, right } = cell.getBoundingClientRect();
            const label = getComputedStyle(cell, '::before').content;
            if (left < -0.5 || right > reach + 0.5) lost.push(cell.textContent + ' is outside');
            if (forms.at(-1) === 'cards' && cell.tagName === 'TD' && !/\\w/.test(label)) {
              lost.push(cell.textContent + ' has no name');
            }
          }
        }
        return { forms, lost };
      })()`);
      expect([hash, found.lost]).toEqual([hash, []]);
      if (form !== undefined) expect([hash, [...new Set(found.forms)]]).toEqual([hash, [form]]);
    }
  });

  test('the card of a session says who, when, what it began with, on which model, and what it took', async () => {
    const page = await open('#/sessions');
    const card = page.locator('.session-card', { hasText: 'session-of-the-cards' });
    await card.locator('.begins', { hasText: 'Mend the crane.' }).waitFor();
    expect(await card.locator('.session-title').textContent()).toBe(
      'Claude Codekey agentssession-of-the-cards',
    );
    expect(await card.locator('.when').textContent()).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, \d/,
    );
    expect(await card.locator('.models').textContent()).toContain('via-messages');
    expect(await card.locator('.session-facts > *').allTextContents()).toEqual([
      '3 exchanges',
      '1 failed',
      '4k in',
      '100 out',
      '75 % cached',
      '$0.0042',
    ]);
    // The newest session comes first.
    const ids = await page.locator('.session-card code').allTextContents();
    expect(ids).toEqual(['session-of-the-tides', 'session-of-the-cards']);
  });

  test('the session of a card on a phone is as wide as the phone', async () => {
    const page = await open('#/sessions', 360);
    const card = page.locator('.session-card').first();
    await card.waitFor();
    const { x, width } = (await card.boundingBox())!;
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(360);
    expect(width).toBeGreaterThan(300);
  });

  test('an exchange that is not there: a sentence, no empty tabs, and a way back', async () => {
    browser.tolerate(/Failed to load resource/);
    const page = await open('#/x/req_1_none/diff');
    const missing = page.locator('.missing');
    await missing.getByRole('alert').waitFor();
    expect(await missing.textContent()).toContain('req_1_none');
    expect(await missing.textContent()).toContain('It may have been removed since');
    expect(await page.locator('.tabs a').count()).toBe(0);
    expect(await page.locator('.exchange[aria-busy]').count()).toBe(0);
    await page.keyboard.press('4');
    expect(await page.locator('.missing').count()).toBe(1);
    await page.getByRole('link', { name: 'Show all exchanges' }).click();
    await page.locator('.shell[data-place="list"]').waitFor();
    await page.locator('.row').first().waitFor();
  });

  test('a session that is not there: a sentence, and a way back', async () => {
    browser.tolerate(/Failed to load resource/);
    const page = await open('#/s/nobody');
    await page.locator('.steps').getByRole('alert').waitFor();
    await page.getByRole('link', { name: 'All sessions' }).last().click();
    await page.locator('.session-card').first().waitFor();
  });
});
