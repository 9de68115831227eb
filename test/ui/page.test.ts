/** The page in a real browser: an exchange of three hops in the list, the timeline, the messages, the diff and the stream. */

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { say } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { browserSuite } from './page-browser.ts';
import { faintTexts } from './page-contrast.ts';
import { type PageSetup, startPageSetup, TIDES } from './page-setup.ts';

browserSuite('the page', (browser) => {
  let setup: PageSetup;
  let tides: string;

  beforeAll(async () => {
    setup = await startPageSetup();
    tides = await setup.threeHops();
  }, 180_000);
  afterEach(async () => {
    // No test may cause a complaint of the browser.
    setup.upstream.clear();
  });
  afterAll(async () => {
    await setup?.stop();
  });

  const open = async (hash: string, options?: BrowserContextOptions): Promise<Page> => {
    const visit = await browser.visit(setup.gateway.url, options);
    await visit.open(hash);
    return visit.page;
  };

  /** Every view, and an element that is present once it is ready. */
  const states = () =>
    [
      ['#/', '.row'],
      ['#/?q=Brest', '.hit mark'],
      ['#/sessions', '.session-card'],
      ['#/s/session-of-the-tides', '.step .turn'],
      [`#/x/${tides}`, '.answer .text'],
      [`#/x/${tides}/timeline`, '.notelist .note-about'],
      [`#/x/${tides}/messages`, '.talk'],
      [`#/x/${tides}/messages?as=json`, '.tree'],
      [`#/x/${tides}/diff`, '.meaning'],
      [`#/x/${tides}/diff?as=json`, '.changelist'],
      [`#/x/${tides}/messages?as=events`, '.events'],
      [`#/x/${tides}/replay`, '.jobform'],
      [`#/x/${tides}/bisect`, '.notfirst'],
      ['#/charts', '.chart rect.mark'],
    ] as const;

  test('the list shows the exchange, which opens as a timeline of its hops and tools', async () => {
    const page = await open('#/');
    const row = page.locator(`.row[data-id="${tides}"]`);
    await row.waitFor();
    expect(await row.getAttribute('aria-label')).toMatch(
      /^\d\d:\d\d:\d\d, status 200, via-chat, to chat\/m1, 3 hops, /,
    );
    await row.click();
    await page.locator('.answer .text').filter({ hasText: TIDES }).waitFor();
    expect(new URL(page.url()).hash).toBe(`#/x/${tides}`);
    await page.keyboard.press('2');
    await page.locator('.waterfall .line').first().waitFor();
    expect(new URL(page.url()).hash).toBe(`#/x/${tides}/timeline`);
    const names = await page.locator('.line-name b').allTextContents();
    expect(names).toEqual(['client', 'hop 1', 'web_search', 'hop 2', 'stock_price', 'hop 3']);
    // Hops and tools are consecutive: each bar begins where the previous one ends.
    const bars = await page
      .locator('.waterfall li')
      .evaluateAll((lines) =>
        lines.map((line) =>
          [...line.querySelectorAll('rect')].map((bar) => Number(bar.getAttribute('x'))),
        ),
      );
    const begins = bars.slice(1).map((all) => Math.min(...all));
    expect(begins).toEqual([...begins].sort((a, b) => a - b));
    const tokens = await page.locator('table.tokens tbody tr').allTextContents();
    expect(tokens).toHaveLength(4);
    expect(tokens[3]).toMatch(/^total/);
    expect(await page.locator('.facts').first().textContent()).toContain('session-of-the-tides');
  });

  test('notes show their description from the manual and link to their changes', async () => {
    const page = await open(`#/x/${tides}/timeline`);
    await page.locator('.cheap > summary').click();
    const note = page.locator('.notelist > li').filter({ hasText: 'server_tool_offered' });
    await note.getByText('A tool that the client did not declare').waitFor();
    const link = note.locator('.tag');
    expect(await link.getAttribute('href')).toBe('/docs/notes#server_tool_offered');
    await note.locator('.places a').first().click();
    await page.locator('.meaning-change.picked').first().waitFor();
    expect(page.url()).toContain('/diff?rule=server_tool_offered');
    expect(await page.locator('.meaning-change.picked').first().textContent()).toContain('tool ');
  });

  test('how an exchange ended is said once: a stream that broke off has one status, what was retried is no error', async () => {
    const chat = (stream: boolean) =>
      setup.post('/v1/chat/completions', {
        model: 'via-chat',
        stream,
        messages: [{ role: 'user', content: 'How does it end?' }],
      });
    setup.upstream.enqueue(
      say('It never ends. '.repeat(20), { delivery: { cut: { at: 0.5, by: 'reset' } } }),
    );
    const cut = await chat(true);
    setup.upstream.enqueue({ status: 503 }, say('It ends.'));
    const retried = await chat(false);
    const page = await open(`#/x/${cut}`);
    for (const tab of ['1', '2']) {
      await page.keyboard.press(tab);
      const banner = page.locator('.tab-body .banner b').first();
      await banner.waitFor();
      expect(await banner.textContent()).toBe('200 cut off');
    }
    expect(await page.locator('.facts').first().textContent()).toStartWith('Errorcut offTime');
    await browser.seen.open(`#/x/${retried}`);
    await page.locator('.answer .text', { hasText: 'It ends.' }).waitFor();
    expect(await page.locator('.facts').first().textContent()).toStartWith('Stateretried');
  });

  /** The vendor has no place for its cache marks, which costs nothing. */
  async function marked(more: object): Promise<string> {
    setup.upstream.enqueue(say('Fine.'));
    return setup.post(
      '/v1/messages',
      {
        model: 'via-chat',
        max_tokens: 100,
        ...more,
        system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
        messages: [{ role: 'user', content: 'Hello' }],
      },
      { 'anthropic-version': '2023-06-01' },
    );
  }

  test('notes that need no action are folded where there are no others', async () => {
    const page = await open(`#/x/${await marked({})}/timeline`);
    const folded = page.locator('details.cheap');
    await folded.waitFor();
    expect(await folded.locator('.notelist .tag').first().isVisible()).toBe(false);
  });

  test('notes that need no action are folded, in the timeline and in the list', async () => {
    const id = await marked({ top_k: 5 });
    const page = await open(`#/x/${id}/timeline`);
    const folded = page.locator('details.cheap');
    await folded.waitFor();
    expect(await folded.locator('summary').textContent()).toContain('cache_control_dropped');
    const inside = folded.locator('.notelist .tag', { hasText: 'cache_control_dropped' });
    expect(await inside.isVisible()).toBe(false);
    const costly = page.locator('.timeline-tab section > .notelist .tag');
    expect(await costly.allTextContents()).toEqual(['parameter_dropped']);
    await folded.locator('summary').click();
    await inside.waitFor();
    await page.keyboard.press('Escape');
    const cell = page.locator(`.row[data-id="${id}"] .cell.notes`);
    // Until the manual is read, every note is shown.
    await cell.locator('.tag', { hasText: /^parameter_dropped$/ }).waitFor();
    expect(await cell.locator('.others').textContent()).toMatch(/^\+\d$/);
  });

  test('requests and responses can be read as a conversation, as JSON and as raw bytes', async () => {
    const page = await open(`#/x/${tides}/messages?edge=hop3-provider-request`);
    const turns = page.locator('.turn');
    await turns.first().waitFor();
    const roles = await turns.evaluateAll((all) =>
      all.map((turn) => turn.getAttribute('data-role')),
    );
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'tool']);
    expect(await turns.nth(2).textContent()).toContain('web_search');
    await page.keyboard.press(']');
    await page.getByRole('heading', { name: 'Hop 3 response' }).waitFor();
    await page.locator('.turn .text').filter({ hasText: TIDES }).waitFor();
    await page.getByRole('button', { name: 'JSON' }).click();
    await page.locator('.tree').waitFor();
    await page.getByRole('button', { name: 'Raw', exact: true }).click();
    await page.locator('pre.raw').filter({ hasText: 'data: {' }).waitFor();
    expect(page.url()).toContain('edge=hop3-provider-response&as=raw');
    await page.getByRole('button', { name: 'Headers' }).click();
    await page.locator('dl.headers').filter({ hasText: 'text/event-stream' }).waitFor();
  });

  test('the changes of the JSON have their rules, and n leads from one to the next', async () => {
    const page = await open(`#/x/${tides}/diff?a=client-request&b=provider-request&as=json`);
    const tools = page.locator('.changelist [data-change="/tools"]');
    await tools.waitFor();
    expect(await tools.getAttribute('data-mark')).toBe('added');
    expect(await tools.locator('.tag').allTextContents()).toEqual(['server_tool_offered']);
    const model = page.locator('.changelist [data-change="/model"]');
    expect(await model.locator('del').textContent()).toBe('via-chat');
    expect(await model.locator('ins').textContent()).toBe('m1');
    await page.keyboard.press('n');
    await page.locator('.changelist .here').waitFor();
    const listed = await page.locator('.changelist > li').count();
    expect(listed).toBeGreaterThan(3);
    await page.reload();
    await page.locator('.changelist').waitFor();
    expect(await page.locator('.changelist > li').count()).toBe(listed);
    // A body against itself.
    await page.getByLabel('To', { exact: true }).selectOption('client-request');
    await page.getByText('Byte for byte the same.').waitFor();
  });

  test('the events of a stream are listed with their times, of what came and of what went out', async () => {
    const page = await open(`#/x/${tides}/messages?as=events`);
    const rows = page.locator('.events tbody tr');
    // The first body that is a stream.
    await page.getByRole('heading', { name: 'Hop 1 response' }).waitFor();
    for (const [edge, heading] of [
      ['hop3-provider-response', 'Hop 3 response'],
      ['client-response', 'Client response'],
    ] as const) {
      await page.locator(`.stages a[href*="edge=${edge}"]`).click();
      await page.getByRole('heading', { name: heading }).waitFor();
      const said = async () => (await rows.locator('summary').allTextContents()).join('');
      await until(async () => (await said()).includes(TIDES));
      expect(await rows.first().textContent()).toMatch(/^1[\d.]+ (ms|s)/);
    }
    await rows.nth(1).locator('summary').click();
    await rows.nth(1).locator('.raw', { hasText: '{' }).waitFor();
  });

  test('new rows appear at the top, and the scroll position stays', async () => {
    setup.upstream.answerWith(() => say('Fine.'));
    const ask = (n: number) =>
      setup.post('/v1/chat/completions', {
        model: 'via-chat',
        messages: [{ role: 'user', content: `Number ${n}` }],
      });
    for (let n = 0; n < 60; n++) await ask(n);
    const page = await open('#/');
    await page.locator('.feed[data-state="live"]').waitFor();
    const top = page.locator('.row[aria-rowindex="1"]');
    const first = await ask(60);
    await page.locator(`.row[aria-rowindex="1"][data-id="${first}"]`).waitFor();
    // Only visible rows (and some around them) exist.
    expect(await page.locator('.row').count()).toBeLessThan(50);
    await page.locator('.scroller').evaluate((box) => {
      box.scrollTop = 600;
    });
    const read = page.locator('.row[aria-rowindex="25"]');
    const id = await read.getAttribute('data-id');
    const place = () => page.locator(`.row[data-id="${id}"]`).boundingBox();
    const before = await place();
    const later = await ask(61);
    await page.getByRole('button', { name: /1 new exchange/ }).waitFor();
    expect(await place()).toEqual(before);
    await page.getByRole('button', { name: /1 new exchange/ }).click();
    await page.locator(`.row[aria-rowindex="1"][data-id="${later}"]`).waitFor();
    expect(await top.getAttribute('data-id')).toBe(later);
  });

  test('rows that come late, above the one that is read, leave it in its place', async () => {
    setup.upstream.answerWith(() => say('Fine.'));
    for (let n = 0; n < 60; n++) {
      await setup.post('/v1/chat/completions', {
        model: 'via-chat',
        messages: [{ role: 'user', content: `Late ${n}` }],
      });
    }
    const { page } = await browser.visit(setup.gateway.url);
    // As if the newest ones were not yet written when the first rows were asked for.
    let asked = 0;
    const read = Promise.withResolvers<void>();
    await page.route('**/ui/api/samples?*', async (route) => {
      const isFirst = asked++ === 0;
      if (!isFirst) await read.promise;
      const answer = await route.fetch();
      const list = (await answer.json()) as { rows: unknown[] };
      if (isFirst) list.rows.splice(5, 10);
      await route.fulfill({ response: answer, json: list });
    });
    // The rows without a filter come with the page.
    await page.goto(`${setup.gateway.url}/ui#/?model=via-chat`);
    await page.locator('.row').first().waitFor();
    const rows = page.locator('.scroller');
    await rows.evaluate((box) => {
      box.scrollTop = 800;
    });
    const id = await page.locator('.row[aria-rowindex="22"]').getAttribute('data-id');
    const place = () => page.locator(`.row[data-id="${id}"]`).boundingBox();
    const before = await place();
    read.resolve();
    await page.locator(`.row[aria-rowindex="32"][data-id="${id}"]`).waitFor();
    expect(await place()).toEqual(before);
  });

  test('a long list is loaded while scrolling, and the open exchange is scrolled into view', async () => {
    const page = await open('#/');
    await page.locator('.row').first().waitFor();
    setup.upstream.answerWith(() => say('Fine.'));
    const more = Array.from({ length: 250 }, (_, n) => n);
    while (more.length > 0) {
      await Promise.all(
        more.splice(0, 25).map((n) =>
          setup.post('/v1/chat/completions', {
            model: 'via-chat',
            messages: [{ role: 'user', content: `Number ${n} of many` }],
          }),
        ),
      );
    }
    await page.reload();
    await page.locator('.row').first().waitFor();
    await page.locator('.scroller').focus();
    // The oldest one is not on the first page of 200.
    await until(async () => {
      await page.keyboard.press('End');
      return (await page.locator(`.row[data-id="${tides}"][aria-selected="true"]`).count()) === 1;
    });
    expect(await page.locator('.row').count()).toBeLessThan(60);
    await page.keyboard.press('Enter');
    await page.locator('.speakers').waitFor();
    await page.locator(`.row[data-id="${tides}"][aria-selected="true"]`).waitFor();
    await page.keyboard.press('k');
    await until(async () => !page.url().includes(tides));
    await page.locator('.row[aria-selected="true"]').waitFor();
  });

  test('filters are part of the URL, and apply to the live list too', async () => {
    const page = await open('#/');
    await page.getByPlaceholder('Search what').fill('session-of-the-tides');
    await until(async () => (await page.locator('.row').count()) === 1);
    expect(page.url()).toContain('q=session-of-the-tides');
    setup.upstream.enqueue(say('Not for this list.'));
    await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    await page.reload();
    await page.locator('.row').waitFor();
    expect(await page.locator('.row').count()).toBe(1);
    await page.getByRole('button', { name: 'Failed' }).click();
    await page.getByText('No exchanges match these filters').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await until(async () => (await page.locator('.row').count()) > 1);
  });

  test('Escape in the search clears the text and its filter, and a chip shows active filters', async () => {
    const page = await open('#/?q=session-of-the-tides');
    await page.locator('.row').waitFor();
    await page.locator('.chip', { hasText: 'session-of-the-tides' }).waitFor();
    const search = page.getByPlaceholder('Search what');
    await search.focus();
    await page.keyboard.press('Escape');
    await until(async () => !page.url().includes('session-of-the-tides'));
    expect(await search.inputValue()).toBe('');
    await until(async () => (await page.locator('.row').count()) > 1);
  });

  test('a running exchange shows its elapsed time, never a negative one', async () => {
    const { promise: ready, resolve: answer } = Promise.withResolvers<void>();
    setup.upstream.enqueue(say('At last.', { delivery: { ready } }));
    const sent = setup.post('/v1/chat/completions', {
      model: 'via-chat',
      stream: true,
      messages: [{ role: 'user', content: 'Take your time' }],
    });
    const page = await open('#/?status=open');
    const row = page.locator('.row[data-tone="open"]');
    await row.waitFor();
    await page.locator('.row[data-tone="open"] .model', { hasText: 'via-chat' }).waitFor();
    await row.click();
    await page.getByText(/running for [1-9]\.\d* s/).waitFor();
    await page.keyboard.press('2');
    await page.locator('.facts', { hasText: 'Elapsed' }).waitFor();
    const textOf = async () => (await page.locator('.line-words').allTextContents()).join(' ');
    await until(async () => /[1-9]\.\d* s so far/.test(await textOf()));
    expect(await textOf()).not.toContain('-');
    await page.keyboard.press('e');
    await page.getByText('This exchange is still running').waitFor();
    answer();
    await sent;
    // The waiting tab shows the stream by itself.
    await page.locator('.events tbody tr').first().waitFor();
  });

  test('everything can be reached by keyboard', async () => {
    const page = await open('#/?q=session-of-the-tides');
    await page.locator('.row').waitFor();
    await page.keyboard.press('j');
    await page.locator('.row[aria-selected="true"]').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.speakers').waitFor();
    const views = [
      ['4', '.talk'],
      ['3', '.meaning'],
      ['e', '.events'],
      ['r', '.jobform'],
      ['1', '.speakers'],
      ['2', '.waterfall'],
    ] as const;
    for (const [key, shown] of views) {
      await page.keyboard.press(key);
      await page.locator(shown).first().waitFor();
    }
    await page.keyboard.press('Escape');
    await page.locator('.shell[data-place="list"]').waitFor();
    expect(page.url()).toContain('q=session-of-the-tides');
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.locator('.chart').first().waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    expect(await page.evaluate("document.activeElement?.getAttribute('name')")).toBe('q');
    // The first stop of Tab is the link that skips the navigation.
    await page.reload();
    await page.locator('.chart').first().waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement?.id')).toBe('main');
  });

  test('the charts show what was recorded: drawn, on hover and as a table', async () => {
    const page = await open('#/charts?since=15m');
    const chart = page.locator('.chart').filter({ hasText: 'Notes by rule' });
    await chart.locator('rect.mark').first().waitFor();
    await chart.getByRole('button', { name: 'table' }).click();
    await chart.locator('th', { hasText: 'cache_control_dropped' }).waitFor();
    const requests = page.locator('.chart').filter({ hasText: 'Requests' });
    const bar = requests.locator('rect.mark').last();
    await bar.hover({ force: true });
    expect(await requests.locator('.when').textContent()).toMatch(
      /^\d\d:\d\d:\d\d – \d\d:\d\d:\d\d$/,
    );
    expect(Number(await requests.locator('.chart-legend b').first().textContent())).toBeGreaterThan(
      0,
    );
    const figures = await page.locator('.figures').textContent();
    expect(figures).toMatch(/Requests\d+/);
    await bar.click({ force: true });
    await page.locator('.row').first().waitFor();
    expect(page.url()).toMatch(/since=\d{13}&until=\d{13}/);
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`every text has enough contrast (${colorScheme})`, async () => {
      const page = await open('#/', { colorScheme });
      const all: unknown[] = [];
      for (const [hash, ready] of states()) {
        await browser.seen.open(hash);
        await page.locator(ready).first().waitFor();
        const faint = await page.locator('body').evaluate(faintTexts);
        if (faint.length > 0) all.push([hash, faint]);
      }
      expect(all).toEqual([]);
    });
  }

  test('a label of the timeline’s axis stays inside, also at its very end', async () => {
    const page = await open('#/', { viewport: { width: 360, height: 740 } });
    await browser.seen.open(`#/x/${tides}/timeline`);
    const track = page.locator('.axis-track');
    await track.waitFor();
    const outside = await track.evaluate((axis) => {
      const { left, right } = axis.getBoundingClientRect();
      const label = axis.lastElementChild as unknown as {
        textContent: string;
        style: { setProperty(name: string, value: string): void };
        getBoundingClientRect(): { left: number; right: number };
      };
      const found: string[] = [];
      for (const text of ['0 ms', '250 ms', '12.5 s', '2 min 30 s']) {
        label.textContent = text;
        for (const at of [0, 0.01, 0.05, 0.5, 0.95, 0.99, 1]) {
          label.style.setProperty('--at', String(at));
          const box = label.getBoundingClientRect();
          if (box.left < left - 0.5 || box.right > right + 0.5) found.push(`${text} at ${at}`);
        }
      }
      return found;
    });
    expect(outside).toEqual([]);
  });

  test('a window of 360 pixels needs no sideways scrolling', async () => {
    const page = await open('#/', { viewport: { width: 360, height: 740 } });
    for (const [hash, ready] of states()) {
      await browser.seen.open(hash);
      await page.locator(ready).first().waitFor();
      const wide = await page
        .locator('html,.tab-body,.charts-pane,.exchange')
        .evaluateAll((boxes) =>
          boxes
            .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
            .map((box) => `${box.className || box.tagName} ${box.scrollWidth}`),
        );
      expect([hash, wide]).toEqual([hash, []]);
    }
    await page.locator('.places a', { hasText: 'Exchanges' }).click();
    await page.locator(`.row`).first().click();
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await page.locator('.row').first().waitFor();
  });
});
