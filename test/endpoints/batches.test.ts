/** Files and batches through the whole gateway, with the official SDKs: whose they are, where they go, what they cost. */

import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, spyOn, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { VendorObjects } from '../../src/endpoints/batches/vendor-objects.ts';
import { FormSpool } from '../../src/endpoints/form/spool.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import { type BatchVendor, startBatchVendor } from './batch-vendor.ts';

const ALICE = 'a'.repeat(32);
const BOB = 'b'.repeat(32);
const CHEAP = 'c'.repeat(32);

const open: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

/** USD per million tokens: a token costs 1000 nano-USD for each dollar. */
const PRICES = {
  small: { input: 2, output: 10 },
  big: {
    input: 20,
    output: 100,
    tiers: [
      { above: 1000, input: 40 },
      { service_tier: 'batch', input: 8, output: 30 },
    ],
  },
};

async function start(more: Record<string, unknown> = {}, lacks?: RegExp) {
  const openai = startBatchVendor('openai', lacks);
  const anthropic = startBatchVendor('anthropic', lacks);
  open.push(openai, anthropic);
  const provider = (protocol: string, base_url: string) => ({
    protocol,
    base_url,
    keys: [`sk-one-${protocol}`, `sk-two-${protocol}`],
    models: ['*'],
    prices: PRICES,
  });
  const config = {
    providers: {
      oai: provider('openai-chat', openai.url),
      ant: provider('anthropic-messages', anthropic.url),
    },
    aliases: { mine: 'oai/small', claude: 'ant/small' },
    auth: {
      keys: [
        { name: 'alice', key: ALICE, budgets: [{ usd: 100, per: 'total' }] },
        { name: 'bob', key: BOB },
        { name: 'cheap', key: CHEAP, models: ['oai/small', 'ant/small', 'small'], tools: [] },
      ],
    },
    samples: { mode: 'off' },
    ...more,
  };
  const gateway = await startInProcess(config);
  open.push(gateway);
  return { gateway, openai, anthropic, config };
}

const openaiOf = ({ url }: InProcess, apiKey = ALICE) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
const anthropicOf = ({ url }: InProcess, apiKey = ALICE) =>
  new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });

const chatLine = (custom_id: string, model: string, more: object = {}) =>
  JSON.stringify({
    custom_id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 50, ...more },
  });

const upload = async (client: OpenAI, text: string, purpose: 'batch' | 'user_data' = 'batch') =>
  client.files.create({ file: await toFile(Buffer.from(text), 'in.jsonl'), purpose });

async function openaiBatch(client: OpenAI, ...models: readonly string[]) {
  const text = models.map((model, i) => chatLine(`r${i}`, model)).join('\n');
  const file = await upload(client, text);
  return client.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
}

const params = (model: string, max_tokens = 50) => ({
  model,
  max_tokens,
  messages: [{ role: 'user' as const, content: 'Hi.' }],
});
const messagesBatch = async (client: Anthropic, ...models: readonly string[]) =>
  client.messages.batches.create({
    requests: models.map((model, i) => ({ custom_id: `r${i}`, params: params(model) })),
  });

const chatAnswer = ({ model }: { readonly model: string }) => ({
  id: 'c',
  object: 'chat.completion',
  model,
  service_tier: 'default',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 900, completion_tokens: 100, total_tokens: 1000 },
});
const messagesAnswer = ({ model }: { readonly model: string }) => ({
  id: 'm',
  type: 'message',
  role: 'assistant',
  model,
  content: [{ type: 'text', text: 'x' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 900, output_tokens: 100, service_tier: 'batch' },
});
/** 900 tokens in and 100 out: half of the price, or the tier of batches. */
const COST = { small: (900 * 2 + 100 * 10) * 500, big: (900 * 8 + 100 * 30) * 1000 };

interface Row {
  readonly request: string;
  readonly target: string;
  readonly cost: number | null;
  readonly input: number;
  readonly output: number;
}

const rowsOf = ({ home }: InProcess): readonly Row[] => {
  try {
    const db = new Database(join(home, 'state', 'spend.db'), { readonly: true });
    try {
      return db.query<Row, []>('SELECT * FROM spend ORDER BY id').all();
    } finally {
      db.close();
    }
  } catch {
    return [];
  }
};
const rows = (gateway: InProcess, count: number) =>
  until(() => (rowsOf(gateway).length >= count ? rowsOf(gateway) : undefined));
const sum = (all: readonly Row[], field: 'cost' | 'input' | 'output') =>
  all.reduce((total, row) => total + (row[field] ?? 0), 0);

const statusOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'answered',
    (thrown: { status?: number }) => thrown.status,
  );

