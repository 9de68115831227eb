/** Finding exchanges in a browser: by what was said, by filters and their chips, sorted, and as sessions. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { say } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { browserSuite } from './page-browser.ts';
import { faintTexts } from './page-contrast.ts';
import { type PageSetup, startPageSetup } from './page-setup.ts';

const CLAUDE = {
  'user-agent': 'claude-cli/2.1.197 (external, cli)',
  'anthropic-version': '2023-06-01',
  'x-claude-code-session-id': 'session-of-the-parser',
};

browserSuite('finding exchanges', (browser) => {
  let setup: PageSetup;
  let chinese: string;
  let slow: string;
  let turns: string[];

  /** A turn of an agent's session. */
  const turn = (system: string, messages: readonly object[], cached: number, answer: string) => {
    setup.upstream.enqueue(
      say(answer, { usage: { input: 9000, cached, output: 40, reasoning: 0 } }),
    );
    return setup.post(
      '/v1/messages',
      {
        model: 'via-messages',
        max_tokens: 500,
        system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
        messages,
      },
      CLAUDE,
    );
  };
  const user = (content: string) => ({ role: 'user', content });
  const assistant = (content: string) => ({ role: 'assistant', content });

  beforeAll(async () => {
    setup = await startPageSetup();
    const chat = (content: string) =>
      setup.post('/v1/chat/completions', {
        model: 'via-chat',
        messages: [{ role: 'user', content }],
      });
    setup.upstream.enqueue(say('请先刷新令牌。'));
    chinese = await chat('用户登录失败，怎么办？');
    setup.upstream.enqueue(
      say('Later.', {
        delivery: { firstByteMs: 4000 },
        usage: { input: 12, cached: 0, output: 3, reasoning: 0 },
      }),
    );
    // The others are made meanwhile.
    const late = chat('Take your time.');
    await until(() => setup.upstream.modelRequests.length === 2);
    const ask = [user('Fix the login bug in the parser.')];
    const first = assistant('The **lexer** drops a token:\n\n```ts\nconst token = next();\n```');
    turns = [
      await turn('Be brief.', ask, 0, first.content),
      await turn(
        'Be brief.',
        [...ask, first, user('Write a test.')],
        8900,
        'Done: `parser.test.ts`.',
      ),
      await turn(
        'Be brief. It is noon.',
        [
          ...ask,
          first,
          user('Write a test.'),
          assistant('Done: `parser.test.ts`.'),
          user('Commit it.'),
        ],
        0,
        'Committed.',
      ),
    ];
    slow = await late;
  }, 180_000);
  afterAll(async () => {
    await setup?.stop();
  });

  const open = async (hash: string, options?: BrowserContextOptions): Promise<Page> => {
    const visit = await browser.visit(setup.gateway.url, options);
    await visit.open(hash);
    return visit.page;
  };
  const ids = (page: Page) =>
    page.locator('.row').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-id')));

  test('the search finds what was said, in Chinese as in English, and shows the place', async () => {
    const page = await open('#/');
    await page.locator('.row').nth(4).waitFor();
    const search = page.getByPlaceholder('Search what was said');
    for (const [words, mark, expected] of [
      ['login bug', 'login', [turns[0]]],
      ['登录', '登录', [chinese]],
      ['刷新令牌', '刷新令牌', [chinese]],
      ['"drops a token"', 'drops a token', [turns[0]]],
    ] as const) {
      await search.fill(words);
      await page.locator('.hit mark', { hasText: mark }).first().waitFor();
      expect([words, await ids(page)]).toEqual([words, [...expected]]);
    }
    await page.locator('.row').click();
    await page.locator('.answer', { hasText: 'lexer' }).waitFor();
    const marked = await page.evaluate('CSS.highlights.get("search")?.size ?? 0');
    expect(marked).toBeGreaterThan(0);
  });

  test('a search is asked again while exchanges are still being read for it', async () => {
    const page = await open('#/');
    let asked = 0;
    await page.route(/\/ui\/api\/samples\?.*\bq=/, async (route) => {
      const response = await route.fetch();
      const found = await response.json();
      const early = { ...found, rows: [], hits: {}, unread: 2 };
      await route.fulfill({ response, json: asked++ === 0 ? early : found });
    });
    await page.getByPlaceholder('Search what was said').fill('login bug');
    await page.getByText('2 recorded exchanges are still being read').waitFor();
    await page.locator('.hit mark', { hasText: 'login' }).first().waitFor();
    expect(await page.getByText('are still being read').count()).toBe(0);
  });

  test('filters stand as chips and in the address', async () => {
    const page = await open('#/');
    await page.locator('.row').first().waitFor();
    await page.locator(`.row[data-id="${turns[0]}"] .client`).click();
    await until(async () => (await page.locator('.row').count()) === 3);
    await page.locator('.chip', { hasText: 'client Claude Code' }).waitFor();
    expect(page.url()).toContain('client=Claude+Code');
    await page.locator('.chip').click();
    await until(async () => (await page.locator('.row').count()) === 5);
    await page.getByLabel('More filters').click();
    await page
      .getByRole('textbox', { name: 'Slower than' })
      .or(page.getByLabel('Slower than'))
      .fill('3.9s');
    await page.keyboard.press('Enter');
    await until(async () => (await page.locator('.row').count()) === 1);
    expect(await ids(page)).toEqual([slow]);
    expect(page.url()).toContain('slower=3.9s');
  });

  test('headings sort, a wide window has more columns, and the theme is kept', async () => {
    const page = await open('#/');
    await page.locator('.row').nth(4).waitFor();
    await page.getByRole('button', { name: 'Sort by Total' }).click();
    await page.locator(`.row[aria-rowindex="1"][data-id="${slow}"]`).waitFor();
    expect(page.url()).toContain('sort=total');
    await page.getByRole('button', { name: 'Sort by Total' }).click();
    await page.locator(`.row[aria-rowindex="5"][data-id="${slow}"]`).waitFor();
    const row = page.locator(`.row[data-id="${turns[0]}"]`);
    await page.setViewportSize({ width: 1000, height: 800 });
    await until(async () => (await row.locator('.cell.cached').count()) === 0);
    await page.setViewportSize({ width: 1900, height: 800 });
    await row.locator('.cell.cached').waitFor();
    const paper = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const before = await paper();
    await page.locator('.theme').click();
    await page.locator('.theme').click();
    expect(await paper()).not.toBe(before);
    expect(await page.locator('body').evaluate(faintTexts)).toEqual([]);
    await page.reload();
    await row.waitFor();
    expect(await paper()).not.toBe(before);
  });

  test('the page is in Chinese where the browser prefers it; the switch changes that and is kept', async () => {
    const page = await open('#/', { locale: 'zh-CN' });
    const row = page.locator(`.row[data-id="${turns[0]}"]`);
    await row.locator('.asked').waitFor();
    const places = page.locator('.places a');
    expect(await places.allTextContents()).toEqual(['请求', '会话', '图表', '用量', '健康状况']);
    expect(await page.getAttribute('html', 'lang')).toBe('zh-CN');
    expect(await row.getAttribute('aria-label')).toMatch(
      /^\d\d:\d\d:\d\d，状态 200，via-messages，/,
    );
    expect(await row.locator('.asked').textContent()).toBe('Fix the login bug in the parser.');
    await browser.seen.open('#/s/session-of-the-parser');
    const lost = page.locator('.cache-lost');
    await lost.waitFor();
    expect(await lost.textContent()).toMatch(
      /个 token 的缓存没有用上。 系统提示词在第 \d+ 个字符处变了/,
    );
    await page.getByRole('button', { name: 'English' }).click();
    await page.locator('.places a', { hasText: 'Exchanges' }).waitFor();
    await page.reload();
    await page.locator('.places a', { hasText: 'Exchanges' }).waitFor();
    expect(await page.getAttribute('html', 'lang')).toBe('en');
  });

  test('a session is one conversation, with what each turn added, and where the cache was lost', async () => {
    const page = await open('#/sessions');
    const card = page.locator('.session-card', { hasText: 'session-of-the-parser' });
    await card.waitFor();
    expect(await card.textContent()).toContain('3 exchanges');
    await card.click();
    const steps = page.locator('.step');
    await steps.nth(2).waitFor();
    // The first turn is in the first step only, the answers are shown where they were given.
    expect(await page.getByText('Fix the login bug in the parser.').count()).toBe(1);
    expect(await steps.nth(1).locator('.turn').count()).toBe(2);
    expect(await steps.nth(1).textContent()).toContain('99 % from the cache');
    const lost = steps.nth(2).locator('.cache-lost');
    expect(await lost.getAttribute('data-change')).toBe('system');
    expect(await lost.textContent()).toContain('It is noon.');
    expect(await page.locator('.cache-lost').count()).toBe(1);
    await steps.nth(2).locator('.step-head a').click();
    await page.locator('.answer', { hasText: 'Committed.' }).waitFor();
    expect(page.url()).toContain(turns[2]!);
  });

  test('Markdown and code are readable', async () => {
    const page = await open(`#/x/${turns[0]}`);
    await page.locator('.answer strong', { hasText: 'lexer' }).waitFor();
    expect(await page.locator('.answer .md-code pre').textContent()).toBe('const token = next();');
    expect(await page.locator('.folded', { hasText: 'System prompt' }).count()).toBe(1);
  });

  test('a narrow window shows everything without sideways scrolling', async () => {
    const page = await open('#/', { viewport: { width: 390, height: 800 } });
    for (const [hash, ready] of [
      ['#/?q=login', '.hit mark'],
      ['#/sessions', '.session-card'],
      ['#/s/session-of-the-parser', '.step'],
      [`#/x/${turns[0]}`, '.answer'],
    ] as const) {
      await browser.seen.open(hash);
      await page.locator(ready).first().waitFor();
      const wide = await page
        .locator('html,.page-pane,.tab-body,.filters')
        .evaluateAll((boxes) =>
          boxes
            .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
            .map((box) => `${box.className || box.tagName} ${box.scrollWidth}`),
        );
      expect([hash, wide]).toEqual([hash, []]);
    }
  });
});
