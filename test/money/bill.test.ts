/** Every surface × every ending: what the gateway counts is what the vendor bills. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import {
  billFor,
  type Counted,
  PRICE,
  type Script,
  type Spoken,
  startVendor,
  TOKENS_PER_WORD,
  type Vendor,
} from './vendor.ts';

const PROTOCOLS: readonly Spoken[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
];
const DEAR = { input: 30, output: 150, cached: 3 };
/** Words of an answer. */
const WORDS = 150;
// The vendor counts what it says: answers that came whole show how many bytes make a token.
const TOKENS = WORDS * TOKENS_PER_WORD;
const COUNTED: Counted = { input: 1234, cached: 1000, output: TOKENS, reasoning: 0 };

interface Row {
  readonly request: string;
  readonly target: string;
  readonly status: number | null;
  readonly ended: string;
  readonly input: number;
  readonly output: number;
  readonly cache_read: number;
  readonly estimated: number;
  readonly cost: number | null;
}

let vendor: Vendor;
let gateway: InProcess;

beforeAll(async () => {
  vendor = startVendor();
  const provider = (protocol: Spoken) => ({
    protocol,
    base_url: vendor.url + VERSIONS[protocol],
    keys: ['k'],
    models: ['*'],
    prices: { m: PRICE, 'maker/other-4': DEAR },
    timeouts: { first_byte: 1, idle: 1 },
  });
  gateway = await startInProcess({
    providers: Object.fromEntries(PROTOCOLS.map((name) => [name, provider(name)])),
    retry: { attempts: 2, base_delay: 0 },
    samples: { mode: 'off' },
  });
});

afterAll(async () => {
  await gateway.stop();
  vendor.stop();
});

const VERSIONS: Readonly<Record<Spoken, string>> = {
  'openai-chat': '/v1',
  'openai-responses': '/v1',
  'anthropic-messages': '',
  'google-gemini': '/v1beta',
};

