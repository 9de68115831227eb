/** One exchange as one view: what was asked beside what was answered, live and retried; and every filter by its chip. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import type { SamplesPage, Stats } from '../../src/ui/api/api.ts';
import { refuse, say } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { browserSuite } from './page-browser.ts';
import { type PageSetup, startPageSetup } from './page-setup.ts';

const CLIENT = 'a-client-key-of-the-tests-of-stories';
const OTHER = 'another-client-key-of-the-tests-of-stories';
const CLAUDE = {
  'user-agent': 'claude-cli/2.1.197 (external, cli)',
  'anthropic-version': '2023-06-01',
  'x-claude-code-session-id': 'session-of-the-story',
};
/** A red pixel. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

const tool = (name: string) => ({
  name,
  description: `To ${name}.`,
  input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
});
const user = (content: unknown) => ({ role: 'user', content });

browserSuite('the story of an exchange', (browser) => {
  let setup: PageSetup;
  let agent: string;
  let side: string;
  let retried: string;
  let failed: string;
  let slow: string;

  const messages = (body: object) =>
    setup.post('/v1/messages', { model: 'via-chat', max_tokens: 77, ...body }, CLAUDE);
  const usage = { input: 50_000, cached: 0, output: 10, reasoning: 0 };

  beforeAll(async () => {
    setup = await startPageSetup(
      {
        auth: {
          keys: [
            { name: 'agents', key: CLIENT, sees: 'all' },
            { name: 'apps', key: OTHER },
          ],
        },
        server_tools: {},
      },
      { input: 1, output: 2 },
      CLIENT,
    );
    const chat = (content: string) =>
      setup.post(
        '/v1/chat/completions',
        { model: 'via-responses', messages: [user(content)] },
        { authorization: `Bearer ${OTHER}` },
      );
    setup.upstream.enqueue(say('The parser is mended.', { usage }));
    agent = await messages({
      system: 'Be brief. '.repeat(500),
      tools: [tool('read_file'), tool('write_file')],
      messages: [
        user('Mend the parser.'),
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'toolu_1', name: 'read_file', input: { path: 'p.ts' } },
          ],
        },
        user([
          { type: 'tool_result', tool_use_id: 'toolu_1', content: 'const parser = broken();' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
          { type: 'text', text: 'And a picture.' },
        ]),
      ],
    });
    setup.upstream.enqueue(say('Three files.'));
    side = await messages({ system: 'You search files.', messages: [user('Count the files.')] });
    setup.upstream.enqueue(refuse(429), say('At last.'));
    retried = await chat('Try again.');
    setup.upstream.enqueue(refuse(400));
    failed = await chat('Fail.');
    setup.upstream.enqueue(say('Later.', { delivery: { firstByteMs: 900 } }));
    slow = await chat('Take your time.');
  }, 180_000);
  afterAll(async () => {
    await setup?.stop();
  });

  async function open(hash: string): Promise<Page> {
    const { page } = await browser.visit(setup.gateway.url);
    await page.addInitScript(
      `if (location.protocol === 'http:') sessionStorage.setItem('hopgate-key', '${CLIENT}')`,
    );
    await page.goto(`${setup.gateway.url}/ui${hash}`);
    return page;
  }

  test("an agent's reminders are folded beside what the user said, and opened by a search for them", async () => {
    const long = 'Never mention the lighthouse. '.repeat(300);
    setup.upstream.enqueue(say('Fine.'));
    const headers = { ...CLAUDE, 'x-claude-code-session-id': 'session-of-the-reminders' };
    const content = [
      { type: 'text', text: `<system-reminder>\n${long}</system-reminder>` },
      { type: 'text', text: 'Fix the bug.\n<system-reminder>Be brief.</system-reminder>' },
    ];
    const body = { model: 'via-chat', max_tokens: 9, messages: [user(content)] };
    const id = await setup.post('/v1/messages', body, headers);
    const { page, open } = await browser.visit(setup.gateway.url);
    await page.addInitScript(`sessionStorage.setItem('hopgate-key', ${JSON.stringify(CLIENT)})`);
    for (const view of ['#/s/session-of-the-reminders', `#/x/${id}`]) {
      await open(view);
      const turn = page.locator('.turn[data-role="user"]');
      const folds = turn.locator('details.folded');
      await folds.nth(1).waitFor();
      expect(await turn.locator('.block > .text').allInnerTexts()).toEqual(['Fix the bug.']);
      expect(await folds.evaluateAll((all) => all.map((one) => one.matches('[open]')))).toEqual([
        false,
        false,
      ]);
      await folds.nth(1).locator('summary').click();
      await folds.nth(1).getByText('Be brief.').waitFor();
      await folds.first().locator('summary').click();
      const more = folds.first().getByRole('button', { name: /more characters/ });
      const shown = async () => (await folds.first().textContent())?.match(/lighthouse/g)?.length;
      // The button goes when the last part has come, also between the question and the click.
      await until(async () => {
        if ((await shown()) === 300) return true;
        await more.click({ timeout: 1000 }).catch(() => {});
        return false;
      });
      expect(await shown()).toBe(300);
      expect(await page.locator('.session-head, .exchange-head').textContent()).not.toContain(
        'mention',
      );
    }
    await open(`#/x/${id}?q=lighthouse`);
    // The folds that were opened by hand are closed again.
    await page.reload();
    await page.locator('.turn details.folded[open]', { hasText: 'lighthouse' }).waitFor();
    expect(await page.locator('.turn details.folded[open]').count()).toBe(1);
  });

  test('instructions that an agent sends as a turn are folded in both views, and opened by a search for them', async () => {
    setup.upstream.enqueue(say('Fine.'));
    const headers = { ...CLAUDE, 'x-claude-code-session-id': 'session-of-the-instructions' };
    const messages = [
      user('Fix the bug.'),
      { role: 'system', content: `# Environment\n${'Mind the lighthouse.\n'.repeat(20)}` },
    ];
    const body = { model: 'via-chat', max_tokens: 9, messages };
    const id = await setup.post('/v1/messages', body, headers);
    for (const view of ['#/s/session-of-the-instructions', `#/x/${id}`]) {
      const page = await open(view);
      const folded = page.locator('.turn[data-role="system"] details.folded');
      await folded.waitFor();
      expect(await folded.textContent()).toBe('System prompt 434 characters');
      await folded.locator('summary').click();
      await folded.getByText('Mind the lighthouse.').first().waitFor();
    }
    const page = await open(`#/x/${id}?q=lighthouse`);
    await page.locator('.turn[data-role="system"] details.folded[open]').waitFor();
  });

  test('a chosen tab moves no other, a value of many words is no fact, and the time of another day is whole', async () => {
    const id = await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [user('Hi.')],
      user: `{"device":"${'0'.repeat(64)}"}`,
    });
    const page = await open(`#/x/${id}`);
    await page.locator('summary', { hasText: 'Other parameters user' }).waitFor();
    const places = () =>
      page.locator('.tabs a').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().x));
    const first = await places();
    expect(first).toHaveLength(4);
    for (const tab of ['2', '3', '4']) {
      await page.keyboard.press(tab);
      await page.locator(`.tabs a:nth-child(${tab})[aria-current]`).waitFor();
      expect(await places()).toEqual(first);
    }
    await page.clock.setFixedTime(Date.now() + 2 * 86_400_000);
    await page.goto('about:blank');
    await page.goto(`${setup.gateway.url}/ui#/`);
    const time = page.locator('.row .cell.time', { has: page.locator('.date') }).first();
    await time.waitFor();
    expect(await time.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  });

  test.each([390, 700, 1280])(
    '%i pixels: an open menu is inside the window, with all that it says',
    async (width) => {
      const page = await open('#/');
      await page.setViewportSize({ width, height: 800 });
      for (const hash of ['#/', '#/charts', `#/x/${agent}/timeline`]) {
        await page.goto('about:blank');
        await page.goto(`${setup.gateway.url}/ui${hash}`);
        await page.locator('.menu:visible > summary').first().waitFor();
        for (const menu of await page.locator('.menu:visible').all()) {
          await menu.locator('summary').click();
          const panel = menu.locator('.panel');
          const { x, width: wide } = (await panel.boundingBox())!;
          expect([hash, x >= 0, x + wide <= width]).toEqual([hash, true, true]);
          expect(await panel.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
          await menu.locator('summary').click();
        }
      }
    },
  );

  test('prompt and tools are folded, a call stands beside its result, the picture is seen, no inner name is', async () => {
    const page = await open(`#/x/${agent}`);
    const asked = page.getByRole('region', { name: 'Asked' });
    await page.locator('.answer', { hasText: 'The parser is mended.' }).waitFor();
    expect(await asked.locator('.folded[open], .tools[open]').count()).toBe(0);
    const folds = await asked.locator('summary').allTextContents();
    expect(folds).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^System prompt 5\s000 characters$/),
        '2 tools read_file, write_file',
        '1 earlier turn said before this exchange',
      ]),
    );
    expect(await asked.locator('.call', { hasText: 'read_file' }).count()).toBe(1);
    expect(await asked.locator('.result').textContent()).toContain('const parser = broken();');
    const picture = asked.locator('img');
    await until(async () => (await picture.evaluate((one) => one.naturalWidth)) === 1);
    const all = await page.locator('.speakers').textContent();
    expect(all).toContain('max tokens 77');
    expect(all).not.toMatch(/maxTokens|toolChoice|rest \{|context_management/);
    // Both halves are on one screen.
    const [left, right] = await page
      .locator('.speaker')
      .evaluateAll((halves) => halves.map((half) => half.getBoundingClientRect()));
    expect(left!.right).toBeLessThanOrEqual(right!.left);
    expect(right!.top).toBe(left!.top);
  });

  test('a diff between two protocols folds what both say, and shows what changed', async () => {
    const page = await open(`#/x/${agent}/diff`);
    await page.locator('.meaning').waitFor();
    const text = await page.locator('.meaning').textContent();
    expect(text).toContain('2 tools: the same, in another form');
    expect(text).toContain('Model: via-chat → m1');
  });

  test('a running answer grows, with its time', async () => {
    setup.upstream.enqueue(
      // The last kilobytes are held back on the way to disk: a key may not be complete.
      say(`one ${'and one more '.repeat(150)}at last`, {
        delivery: { firstByteMs: 100, paceMs: 15, piece: 5 },
      }),
    );
    const page = await open('#/');
    await page.locator('.feed[data-state="live"]').waitFor();
    const sent = setup.post('/v1/chat/completions', {
      model: 'via-chat',
      stream: true,
      messages: [user('Count.')],
    });
    await page.locator('.row[data-tone="open"]').click();
    const said = page.locator('.answer');
    await said.getByText('one').waitFor();
    const seen = new Set<string>();
    await until(async () => {
      seen.add((await said.textContent().catch(() => '')) ?? '');
      return seen.size > 3;
    });
    await page.locator('.growing, .pill-status[data-tone="open"]').first().waitFor();
    const grown = [...seen].map((text) => text.length);
    expect(grown).toEqual(grown.toSorted((a, b) => a - b));
    await sent;
    await said.getByText('at last').waitFor();
    // The last words can be there a moment before the end is.
    await until(async () => (await page.locator('.growing').count()) === 0);
  });

  test('tries are numbered, and the pause between them is drawn', async () => {
    const page = await open(`#/x/${retried}/timeline`);
    await page.locator('.waterfall .line').nth(2).waitFor();
    expect(await page.locator('.line-name b').allTextContents()).toEqual([
      'client',
      'attempt 1',
      'attempt 2',
    ]);
    expect(await page.locator('.waterfall li').nth(2).locator('rect.pause').count()).toBe(1);
    expect(await page.locator('.line-words').nth(2).textContent()).toStartWith('after a pause of');
    const [end, from, to] = await page.locator('.waterfall li').evaluateAll((lines) => {
      const side = (line: number, cls: string, end: boolean) => {
        const bar = lines[line]!.querySelectorAll(`rect${cls}`);
        const one = bar[bar.length - 1]!;
        const x = Number(one.getAttribute('x'));
        return end ? x + Number(one.getAttribute('width')) : x;
      };
      return [side(1, '', true), side(2, '.pause', false), side(2, '.pause', true)];
    });
    expect(from!).toBeLessThanOrEqual(end! + 1);
    expect(to!).toBeGreaterThan(from!);
  });

  test('a session with a subagent: two conversations, each alone on demand', async () => {
    const page = await open('#/s/session-of-the-story');
    await page.locator('.step').nth(1).waitFor();
    const threads = page.locator('.threads button');
    expect(await threads.count()).toBe(3);
    expect((await threads.allTextContents()).map((text) => text.split(':')[0])).toEqual([
      'All',
      'Main',
      'Side 1',
    ]);
    await threads.nth(2).click();
    expect(await page.locator('.step').count()).toBe(1);
    await page.locator(`.step-head a[href*="${side}"]`).waitFor();
  });

  test('every filter works alone, from a link, with a chip that says it', async () => {
    const page = await open('#/');
    await page.locator('.row').nth(4).waitFor();
    const ids = () =>
      page.locator('.row').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-id')));
    const apps = [slow, failed, retried];
    // On a busy machine others may be slow, too.
    const answer = await fetch(`${setup.gateway.url}/ui/api/samples?key=apps`, {
      headers: { authorization: `Bearer ${CLIENT}` },
    });
    const { rows } = (await answer.json()) as SamplesPage;
    const isSlow = (id: string) => (rows.find((row) => row.id === id)?.total_ms ?? 0) >= 800;
    const now = Date.now();
    for (const [query, chip, expected] of [
      ['key=apps', 'key apps', apps],
      [`client=Claude+Code&until=${now - 1}`, 'client Claude Code', undefined],
      ['session=session-of-the-story&model=via-chat&slower=0', 'session', undefined],
      ['model=via-responses', 'model via-responses', apps],
      ['target=responses', 'target responses', apps],
      ['error=invalid_request', 'error invalid_request', [failed]],
      ['cost=0.05', 'at least $0.05', [agent]],
      ['cost=$0.05', 'at least $0.05', [agent]],
      ['slower=0.8s&key=apps', /at least 0\.8s ×/, apps.filter(isSlow)],
      ['slower=800&key=apps', 'at least 800 ms', apps.filter(isSlow)],
      [`since=${now + 60_000}`, 'from 2', []],
      [`until=${now + 60_000}&key=apps`, 'to 2', apps],
    ] as const) {
      await page.goto('about:blank');
      await page.goto(`${setup.gateway.url}/ui#/?${query}`);
      await page.locator('.chip', { hasText: chip }).first().waitFor();
      if (expected === undefined) {
        await page.locator('.row').first().waitFor();
        expect(await ids()).toEqual(expect.arrayContaining([agent]));
        expect(await ids()).not.toContain(slow);
        continue;
      }
      const row = page.locator(expected.length > 0 ? '.row' : '.blank');
      await row.first().waitFor();
      expect([query, await ids()]).toEqual([query, [...expected]]);
    }
    await page.goto(`${setup.gateway.url}/ui#/?note=cache_control_dropped`);
    await page.locator('.chip', { hasText: 'note cache_control_dropped' }).waitFor();
  });

  test('a chart tells what a later attempt made good from what failed', async () => {
    const answer = await fetch(`${setup.gateway.url}/ui/api/stats?since=24h`, {
      headers: { authorization: `Bearer ${CLIENT}` },
    });
    const { all } = (await answer.json()) as Stats;
    const failures = Object.values(all.errors).reduce((sum, one) => sum + one, 0);
    const page = await open('#/charts?since=24h');
    const chart = page.locator('.chart').first();
    await chart.getByRole('button', { name: 'table' }).click();
    const rows = await chart.locator('tbody tr').all();
    const cells = await Promise.all(rows.map((row) => row.locator('td').allTextContents()));
    const sums = [0, 1, 2].map((i) => cells.reduce((sum, row) => sum + Number(row[i]), 0));
    expect(await chart.locator('thead th').allTextContents()).toEqual([
      'Time',
      'fine',
      'retried',
      'failed',
    ]);
    expect(all.failed).toBeGreaterThan(failures);
    expect(sums).toEqual([all.requests - all.failed, all.failed - failures, failures]);
  });

  test('bars have one scale, and begin with the wait', async () => {
    const page = await open('#/?key=apps');
    await page.locator('.row').nth(2).waitFor();
    const bar = async (id: string) =>
      page.locator(`.row[data-id="${id}"] .minibar`).evaluate((one) => {
        const { style } = one as unknown as { style: { getPropertyValue(name: string): string } };
        return ['--total', '--first'].map((name) => Number(style.getPropertyValue(name)));
      });
    const [long, waited] = await bar(slow);
    const [short] = await bar(failed);
    expect(long!).toBeGreaterThan(short! * 5);
    expect(waited! / long!).toBeGreaterThan(0.8);
    expect(await page.locator(`.row[data-id="${slow}"] .owner`).textContent()).toBe('apps');
    expect(await page.locator(`.row[data-id="${slow}"] .cell.cost`).textContent()).toContain('$');
  });
});