const keyOf = (asked: string) => asked.split(' ')[2];

/** The same steps in both APIs. */
const APIS = {
  openai: {
    make: (gateway: InProcess, key?: string, ...models: string[]) =>
      openaiBatch(openaiOf(gateway, key), ...(models.length > 0 ? models : ['mine'])),
    get: (gateway: InProcess, id: string, key?: string) =>
      openaiOf(gateway, key).batches.retrieve(id),
    cancel: (gateway: InProcess, id: string, key?: string) =>
      openaiOf(gateway, key).batches.cancel(id),
    list: async (gateway: InProcess, key?: string) =>
      (await openaiOf(gateway, key).batches.list()).data.map(({ id }) => id),
    async results(gateway: InProcess, id: string, key?: string) {
      const client = openaiOf(gateway, key);
      const { output_file_id } = await client.batches.retrieve(id);
      return (await client.files.content(output_file_id!)).text();
    },
    answer: chatAnswer,
    vendor: ({ openai }: { openai: BatchVendor }) => openai,
    name: 'oai',
    path: '/v1/batches',
    cursors: ['after', 'before'],
  },
  anthropic: {
    make: (gateway: InProcess, key?: string, ...models: string[]) =>
      messagesBatch(anthropicOf(gateway, key), ...(models.length > 0 ? models : ['claude'])),
    get: (gateway: InProcess, id: string, key?: string) =>
      anthropicOf(gateway, key).messages.batches.retrieve(id),
    cancel: (gateway: InProcess, id: string, key?: string) =>
      anthropicOf(gateway, key).messages.batches.cancel(id),
    list: async (gateway: InProcess, key?: string) =>
      (await anthropicOf(gateway, key).messages.batches.list()).data.map(({ id }) => id),
    async results(gateway: InProcess, id: string, key?: string) {
      const lines = [];
      const client = anthropicOf(gateway, key);
      for await (const line of await client.messages.batches.results(id)) lines.push(line);
      return lines.map((line) => JSON.stringify(line)).join('\n');
    },
    answer: messagesAnswer,
    vendor: ({ anthropic }: { anthropic: BatchVendor }) => anthropic,
    name: 'ant',
    path: '/v1/messages/batches',
    cursors: ['after_id', 'before_id'],
  },
};

