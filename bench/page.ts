/** Measures the page in a real browser over 10,000 recorded exchanges, into `bench/PAGE.md`: first rows, search, typing. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { startGateway } from '../test/support/binary.ts';
import { RARE, type Request, traffic } from './page-traffic.ts';

const COUNT = Number(process.argv[2] ?? 10_000);
const ROUNDS = Number(process.argv[3] ?? 7);
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** A folder that is kept, and filled up the next time. */
const KEPT = process.argv[4];
const TOGETHER = 4;
/** Requests after which the recorder is waited for: it drops exchanges rather than fill the memory. */
const BATCH = 200;
const GOALS = { rows: 300, search: 200, typing: 50 } as const;

/** What is searched for, from the rare to what nearly every text has. */
const SEARCHES: readonly (readonly [name: string, words: string])[] = [
  ['English, rare', RARE.english],
  ['English, a phrase', '"the first byte"'],
  ['English, two words', 'recorded failure'],
  ['English, a word of two letters', 'is'],
  ['English, nearly everywhere', 'the'],
  ['Chinese, rare', RARE.chinese],
  ['Chinese, four characters', '配置文件'],
  ['Chinese, two characters', '请求'],
  ['Chinese, one character', '的'],
];

/** What the browser alone takes: for a page of one word, and for the first rows without their script. */
const PLAIN_PAGES = new Map([['/', '<!doctype html><div class="row">Rows</div>']]);

let made = traffic(0);
const vendor = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method === 'GET') {
      // A browser opens such a page in a new process, as it does with ours.
      const headers = { 'content-type': 'text/html', 'cross-origin-opener-policy': 'same-origin' };
      return new Response(PLAIN_PAGES.get(new URL(request.url).pathname), { headers });
    }
    await request.arrayBuffer();
    const usage = { prompt_tokens: 900, completion_tokens: 200, total_tokens: 1100 };
    const message = { role: 'assistant', content: made.answer() };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    return Response.json({ id: 'a', object: 'chat.completion', model: 'm', choices, usage });
  },
});
const folder = KEPT ?? mkdtempSync(join(tmpdir(), 'hopgate-bench-page-'));
const gateway = await startGateway({
  providers: {
    vendor: {
      protocol: 'openai-chat',
      base_url: `http://127.0.0.1:${vendor.port}/v1`,
      keys: ['sk-bench'],
      models: ['*'],
    },
  },
  samples: { mode: 'all', dir: folder },
});
void gateway.exited.then((code) => {
  if (code !== 0) console.error(`gateway exited with ${code}: ${gateway.stderr().slice(-2000)}`);
});

async function send({ path, headers, body }: Request): Promise<void> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

/** Exchanges on disk, once nothing waits to be written. */
async function recorded(): Promise<number> {
  for (let before = -1; ; await Bun.sleep(100)) {
    const stats = await fetch(`${gateway.url}/ui/api/stats?since=30d`);
    const { all } = (await stats.json()) as { all: { requests: number } };
    if (all.requests === before) return before;
    before = all.requests;
  }
}

async function record(): Promise<void> {
  let there = await recorded();
  made = traffic(there);
  const iterator = made.requests[Symbol.iterator]();
  while (there < COUNT) {
    let left = BATCH;
    const worker = async () => {
      while (left-- > 0) await send(iterator.next().value!);
    };
    await Promise.all(Array.from({ length: TOGETHER }, worker));
    there = await recorded();
  }
}

