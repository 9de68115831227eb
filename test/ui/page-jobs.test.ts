/** Replay, bisection, curl and export from the page, in a real browser against the compiled binary. */

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { isObject, type Json, type JsonObject } from '../../src/lib/json/json.ts';
import { chatHistory } from '../samples/record/histories.ts';
import { refuse, say } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { browserSuite } from './page-browser.ts';
import { type PageSetup, startPageSetup } from './page-setup.ts';

/** Whether GLM fails on the body: its last tool result is a large record of an executed tool. */
function glmFails(body: JsonObject): boolean {
  const messages = Array.isArray(body.messages) ? (body.messages as readonly Json[]) : [];
  const last = messages.findLast((one) => isObject(one) && one.role === 'tool');
  const content = isObject(last) ? last.content : undefined;
  return typeof content === 'string' && content.length > 8192 && content.includes('rcc.tool.v1');
}

browserSuite('jobs of the page', (browser) => {
  let setup: PageSetup;
  let failed: string;
  /** Milliseconds until the vendor answers. */
  let slow = 0;

  beforeAll(async () => {
    setup = await startPageSetup({ server_tools: {} }, { input: 10, output: 20 });
    setup.upstream.answerWith(({ body }) =>
      glmFails(body)
        ? {
            status: 500,
            body: { error: { code: '500', message: 'Operation failed' } },
            firstByteMs: slow,
          }
        : say('Fine.', { usage: { input: 4711 }, delivery: { firstByteMs: slow } }),
    );
    failed = await setup.post('/v1/chat/completions', { ...chatHistory(60), model: 'via-chat' });
  }, 180_000);
  afterEach(async () => {
    slow = 0;
  });
  afterAll(async () => {
    await setup?.stop();
  });

  const open = async (hash: string, options?: BrowserContextOptions): Promise<Page> => {
    const visit = await browser.visit(setup.gateway.url, options);
    await visit.open(hash);
    return visit.page;
  };

  /** Asks for a bisection and says yes to its cost. */
  const begin = async (page: Page): Promise<void> => {
    await page.locator('.jobform').getByRole('button', { name: 'Bisect' }).click();
    const question = page.getByRole('alertdialog');
    await question.getByText(/Up to \d+ requests/).waitFor();
    await question.getByRole('button', { name: 'Begin' }).click();
  };

  test('a failure is found among others, replayed, and shown beside the recorded answer', async () => {
    const page = await open('#/?status=failed');
    await page.locator(`.row[data-id="${failed}"]`).click();
    await page.locator('.banner').getByText('Operation failed').waitFor();
    await page.getByRole('link', { name: 'Replay' }).first().click();
    await page.getByLabel('Repeat', { exact: true }).fill('2');
    const requestCount = setup.upstream.modelRequests.length;
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Done: 2 of 2 requests').waitFor();
    expect(setup.upstream.modelRequests.length).toBe(requestCount + 2);
    const rows = await page.locator('table.runs tbody tr').allTextContents();
    expect(rows).toHaveLength(3);
    expect(rows[0]).toStartWith('recorded500');
    for (const row of rows.slice(1)) expect(row).toContain('Operation failed');
    await page.locator('.job-result .facts', { hasText: '2 of 2 failed' }).waitFor();
    // The address leads back to the job.
    await page.reload();
    await page.getByText('Done: 2 of 2 requests').waitFor();
    expect(setup.upstream.modelRequests.length).toBe(requestCount + 2);
  });

  test('a replay shows the recorded answer beside the new one', async () => {
    setup.upstream.enqueue(say('The old words.'));
    const id = await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Say something' }],
    });
    setup.upstream.enqueue(say('Quite other words.'));
    const page = await open(`#/x/${id}/replay`);
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Done: 1 of 1 request').waitFor();
    const texts = await page.locator('.answer-text').allTextContents();
    expect(texts).toEqual(['The old words.', 'Quite other words.']);
    const [recorded] = await page.locator('table.runs tbody tr').allTextContents();
    // The table shows the recorded time.
    expect(recorded).toMatch(/\d ?(ms|s)/);
  });

  test('impossible requests are reported in the form', async () => {
    const page = await open(`#/x/${failed}/replay`);
    await page.locator('[name=to]').fill('nobody/nothing');
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    const alert = page.locator('.problem:visible, table.runs .message').first();
    await alert.waitFor();
    expect(await page.locator('.replay-tab').textContent()).toContain('nobody');
    // A refused request is an error of the network panel, not of the page.
    browser.tolerate(/Failed to load resource/);
  });

  test('bisection shows its progress, names the cause and leads to both requests', async () => {
    slow = 40;
    const page = await open(`#/x/${failed}/bisect`);
    await page.getByLabel('Request limit').fill('60');
    await begin(page);
    await page.getByText(/^Running: /).waitFor();
    await page.getByText(/[1-9]\d? of at most 60 requests/).waitFor();
    await page.locator('.found').waitFor({ timeout: 30_000 });
    expect(await page.locator('.found .words').textContent()).toMatch(
      /^the last tool result: 4\d KB JSON at messages\[59\]\.content/,
    );
    await page.getByText('All requests as a table').click();
    const probes = await page.locator('.probelog tbody tr').count();
    expect(probes).toBeGreaterThan(3);
    expect(probes).toBeLessThanOrEqual(60);
    const matters = await page.locator('.matters pre').textContent();
    expect(matters).toContain('rcc.tool.v1');
    await page.getByRole('link', { name: 'The smallest that fails' }).click();
    await page
      .locator('.about')
      .getByText(/smallest request that fails/)
      .waitFor();
    expect(await page.locator('.pill-status').first().textContent()).toBe('500');
    await page.goBack();
    await page.getByRole('link', { name: 'The nearest that passes' }).click();
    await page
      .locator('.about')
      .getByText(/nearest request/)
      .waitFor();
    expect(await page.locator('.pill-status').first().textContent()).toBe('200');
  });

  test('what a bisection stored is marked, can be left out of the list, and is no part of the charts', async () => {
    const page = await open('#/?made=bisect');
    const rows = page.locator('.row');
    await rows.first().waitFor();
    expect(await rows.count()).toBe(2);
    expect(await rows.first().locator('.made').textContent()).toBe('bisect');
    await page.getByText('made by bisect').first().waitFor();
    const api = `${setup.gateway.url}/ui/api`;
    const list = async (query: string) =>
      ((await (await fetch(`${api}/samples?${query}`)).json()) as { rows: { id: string }[] }).rows;
    const made = new Set((await list('made=bisect')).map(({ id }) => id));
    const traffic = await list('made=traffic&limit=500');
    expect(traffic.some(({ id }) => made.has(id))).toBe(false);
    const stats = (await (await fetch(`${api}/stats`)).json()) as { all: { requests: number } };
    expect(stats.all.requests).toBe(traffic.length);
  });

  test('an exchange that did not fail is not offered for bisection at once', async () => {
    setup.upstream.enqueue(say('All is well.'));
    const id = await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Fine?' }],
    });
    await until(async () => {
      const { meta } = (await (
        await fetch(`${setup.gateway.url}/ui/api/samples/${id}`)
      ).json()) as {
        meta?: { state: string };
      };
      return meta?.state === 'done';
    });
    const page = await open(`#/x/${id}/bisect`);
    await page.getByText('This exchange did not fail').waitFor();
    expect(await page.locator('.jobform').isVisible()).toBe(false);
  });

  const talk = async (text: string): Promise<string> => {
    setup.upstream.enqueue(say(text, { usage: { input: 900, output: 40 } }));
    return setup.post('/v1/messages', {
      model: 'via-chat',
      max_tokens: 300,
      temperature: 1,
      system: 'Be brief.',
      messages: [{ role: 'user', content: 'Where is the harbour?' }],
    });
  };

  test('the words that differ are marked in both answers, above them time, tokens and cost', async () => {
    const id = await talk('The harbour is in the north of the town.');
    setup.upstream.enqueue(
      say('The harbour is in the south of the town.', { usage: { input: 900, output: 41 } }),
    );
    const page = await open(`#/x/${id}/replay`);
    await page.getByText(/Sends 1 request: .*about \$/).waitFor();
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Done: 1 of 1 request').waitFor();
    const columns = page.locator('.bench .answer');
    expect(await columns.count()).toBe(2);
    expect(await columns.nth(0).locator('del').allTextContents()).toEqual(['north']);
    expect(await columns.nth(1).locator('ins').allTextContents()).toEqual(['south']);
    const facts = await columns.nth(1).locator('.benchfacts').textContent();
    expect(facts).toMatch(/First byte\d.*Total\d.*Tokens in900.*Tokens out41.*Cost\$0\.0/);
  });

  test('a request is edited before it is sent: its model, a message and a parameter', async () => {
    const id = await talk('North.');
    setup.upstream.enqueue(say('South.'));
    const page = await open(`#/x/${id}/replay`);
    await page.getByText('Edit the request').click();
    await page
      .locator('[name=edits]')
      .fill('temperature=0.25\nmax_tokens=77\n\nmessages[0].content=Where is the station?');
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Done: 1 of 1 request').waitFor();
    const { body } = setup.upstream.modelRequests.at(-1)!;
    expect(JSON.stringify(body)).toContain('Where is the station?');
    expect(JSON.stringify(body)).not.toContain('harbour');
    expect(body).toMatchObject({ temperature: 0.25 });
    expect(Object.values(body as object)).toContain(77);
  });

  test('a bad edit is told in words, and nothing is sent', async () => {
    const id = await talk('North.');
    const sent = setup.upstream.modelRequests.length;
    const page = await open(`#/x/${id}/replay`);
    browser.tolerate(/Failed to load resource/);
    await page.getByText('Edit the request').click();
    const edits = page.locator('[name=edits]');
    await edits.fill('temperature=hot');
    await page.getByText('temperature must be a number from 0 to 2, not "hot".').waitFor();
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('temperature must be a number from 0 to 2, not "hot".').waitFor();
    await edits.fill('hot');
    await page.getByText('"hot" is not a change: write MEMBER=VALUE.').waitFor();
    await edits.fill('temperature=1\nmodel=nobody/nothing');
    await page.getByText('There is no provider "nobody".').waitFor();
    expect(setup.upstream.modelRequests.length).toBe(sent);
  });

  test('several targets answer in columns of their own', async () => {
    const id = await talk('One.');
    const page = await open(`#/x/${id}/replay`);
    await page.getByRole('button', { name: '+ another target' }).click();
    await page.locator('[name=to-2]').fill('messages/m1');
    // The first one is left at its placeholder, "as routed (chat/m1)".
    await page.getByText(/Sends 2 requests: chat\/m1, .*messages\/m1, /).waitFor();
    await page.locator('.jobform').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Done: 2 of 2 requests').waitFor();
    expect(await page.locator('.bench .answer .sub').allTextContents()).toEqual([
      'chat/m1',
      'chat/m1',
      'messages/m1',
    ]);
  });

  test('a bisection can be stopped', async () => {
    slow = 300;
    const page = await open(`#/x/${failed}/bisect`);
    // A different body, so that no earlier answers are known.
    await page.getByLabel('Send').selectOption({ index: 1 });
    await begin(page);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText(/^(Stopped|Done): /).waitFor();
    const requestCount = setup.upstream.modelRequests.length;
    await Bun.sleep(700);
    expect(setup.upstream.modelRequests.length).toBeLessThanOrEqual(requestCount + 1);
  });

  test('the curl command line is copied, and the exchange is exported with and without its texts', async () => {
    const page = await open(`#/x/${failed}`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('Copied.').waitFor();
    const line: unknown = await page
      .locator('body')
      .evaluate((body) => body.ownerDocument.defaultView.navigator.clipboard.readText());
    expect(line).toContain('curl');
    expect(line).not.toContain('sk-upstream');
    const save = async (name: string): Promise<string> => {
      await page.getByText('Export').click();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ]);
      expect(download.suggestedFilename()).toStartWith(failed);
      return readFileSync(await download.path(), 'utf8');
    };
    const whole = JSON.parse(await save('As it is')) as { hopgate_sample: number };
    expect(whole.hopgate_sample).toBe(1);
    expect(JSON.stringify(whole)).toContain('You are a coding agent');
    expect(await save('Texts and images blanked')).not.toContain('You are a coding agent');
  });

  test('a running exchange appears, and then its end', async () => {
    setup.upstream.enqueue(
      say('Slowly, slowly, it comes along.', {
        delivery: { firstByteMs: 200, paceMs: 250, piece: 4 },
      }),
    );
    const page = await open('#/');
    await page.locator('.feed[data-state="live"]').waitFor();
    const done = setup.post('/v1/chat/completions', {
      model: 'via-chat',
      stream: true,
      messages: [{ role: 'user', content: 'Take your time.' }],
    });
    const running = page.locator('.row[data-tone="open"]');
    await running.waitFor();
    const id = (await running.getAttribute('data-id'))!;
    await running.click();
    await page.locator('.pill-status[data-tone="open"]').waitFor();
    expect(await done).toBe(id);
    await until(async () => (await page.locator('.pill-status').first().textContent()) === '200');
    await page.locator(`.row[data-id="${id}"][data-tone="ok"]`).waitFor();
  });

  test('vendor refusals are shown in the list and the timeline', async () => {
    setup.upstream.enqueue(refuse(429), refuse(429), refuse(429));
    const id = await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    const page = await open(`#/x/${id}/timeline`);
    await page.locator('.banner').waitFor();
    expect(await page.locator('.line-name[data-tone="bad"]').count()).toBeGreaterThan(1);
    expect(await page.locator('.pill-status').first().textContent()).toBe('429');
  });
});