describe.each(Object.entries(APIS))('batches of %s', (_, api) => {
  test('the models of the requests are those of the provider, and nothing else is changed', async () => {
    const all = await start();
    await api.make(all.gateway, ALICE, `${api.name}/small`, `${api.name}/big`, `${api.name}/big`);
    const sent = api.vendor(all).requests[0]!;
    const bodies = sent.map((one) => (one.params ?? one.body) as ReturnType<typeof params>);
    expect(bodies).toEqual([params('small'), params('big'), params('big')]);
    expect(sent.map(({ custom_id }) => custom_id)).toEqual(['r0', 'r1', 'r2']);
  });

  test('whoever made it sees it, with the key of the vendor that does; nobody else', async () => {
    const all = await start();
    const { gateway } = all;
    const vendor = api.vendor(all);
    const { id } = await api.make(gateway);
    const other = await api.make(gateway, BOB);
    for (let i = 0; i < 4; i++) expect((await api.get(gateway, id)).id).toBe(id);
    const keys = vendor.asked.filter((one) => one.includes(id)).map(keyOf);
    expect(new Set(keys).size).toBe(1);
    expect(await api.list(gateway)).toEqual([id]);
    expect(await api.list(gateway, BOB)).toEqual([other.id]);
    vendor.end(api.answer);
    await api.get(gateway, id);
    const before = vendor.asked.length;
    for (const does of [api.get, api.cancel, api.results]) {
      expect(await statusOf(does(gateway, id, BOB))).toBe(404);
    }
    expect(vendor.asked.length).toBe(before);
    expect((await api.cancel(gateway, id)).id).toBe(id);
  });

  test('cost is reserved when it is made, and settled once, at the price of batches, by its results', async () => {
    const all = await start();
    const { gateway } = all;
    const vendor = api.vendor(all);
    const models = [`${api.name}/small`, `${api.name}/big`, `${api.name}/big`] as const;
    const { id } = await api.make(gateway, ALICE, ...models);
    const reserved = await rows(gateway, 2);
    expect(reserved.map(({ target }) => target)).toEqual([`${api.name}/small`, `${api.name}/big`]);
    expect(sum(reserved, 'cost')).toBeGreaterThan(0);
    // A prompt of a few tokens and 50 tokens of output, at half of the price.
    expect(sum(reserved.slice(0, 1), 'output')).toBe(50);
    expect(sum(reserved.slice(0, 1), 'cost')).toBe(50 * 5000 + reserved[0]!.input * 1000);
    vendor.end(api.answer);
    await api.get(gateway, id);
    vendor.cutNext();
    expect(await statusOf(api.results(gateway, id))).not.toBe('answered');
    expect(rowsOf(gateway)).toHaveLength(2);
    const [first, second] = [await api.results(gateway, id), await api.results(gateway, id)];
    expect(first.trim().split('\n')).toHaveLength(3);
    expect(second).toBe(first);
    const settled = await rows(gateway, 4);
    expect(new Set(settled.map(({ request }) => request)).size).toBe(1);
    expect(sum(settled, 'cost')).toBe(COST.small + 2 * COST.big);
    expect([sum(settled, 'input'), sum(settled, 'output')]).toEqual([2700, 300]);
  });

  test('a process that is killed while it reads results leaves the amount to the next reader', async () => {
    const all = await start();
    const { gateway } = all;
    const { id } = await api.make(gateway, ALICE, `${api.name}/small`);
    api.vendor(all).end(api.answer);
    await api.get(gateway, id);
    const order: string[] = [];
    const { read } = FormSpool.prototype;
    const { takeDue } = VendorObjects.prototype;
    const reads = spyOn(FormSpool.prototype, 'read').mockImplementation(async function* (
      this: FormSpool,
      ...range
    ) {
      yield* read.apply(this, range);
      order.push('read');
    });
    const takes = spyOn(VendorObjects.prototype, 'takeDue').mockImplementation(function (
      this: VendorObjects,
      ...of
    ) {
      order.push('taken');
      return takeDue.apply(this, of);
    });
    await api.results(gateway, id);
    reads.mockRestore();
    takes.mockRestore();
    expect(order.slice(0, 2)).toEqual(['read', 'taken']);
    expect(await rows(gateway, 2)).toHaveLength(2);
  });

  test('a budget gets back what its answers cost less than was reserved', async () => {
    const all = await start();
    const { gateway } = all;
    const left = async () => {
      const answer = await fetch(`${gateway.url}/v1/usage`, {
        headers: { authorization: `Bearer ${ALICE}` },
      });
      const { budgets } = (await answer.json()) as { budgets: readonly { spent_usd: number }[] };
      return budgets[0]!.spent_usd;
    };
    const { id } = await api.make(gateway, ALICE, `${api.name}/small`, `${api.name}/small`);
    const [reserved] = await rows(gateway, 1);
    expect(await left()).toBeCloseTo(reserved!.cost! / 1e9, 9);
    const short = { prompt_tokens: 1, input_tokens: 1, completion_tokens: 1, output_tokens: 1 };
    api.vendor(all).end((request) => ({ ...api.answer(request), usage: short }));
    await api.get(gateway, id);
    await api.results(gateway, id);
    await rows(gateway, 2);
    // Two answers of one token each way, at half of the price.
    expect(await left()).toBeCloseTo((2 * (2 + 10) * 500) / 1e9, 9);
  });

  test('a batch without an answer costs nothing', async () => {
    const all = await start();
    const { gateway } = all;
    const { id } = await api.make(gateway);
    await rows(gateway, 1);
    api.vendor(all).end(() => undefined);
    await api.get(gateway, id);
    const settled = await rows(gateway, 2);
    expect(sum(settled, 'cost')).toBe(0);
    await api.get(gateway, id);
    expect(rowsOf(gateway)).toHaveLength(2);
  });

  test('a budget that it may exceed refuses it before anything is sent', async () => {
    const keys = [{ name: 'poor', key: ALICE, budgets: [{ usd: 0.0001, per: 'total' }] }];
    const all = await start({ auth: { keys } });
    const status = await statusOf(api.make(all.gateway, ALICE, `${api.name}/big`));
    expect([402, 429]).toContain(status as number);
    expect(api.vendor(all).requests).toEqual([]);
  });

  test('a key that may use other models or no batches is refused', async () => {
    const all = await start();
    expect(await statusOf(api.make(all.gateway, CHEAP, `${api.name}/small`))).toBe(403);
    const keys = [
      { name: 'k', key: CHEAP, models: [`${api.name}/small`], tools: ['batches', 'files'] },
    ];
    const may = await start({ auth: { keys } });
    expect(await statusOf(api.make(may.gateway, CHEAP, `${api.name}/small`))).toBe('answered');
    const both = api.make(may.gateway, CHEAP, `${api.name}/small`, `${api.name}/big`);
    expect(await statusOf(both)).toBe(403);
  });

  test('requests for models of two providers are refused in words', async () => {
    const { gateway } = await start();
    const made = api.make(gateway, ALICE, 'oai/small', 'ant/small');
    await expect(made).rejects.toThrow(/ant|oai/);
    expect(await statusOf(made)).not.toBe('answered');
  });

  test('a provider that has none is named', async () => {
    const all = await start({}, /batches$|files$/);
    await expect(api.make(all.gateway)).rejects.toThrow(
      new RegExp(`Provider ${api.name} has no /v1/[a-z/]+\\. It answered 404`),
    );
    expect(rowsOf(all.gateway).every(({ cost }) => cost === 0)).toBe(true);
  });

  test('the newest is listed first, page by page in both directions', async () => {
    const { gateway } = await start();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await api.make(gateway)).id);
    expect(await api.list(gateway)).toEqual(ids);
    const page = async (query: string): Promise<unknown[]> => {
      const response = await fetch(`${gateway.url}${api.path}?${query}`, {
        headers: { 'x-api-key': ALICE, 'anthropic-version': '2023-06-01' },
      });
      const { data, has_more, last_id } = (await response.json()) as {
        data: { id: string }[];
        has_more: boolean;
        last_id: string;
      };
      return [data.map(({ id }) => id), has_more, last_id];
    };
    const [after, before] = api.cursors;
    expect(await page('limit=2')).toEqual([ids.slice(0, 2), true, ids[1]]);
    expect(await page(`limit=2&${after}=${ids[1]}`)).toEqual([[ids[2]], false, ids[2]]);
    expect(await page(`limit=1&${before}=${ids[2]}`)).toEqual([[ids[1]], true, ids[1]]);
    expect(await page(`${after}=nothing`)).toEqual([[], false, null]);
  });

  test('results are read here, by a client that another process served before', async () => {
    const all = await start();
    const home = await mkdtemp(join(tmpdir(), 'hopgate-batches-'));
    open.push({ stop: () => rm(home, { recursive: true }) });
    const first = await startInProcess(all.config, home);
    const { id } = await api.make(first);
    await first.stop();
    api.vendor(all).end(api.answer);
    const second = await startInProcess(all.config, home);
    open.push(second);
    expect((await api.results(second, id)).trim().split('\n')).toHaveLength(1);
    expect(sum(await rows(second, 2), 'cost')).toBe(COST.small);
  });
});

