/** Makes the pictures of the page for README and manual, from the real page: `npm run build && bun scripts/pictures.ts`. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { startGateway } from '../test/support/binary.ts';
import { call, say, startFakeUpstream } from '../test/support/fake-upstream/index.ts';
import { startToolServers, toolsOf } from '../test/support/tool-servers.ts';

const FOLDER = join(import.meta.dir, '../docs/img');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const SIZE = { width: 1280, height: 620 };
const PHONE = { width: 390, height: 700 };

const upstream = await startFakeUpstream();
const tools = await startToolServers();
const samples = mkdtempSync(join(tmpdir(), 'hopgate-pictures-'));
const keys = ['sk-upstream'];
const prices = { input: 0.6, cached: 0.11, output: 2.2 };
const gateway = await startGateway({
  providers: {
    glm: {
      protocol: 'openai-chat',
      base_url: upstream.baseUrl('openai-chat'),
      keys,
      models: ['glm-4.7'],
      prices: { 'glm-4.7': prices },
    },
    deepseek: {
      protocol: 'anthropic-messages',
      base_url: upstream.baseUrl('anthropic-messages'),
      keys,
      models: ['deepseek-v3.2'],
    },
  },
  routes: [
    { when: { model: 'claude-*' }, to: ['glm/glm-4.7', 'deepseek/deepseek-v3.2'] },
    { to: ['deepseek/deepseek-v3.2'] },
  ],
  server_tools: toolsOf(tools),
  samples: { mode: 'all', dir: samples },
});

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.headers.get('x-hopgate-request-id') ?? '';
}

const claude = (content: string, more: object = {}) =>
  post(
    '/v1/messages',
    {
      model: 'claude-opus-4-6',
      max_tokens: 1000,
      stream: true,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content }],
      ...more,
    },
    {
      'anthropic-version': '2023-06-01',
      'user-agent': 'claude-cli/2.1.14 (external, cli)',
      'x-claude-code-session-id': 'tides',
    },
  );

const paced = (firstByteMs: number, paceMs: number) => ({
  delivery: { firstByteMs, paceMs, piece: 6 },
});
const used = (input: number, cached: number, output: number, reasoning = 0) => ({
  usage: { input, cached, output, reasoning },
});

/** Exchanges as an agent and a chat app make them. Resolves with the id of the one in three hops. */
async function traffic(): Promise<string> {
  const declared = { tools: [{ name: 'read_file', input_schema: { type: 'object' } }] };
  upstream.enqueue({
    ...call({ name: 'read_file', arguments: { path: 'src/tides.ts' } }),
    ...used(8200, 0, 61),
    ...paced(310, 20),
  });
  const question = { role: 'user', content: 'Why does the build fail?' };
  await claude('', { ...declared, messages: [question] });
  upstream.enqueue(
    say('The import of the tide table names a file that is gone.', {
      ...used(9100, 8200, 212),
      ...paced(180, 30),
    }),
  );
  const id = 'toolu_01';
  const called = { type: 'tool_use', id, name: 'read_file', input: { path: 'src/tides.ts' } };
  const lines = "import { table } from './tide-table.ts';";
  await claude('', {
    ...declared,
    messages: [
      question,
      { role: 'assistant', content: [called] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: lines }] },
    ],
  });
  upstream.enqueue(say('Noon.', { ...used(420, 0, 12), ...paced(90, 10) }));
  await post('/v1/chat/completions', {
    model: 'deepseek-v3.2',
    messages: [{ role: 'user', content: 'When is high tide at Brest?' }],
  });
  await post('/v1/chat/completions', { model: 'deepseek-v3.2', messages: 'none' });
  tools.slow(60);
  upstream.enqueue(
    {
      ...call({ name: 'web_search', arguments: { query: 'high tide Brest' } }),
      ...used(900, 0, 60, 20),
      ...paced(120, 15),
    },
    {
      ...call({ name: 'stock_price', arguments: { symbol: 'TIDE' } }),
      ...used(1300, 800, 60, 20),
      ...paced(90, 15),
    },
    say('High water at Brest is at noon, and the share stands at 41.5.', {
      ...used(1700, 1200, 60, 20),
      ...paced(150, 25),
    }),
  );
  return claude('When is high tide at Brest, and what does TIDE cost?');
}

/** Replays an exchange at both targets; resolves with the id of the job. */
async function replayed(id: string): Promise<string> {
  const answer = (time: string) =>
    say(`High water at Brest is at ${time}, and the share stands at 41.5.`, {
      ...used(1700, 1200, 61, 20),
      ...paced(120, 20),
    });
  upstream.enqueue(answer('noon'), answer('a quarter past twelve'));
  const response = await fetch(`${gateway.url}/ui/api/replay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-hopgate-ui': '1' },
    body: JSON.stringify({ id, targets: ['glm/glm-4.7', 'deepseek/deepseek-v3.2'] }),
  });
  const { job } = (await response.json()) as { job: string };
  // The stream of its events ends with it.
  await (await fetch(`${gateway.url}/ui/api/jobs/${job}`)).text();
  return job;
}

/** @param at an element that is scrolled to the top */
async function picture(page: Page, hash: string, name: string, at?: string): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.goto(`${gateway.url}/ui${hash}`, { waitUntil: 'domcontentloaded' });
    await page.waitForTimeout(1500);
    if (at !== undefined) await page.locator(at).evaluate((found) => found.scrollIntoView());
    const path = join(FOLDER, `${name}-${theme}.png`);
    await page.screenshot({ path });
    console.log(path);
  }
}

mkdirSync(FOLDER, { recursive: true });
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const hops = await traffic();
  const page = await (await browser.newContext({ viewport: SIZE })).newPage();
  await picture(page, '', 'page-list');
  await picture(page, `#/x/${hops}/timeline`, 'page-exchange');
  await picture(page, `#/x/${hops}`, 'page-conversation');
  await picture(page, '#/s/tides', 'page-session');
  await picture(page, `#/x/${hops}/diff`, 'page-diff');
  await picture(page, `#/x/${hops}/stream`, 'page-stream');
  await picture(page, '#/?q=tide', 'page-search');
  await picture(page, `#/x/${hops}/replay?job=${await replayed(hops)}`, 'page-replay', '.bench');
  const phone = await (await browser.newContext({ viewport: PHONE })).newPage();
  await picture(phone, `#/x/${hops}`, 'page-phone');
} finally {
  await browser.close();
  await gateway.stop();
  await upstream.stop();
  await tools.stop();
  rmSync(samples, { recursive: true, force: true });
}