/** Waits until every exchange is read for the search, which begins with the first look at the page. In milliseconds. */
async function read(): Promise<number> {
  const began = performance.now();
  for (;;) {
    const page = await fetch(`${gateway.url}/ui/api/samples?limit=1&q=harbour`);
    const { unread = 0 } = (await page.json()) as { unread?: number };
    if (unread === 0) return performance.now() - began;
    await Bun.sleep(500);
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Notes in the page when an element is there for the first time, and drawn: milliseconds of its own clock. */
const whenDrawn = (selector: string) => `new Promise((done) => {
  const drawn = () => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0));
  const look = () => document.querySelector(${JSON.stringify(selector)}) !== null;
  if (look()) return drawn();
  const watch = new MutationObserver(() => {
    if (!look()) return;
    watch.disconnect();
    drawn();
  });
  watch.observe(document, { childList: true, subtree: true });
})`;

async function fresh(browser: Browser): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  return context.newPage();
}

/** From the start of the navigation to the drawn rows, with nothing in the browser's cache. */
async function firstRows(browser: Browser, url: string): Promise<number> {
  const page = await fresh(browser);
  await page.addInitScript(`globalThis.firstRows = ${whenDrawn('.row')}`);
  await page.goto(url);
  const time = await page.evaluate<number>('globalThis.firstRows');
  await page.context().close();
  return time;
}

/** The page with its first rows as plain HTML with its style sheet. */
async function withoutScript(browser: Browser, url: string): Promise<string> {
  const page = await fresh(browser);
  await page.goto(url);
  await page.locator('.row').first().waitFor();
  const html = await page.evaluate<string>(`
    document.querySelectorAll('script, #first').forEach((one) => one.remove());
    document.documentElement.outerHTML`);
  await page.context().close();
  return `<!doctype html>${html}`;
}

/** The call alone, as the page makes it. */
async function searchCall(words: string): Promise<number> {
  const began = performance.now();
  const query = new URLSearchParams({ q: words, limit: '200' });
  const response = await fetch(`${gateway.url}/ui/api/samples?${query}`);
  const { rows } = (await response.json()) as { rows: readonly object[] };
  if (rows.length === 0) throw new Error(`nothing found for ${words}`);
  return performance.now() - began;
}

/** From Enter to the drawn rows with their places. */
async function searchPage(page: Page, words: string): Promise<number> {
  const search = page.getByLabel('Search', { exact: true });
  await search.fill('');
  await search.press('Enter');
  await page.locator('.row').first().waitFor();
  while ((await page.locator('.hit').count()) > 0) await Bun.sleep(20);
  await page.evaluate(`document.querySelector('[name=q]').value = ${JSON.stringify(words)}`);
  await page.evaluate(`addEventListener('keydown', () => {
    const began = performance.now();
    globalThis.found = ${whenDrawn('.hit mark')}.then((ended) => ended - began);
  }, { capture: true, once: true })`);
  await search.press('Enter');
  return page.evaluate<number>('globalThis.found');
}

interface TraceEvent {
  readonly name: string;
  readonly tid: number;
  readonly pid: number;
  /** Microseconds of the clock, and of the processor. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/**
 * The longest task of the page's own thread while words are typed: milliseconds of the clock, in which other programs
 * run too, and of the processor.
 */
async function typing(browser: Browser, words: string): Promise<readonly [number, number]> {
  const page = await fresh(browser);
  await page.goto(`${gateway.url}/ui#/`);
  await page.locator('.row .asked').first().waitFor();
  await page.waitForTimeout(500);
  await browser.startTracing(page, { categories: ['toplevel', '__metadata'] });
  await page.getByLabel('Search', { exact: true }).focus();
  // Slow enough that each letter is searched for, and then at once.
  for (const letter of words) {
    await page.keyboard.type(letter);
    await page.waitForTimeout(letter === ' ' ? 600 : 230);
  }
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(words, { delay: 40 });
  await page.waitForTimeout(800);
  const trace = await browser.stopTracing();
  await page.context().close();
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: readonly TraceEvent[] };
  const threads = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = traceEvents.filter(
    ({ name, pid, tid }) =>
      name === 'ThreadControllerImpl::RunTask' && threads.has(`${pid} ${tid}`),
  );
  if (tasks.length < 50) throw new Error(`only ${tasks.length} tasks were traced`);
  const longest = (of: (event: TraceEvent) => number | undefined) =>
    Math.max(...tasks.map((event) => (of(event) ?? 0) / 1000));
  return [longest(({ dur }) => dur), longest(({ tdur }) => tdur)];
}

async function rounds<T>(work: () => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let i = 0; i < ROUNDS; i++) all.push(await work());
  return all;
}

const lines: string[] = [];
let missed = false;
function line(name: string, values: readonly number[], goal?: number): void {
  const middle = median(values);
  missed ||= goal !== undefined && middle > goal;
  const figures = [middle, Math.max(...values)].map((value) => value.toFixed(0)).join(' | ');
  lines.push(`| ${name} | ${figures} | ${goal ?? ''} |`);
  console.log(lines.at(-1));
}

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  await record();
  const readIn = await read();
  console.log(`${COUNT} exchanges, read for the search in ${Math.round(readIn)} ms`);
  const list = `${gateway.url}/ui#/`;
  await firstRows(browser, list);
  line('first rows, from the address', await rounds(() => firstRows(browser, list)), GOALS.rows);
  PLAIN_PAGES.set('/rows', await withoutScript(browser, list));
  const plain = `http://127.0.0.1:${vendor.port}`;
  line('the same rows without a script', await rounds(() => firstRows(browser, `${plain}/rows`)));
  line('a page of one word', await rounds(() => firstRows(browser, `${plain}/`)));
  const page = await fresh(browser);
  await page.goto(`${gateway.url}/ui#/`);
  for (const [name, words] of SEARCHES) {
    line(`search, the call: ${name}`, await rounds(() => searchCall(words)), GOALS.search);
    const shown = await rounds(() => searchPage(page, words));
    line(`search, from Enter to the rows: ${name}`, shown, GOALS.search);
  }
  await page.context().close();
  for (const [name, words] of [
    ['English', 'the first byte'],
    ['Chinese', '配置文件 请求'],
  ] as const) {
    const waits = await rounds(() => typing(browser, words));
    line(
      `typing ${name}: longest task, its own time of the processor`,
      waits.map(([, own]) => own),
      GOALS.typing,
    );
    line(
      `typing ${name}: longest task, by the clock`,
      waits.map(([clock]) => clock),
      GOALS.typing,
    );
  }
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}`;
  writeFileSync(
    join(import.meta.dir, 'PAGE.md'),
    `# The page

- Machine: ${machine}; gateway, vendor and browser share the cores; loopback only
- ${browser.browserType().name()} ${browser.version()}, headless, without a GPU; Bun ${Bun.version}
- ${COUNT.toLocaleString('en')} exchanges: half of them turns of agents' sessions with their history, a third in Chinese${KEPT === undefined ? `; all read for the search in ${(readIn / 1000).toFixed(1)} s` : ''}
- Command: \`bun bench/page.ts\`; ${ROUNDS} rounds, ${new Date().toISOString().slice(0, 10)}

Milliseconds. What is typed is searched for 200 ms after the last letter, or at once with Enter.

| | median | worst | goal |
| --- | --: | --: | --: |
${lines.join('\n')}
`,
  );
} finally {
  await browser.close();
  await gateway.stop();
  vendor.stop(true);
  if (KEPT === undefined) rmSync(folder, { recursive: true, force: true });
}
process.exit(missed ? 1 : 0);