describe('a client that leaves while the vendor makes', () => {
  const bearer = { authorization: `Bearer ${ALICE}` };
  const json = { ...bearer, 'content-type': 'application/json' };
  const post = (gateway: InProcess, path: string, headers: object, body: FormData | string) => {
    const leave = new AbortController();
    const asked = fetch(gateway.url + path, {
      method: 'POST',
      headers: { ...headers },
      body,
      signal: leave.signal,
    });
    return { asked, leave: () => leave.abort() };
  };
  const kinds = {
    'a batch': {
      api: APIS.openai,
      async begin(gateway: InProcess) {
        const { id: input_file_id } = await upload(openaiOf(gateway), chatLine('r', 'mine'));
        return () => {
          const asks = {
            input_file_id,
            endpoint: '/v1/chat/completions',
            completion_window: '24h',
          };
          return post(gateway, '/v1/batches', json, JSON.stringify(asks));
        };
      },
      list: APIS.openai.list,
      reserves: true,
    },
    'a batch of Messages': {
      api: APIS.anthropic,
      begin: async (gateway: InProcess) => () => {
        const requests = [{ custom_id: 'r', params: params('claude') }];
        const headers = { ...json, 'anthropic-version': '2023-06-01' };
        return post(gateway, '/v1/messages/batches', headers, JSON.stringify({ requests }));
      },
      list: APIS.anthropic.list,
      reserves: true,
    },
    'a file': {
      api: APIS.openai,
      begin: async (gateway: InProcess) => () => {
        const form = new FormData();
        form.set('purpose', 'user_data');
        form.set('file', new File(['text'], 'a.txt'));
        return post(gateway, '/v1/files', bearer, form);
      },
      list: async (gateway: InProcess) =>
        (await openaiOf(gateway).files.list()).data.map(({ id }) => id),
      reserves: false,
    },
  };

  test.each(Object.entries(kinds))('%s finds it in its list, and pays once', async (_, kind) => {
    const all = await start();
    const { gateway } = all;
    const vendor = kind.api.vendor(all);
    const begin = await kind.begin(gateway);
    const before = vendor.asked.length;
    const answer = vendor.hold();
    const { asked, leave } = begin();
    await until(() => vendor.asked.length > before);
    leave();
    expect(await statusOf(asked)).not.toBe('answered');
    await Bun.sleep(100);
    answer();
    const listed = await until(async () => {
      const ids = await kind.list(gateway);
      return ids.length > 0 && ids;
    });
    expect(listed.length).toBe(1);
    expect(vendor.asked.slice(before).filter((one) => one.startsWith('POST')).length).toBe(1);
    if (!kind.reserves) return;
    const booked = await rows(gateway, 1);
    expect(booked.map(({ cost }) => (cost ?? 0) > 0)).toEqual([true]);
  });
});