function pathOf(client: Spoken, model: string, stream: boolean): string {
  if (client === 'openai-chat') return '/v1/chat/completions';
  if (client === 'openai-responses') return '/v1/responses';
  if (client === 'anthropic-messages') return '/v1/messages';
  return `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
}

function bodyOf(client: Spoken, model: string, stream: boolean) {
  const text = 'Write something.';
  if (client === 'openai-responses') return { model, stream, input: text };
  if (client === 'google-gemini') return { contents: [{ role: 'user', parts: [{ text }] }] };
  const messages = [{ role: 'user', content: text }];
  const options =
    client === 'openai-chat' && stream ? { stream_options: { include_usage: true } } : {};
  return { model, stream, messages, max_tokens: 1000, ...options };
}

interface Answered {
  readonly rows: readonly Row[];
  readonly headers: Headers;
  readonly text: string;
}

/**
 * Sends one request and waits for its rows.
 * @param scripts of the vendor; none: it goes on with its last one
 * @param more `leaveAfter`: the client goes away after so many bytes
 */
async function ask(
  client: Spoken,
  upstream: Spoken,
  stream: boolean,
  scripts: readonly Script[],
  { rows: wanted = scripts.length, leaveAfter }: { rows?: number; leaveAfter?: number } = {},
): Promise<Answered> {
  if (scripts.length > 0) vendor.script(...scripts);
  const leave = new AbortController();
  const response = await fetch(gateway.url + pathOf(client, `${upstream}/m`, stream), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(bodyOf(client, `${upstream}/m`, stream)),
    signal: leave.signal,
  });
  let text = '';
  try {
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString();
      if (leaveAfter !== undefined && text.length >= leaveAfter) {
        leave.abort();
        break;
      }
    }
  } catch {
    // Cut, or left.
  }
  const request = response.headers.get('x-hopgate-request-id')!;
  const rows = await until(() => {
    const found = rowsOf(request);
    return found.length >= wanted ? found : undefined;
  });
  return { rows, headers: response.headers, text };
}

function rowsOf(request: string): readonly Row[] {
  const path = join(gateway.home, 'state', 'spend.db');
  try {
    const db = new Database(path, { readonly: true });
    try {
      return db
        .query<Row, [string]>('SELECT * FROM spend WHERE request = ? ORDER BY id')
        .all(request);
    } finally {
      db.close();
    }
  } catch {
    // Not there yet.
    return [];
  }
}

const pairs = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.map((upstream) => [client, upstream] as const),
);

/** Asks for all pairs at once, with the first call: their timers run, and their rows are written, together. */
function everyPair(
  stream: boolean,
  script: Script,
  more: { rows?: number; leaveAfter?: number } = {},
) {
  let asked: Promise<ReadonlyMap<string, Answered>> | undefined;
  const all = async () => {
    vendor.script(script);
    const answers = pairs.map(
      async (pair) => [pair.join(), await ask(...pair, stream, [], { rows: 1, ...more })] as const,
    );
    return new Map(await Promise.all(answers));
  };
  return async (...pair: (typeof pairs)[number]): Promise<Answered> => {
    asked ??= all();
    return (await asked).get(pair.join())!;
  };
}
const both = (script: Script) => ({
  true: everyPair(true, script),
  false: everyPair(false, script),
});
const ofAnotherModel = both({ ending: 'done', counted: COUNTED, model: 'maker/other-4' });
const withUsage = both({ ending: 'done', counted: COUNTED });
const withoutUsage = both({ ending: 'no-usage' });
const ofNothing = everyPair(true, { ending: 'zero-usage' });
const unanswered = everyPair(false, { ending: 'never-answers' }, { rows: 2 });
const stalled = everyPair(true, { ending: 'stalls', counted: COUNTED });
/** Streams that end early: how, what their row says, the answers, and whether the whole text has come. */
const EARLY = [
  ['cut', 'cut', everyPair(true, { ending: 'cut', counted: COUNTED }), true],
  ['error-event', 'error', everyPair(true, { ending: 'error-event', counted: COUNTED }), true],
  [
    'stalls',
    'client_gone',
    // The client leaves after its first bytes.
    everyPair(true, { ending: 'stalls', counted: COUNTED }, { leaveAfter: 1 }),
    false,
  ],
] as const;

function expectEstimated(upstream: Spoken, ended: string, rows: readonly Row[]): void {
  const [row] = rows;
  expect(rows).toHaveLength(1);
  expect(row).toMatchObject({ ended, status: 200, estimated: 1 });
  expect(row!.output).toBeLessThanOrEqual(TOKENS * 1.1);
  const prompt = row!.input * 3000 + row!.cache_read * 300;
  expect(row!.cost).toBe(prompt + row!.output * 15_000);
  // Messages and Gemini report prompt tokens at the start of the answer.
  if (upstream === 'anthropic-messages' || upstream === 'google-gemini') {
    expect(row).toMatchObject({ input: 234, cache_read: 1000 });
  } else expect(row!.input).toBeGreaterThan(0);
}

const expectAllOutput = ({ output }: Row): void =>
  expect(Math.abs(output / TOKENS - 1)).toBeLessThan(0.1);

describe.each(pairs)('%s → %s', (client, upstream) => {
  test.each([true, false])(
    'an answer of another model than was asked costs what that model costs (stream: %p)',
    async (stream) => {
      const { rows } = await ofAnotherModel[`${stream}`](client, upstream);
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({ target: `${upstream}/m`, cost: 10 * billFor(COUNTED) });
    },
  );

  test.each([true, false])(
    'an answer with usage is billed to the nano (stream: %p)',
    async (stream) => {
      const { rows, headers } = await withUsage[`${stream}`](client, upstream);
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({
        ended: 'done',
        status: 200,
        estimated: 0,
        input: 234,
        cache_read: 1000,
        output: TOKENS,
        cost: billFor(COUNTED),
      });
      if (!stream) expect(Number(headers.get('x-hopgate-cost-usd'))).toBe(billFor(COUNTED) / 1e9);
    },
  );

  test('a usage of 0 is believed', async () => {
    const { rows } = await ofNothing(client, upstream);
    expect(rows[0]).toMatchObject({ ended: 'done', estimated: 0, input: 0, output: 0, cost: 0 });
  });

  test('a refused try costs nothing, and the try after it is billed once', async () => {
    const scripts: Script[] = [{ ending: 'refused' }, { ending: 'done', counted: COUNTED }];
    const { rows } = await ask(client, upstream, true, scripts);
    expect(rows.map(({ ended, status, cost }) => [ended, status, cost])).toEqual([
      ['error', 500, 0],
      ['done', 200, billFor(COUNTED)],
    ]);
  });

  test('what no vendor answered costs nothing', async () => {
    const { rows } = await unanswered(client, upstream);
    expect(rows.map(({ ended, status, cost }) => [ended, status, cost])).toEqual([
      ['timeout', null, 0],
      ['timeout', null, 0],
    ]);
  });

  test.each(EARLY)(
    'a stream that ends early is estimated: %s, %s',
    async (_, ended, answers, isWhole) => {
      const { rows } = await answers(client, upstream);
      expectEstimated(upstream, ended, rows);
      if (isWhole) expectAllOutput(rows[0]!);
    },
  );

  test.each([true, false])(
    'an answer without usage is estimated, and says so (stream: %p)',
    async (stream) => {
      const { rows } = await withoutUsage[`${stream}`](client, upstream);
      expect(rows[0]).toMatchObject({ ended: 'done', estimated: 1 });
      expectAllOutput(rows[0]!);
    },
  );
});

// After the others: by now, answers of each target have shown how many bytes a token has.
test.each(pairs)('%s → %s: a stream that stalls is estimated', async (client, upstream) => {
  const { rows } = await stalled(client, upstream);
  expectEstimated(upstream, 'timeout', rows);
  expectAllOutput(rows[0]!);
});

test('totals are the sum of the rows', async () => {
  await Bun.sleep(400);
  const db = new Database(join(gateway.home, 'state', 'spend.db'), { readonly: true });
  // As of one moment: the keeper may still write.
  db.run('PRAGMA busy_timeout = 5000');
  db.run('BEGIN');
  const one = (sql: string) => db.query<Record<string, number>, []>(sql).get();
  const columns =
    'sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read, sum(cost) AS cost, sum(estimated) AS estimated';
  const rows = one(`SELECT count(*) AS tries, ${columns} FROM spend`);
  for (const span of [0, 1, 2]) {
    expect(one(`SELECT sum(tries) AS tries, ${columns} FROM totals WHERE span = ${span}`)).toEqual(
      rows,
    );
  }
  db.close();
});