test('an id in the results of a batch belongs to the key of the batch', async () => {
  const all = await start();
  const { gateway, anthropic } = all;
  const { id } = await APIS.anthropic.make(gateway);
  const container = { id: 'container_of_batch', expires_at: '2030-01-01T00:00:00Z' };
  anthropic.end((request) => ({ ...messagesAnswer(request), container }));
  expect(await APIS.anthropic.results(gateway, id)).toContain(container.id);
  const ask = (client: Anthropic) =>
    client.messages.create({ ...params('claude'), container: container.id } as never);
  const before = anthropic.asked.length;
  expect(await statusOf(ask(anthropicOf(gateway, BOB)))).toBe(404);
  expect(anthropic.asked.length).toBe(before);
  await ask(anthropicOf(gateway)).catch(() => undefined);
  expect(anthropic.asked.length).toBeGreaterThan(before);
});

test('a file that the code tool of a vendor made is read by the key whose answer named it, and by no other', async () => {
  const all = await start();
  const { gateway, anthropic } = all;
  const { id } = await APIS.anthropic.make(gateway);
  const output = { type: 'bash_code_execution_output', file_id: 'file_made' };
  const result = { type: 'bash_code_execution_result', content: [output] };
  const block = { type: 'bash_code_execution_tool_result', tool_use_id: 's', content: result };
  anthropic.end((request) => ({ ...messagesAnswer(request), content: [block] }));
  await APIS.anthropic.results(gateway, id);
  const asked = () => anthropic.asked.filter((line) => line.includes('file_made'));
  for (const does of ['download', 'retrieveMetadata', 'delete'] as const) {
    expect(await statusOf(anthropicOf(gateway, BOB).beta.files[does]('file_made'))).toBe(404);
    expect(asked()).toEqual([]);
  }
  await until(async () => {
    await statusOf(anthropicOf(gateway).beta.files.download('file_made'));
    return asked().length > 0;
  });
  expect(asked()[0]).toStartWith('GET /v1/files/file_made/content ');
});

describe('files', () => {
  test("OpenAI's: kept for whoever uploads them, with the model in the query where several providers could", async () => {
    const { gateway, openai } = await start();
    const client = openaiOf(gateway);
    const file = await upload(client, 'some text', 'user_data');
    expect(await (await client.files.content(file.id)).text()).toBe('some text');
    expect((await client.files.list()).data.map(({ id }) => id)).toEqual([file.id]);
    expect((await openaiOf(gateway, BOB).files.list()).data).toEqual([]);
    expect(await statusOf(openaiOf(gateway, BOB).files.content(file.id))).toBe(404);
    expect(await statusOf(openaiOf(gateway, BOB).files.delete(file.id))).toBe(404);
    expect((await client.files.delete(file.id)).deleted).toBe(true);
    expect(await statusOf(client.files.retrieve(file.id))).toBe(404);
    expect(new Set(openai.asked.map(keyOf)).size).toBe(1);
  });

  test("Anthropic's: with its beta, apart from OpenAI's", async () => {
    const { gateway } = await start();
    const client = anthropicOf(gateway);
    const file = await client.beta.files.upload({
      file: await Anthropic.toFile(Buffer.from('<p>hello</p>'), 'a.html'),
    });
    expect(await (await client.beta.files.download(file.id)).text()).toBe('<p>hello</p>');
    expect((await client.beta.files.list()).data.map(({ id }) => id)).toEqual([file.id]);
    expect((await openaiOf(gateway).files.list()).data).toEqual([]);
    expect(await statusOf(openaiOf(gateway).files.retrieve(file.id))).toBe(404);
    expect(await statusOf(anthropicOf(gateway, BOB).beta.files.delete(file.id))).toBe(404);
    await client.beta.files.delete(file.id);
    expect((await client.beta.files.list()).data).toEqual([]);
  });

  test.each([
    ['no JSON', 'nonsense', 'Line 1'],
    ['no body', `${chatLine('a', 'mine')}\n{"custom_id":"b"}`, 'Line 2'],
    ['no model', '{"body":{"messages":[]}}', "no 'model'"],
    ['a model twice', '{"body":{"model":"mine","model":"big"}}', 'twice'],
    ['nothing', '', 'no requests'],
  ])('a file of requests with %s is refused before it is sent', async (_, text, words) => {
    const { gateway, openai } = await start();
    await expect(upload(openaiOf(gateway), text)).rejects.toThrow(words);
    expect(openai.asked).toEqual([]);
  });

  test('what stands beside the names of models stays byte for byte, and the form has its length', async () => {
    const { gateway, openai } = await start();
    const line = (model: string) =>
      `{"custom_id": "1", "body" : {"big":12345678901234567890, "model": "${model}", "messages":[]}}\r\n`;
    const client = openaiOf(gateway);
    const text = `${line('mine')}\n${line('oai/big')}${line('mine').trim()}`;
    const file = await upload(client, text);
    const content = await (await client.files.content(file.id)).text();
    expect(content).toBe(text.replaceAll('mine', 'small').replaceAll('oai/big', 'big'));
    expect(file.bytes).toBe(content.length);
    expect(openai.asked).toHaveLength(2);
  });
});

describe('a file that another key has uploaded', () => {
  const say = (model: string, content: unknown[]) => ({
    model,
    max_tokens: 50,
    messages: [{ role: 'user', content: [...content, { type: 'text', text: 'Read it.' }] }],
  });
  const NAMED: readonly (readonly [
    what: string,
    api: 'openai' | 'anthropic',
    path: string,
    body: (id: string) => string,
  ])[] = [
    [
      'in a part of a Chat message',
      'openai',
      '/v1/chat/completions',
      (id) => JSON.stringify(say('oai/small', [{ type: 'file', file: { file_id: id } }])),
    ],
    [
      'with its name written in escapes',
      'openai',
      '/v1/chat/completions',
      (id) =>
        JSON.stringify(say('oai/small', [{ type: 'file', file: { file_id: id } }])).replace(
          '"file_id"',
          '"file\\u005fid"',
        ),
    ],
    ...['fileid', 'ms', 'mm_file'].map((scheme): (typeof NAMED)[number] => [
      `in a text that begins with ${scheme}://`,
      'openai',
      '/v1/chat/completions',
      (id) =>
        JSON.stringify(
          say('oai/small', [{ type: 'text', text: `${scheme}://file-of-all,${scheme}://${id}` }]),
        ),
    ]),
    [
      'in the address of a picture, its slashes escaped',
      'openai',
      '/v1/chat/completions',
      (id) =>
        JSON.stringify(
          say('oai/small', [{ type: 'image_url', image_url: { url: `ms://${id}` } }]),
        ).replace('ms://', 'ms:\\/\\/'),
    ],
    [
      'in an item of Responses',
      'openai',
      '/v1/responses',
      (id) =>
        JSON.stringify({
          model: 'oai/small',
          input: [{ role: 'user', content: [{ type: 'input_file', file_id: id }] }],
        }),
    ],
    [
      'among those of a container',
      'openai',
      '/v1/responses',
      (id) =>
        JSON.stringify({
          model: 'oai/small',
          input: 'Count.',
          tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: [id] } }],
        }),
    ],
    [
      'as a document of Messages',
      'anthropic',
      '/v1/messages',
      (id) =>
        JSON.stringify(
          say('ant/small', [{ type: 'document', source: { type: 'file', file_id: id } }]),
        ),
    ],
    [
      'as what is to be counted',
      'anthropic',
      '/v1/messages/count_tokens',
      (id) =>
        JSON.stringify(
          say('ant/small', [{ type: 'document', source: { type: 'file', file_id: id } }]),
        ),
    ],
    [
      'as a picture of another endpoint',
      'openai',
      '/v1/images/edits',
      (id) => JSON.stringify({ model: 'oai/small', prompt: 'A hat.', images: [{ file_id: id }] }),
    ],
    [
      'as an upload to a container',
      'anthropic',
      '/v1/messages',
      (id) => JSON.stringify(say('ant/small', [{ type: 'container_upload', file_id: id }])),
    ],
  ];
  const put = async (gateway: InProcess, api: 'openai' | 'anthropic') =>
    api === 'openai'
      ? (await upload(openaiOf(gateway), 'a secret', 'user_data')).id
      : (
          await anthropicOf(gateway).beta.files.upload({
            file: await Anthropic.toFile(Buffer.from('a secret'), 'a.txt'),
          })
        ).id;

  test.each(NAMED)('%s is not read for this one; its own is', async (_, api, path, body) => {
    const { gateway, ...vendors } = await start();
    const { asked } = vendors[api];
    const id = await put(gateway, api);
    const ask = (key: string, named: string) =>
      fetch(gateway.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
        },
        body: body(named),
      });
    const before = asked.length;
    const refused = await ask(BOB, id);
    expect([refused.status, await refused.text()]).toEqual([
      404,
      expect.stringContaining(`There is no file '${id}' that was made with this key`),
    ]);
    expect(asked.length).toBe(before);
    // One that this gateway does not know may be there at the vendor.
    for (const [key, named] of [
      [ALICE, id],
      [BOB, 'file-of-nobody'],
    ] as const) {
      await (await ask(key, named)).text();
      expect(asked.length).toBeGreaterThan(before);
      asked.length = before;
    }
  });

  test('in a request of a batch refuses the batch before anything is sent', async () => {
    const { gateway, openai, anthropic } = await start();
    const id = await put(gateway, 'openai');
    const before = openai.asked.length;
    const line = chatLine('r', 'mine', {
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
    });
    expect(await statusOf(upload(openaiOf(gateway, BOB), line))).toBe(404);
    expect(openai.asked.length).toBe(before);
    await upload(openaiOf(gateway), line);

    const own = await put(gateway, 'anthropic');
    const batch = (client: Anthropic) =>
      client.messages.batches.create({
        requests: [
          {
            custom_id: 'r',
            params: {
              ...params('claude'),
              messages: [
                { role: 'user', content: [{ type: 'container_upload', file_id: own } as never] },
              ],
            },
          },
        ],
      });
    const asked = anthropic.asked.length;
    expect(await statusOf(batch(anthropicOf(gateway, BOB)))).toBe(404);
    expect(anthropic.asked.length).toBe(asked);
    await batch(anthropicOf(gateway));
  });
});
