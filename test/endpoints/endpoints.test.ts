/** The endpoints beside the protocols through the whole gateway, with OpenAI's own SDK as the client. */

import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import OpenAI, { APIError, toFile } from 'openai';
import { rawUpstream } from '../gateway/raw-upstream.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import { FORM_TYPE, file, formBytes } from './forms.ts';
import { type EndpointVendor, failing, startVendor, type VendorAnswer } from './vendor.ts';

const open: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

function vendor(answer: VendorAnswer): EndpointVendor {
  const started = startVendor(answer);
  open.push(started);
  return started;
}

const providerAt = (url: string, more: object = {}) => ({
  protocol: 'openai-chat',
  base_url: url,
  keys: ['sk-vendor-key'],
  models: ['*'],
  ...more,
});

async function gatewayTo(
  vendors: readonly { readonly url: string }[],
  more: object = {},
): Promise<InProcess> {
  const names = vendors.map((_, i) => `v${i}`);
  const started = await startInProcess({
    providers: Object.fromEntries(vendors.map(({ url }, i) => [names[i]!, providerAt(url)])),
    routes: [{ name: 'all', to: names.map((name) => `${name}/*`) }],
    retry: { attempts: 2, base_delay: 0 },
    samples: { mode: 'all' },
    ...more,
  });
  open.push(started);
  return started;
}

const clientOf = ({ url }: InProcess, apiKey = 'none') =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

const exchangeLine = (gateway: InProcess) =>
  until(() => {
    const lines = gateway.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    return lines.find(({ event }) => event === 'exchange');
  });

const AUDIO = Buffer.alloc(300_000, 'RIFFdata');
const EMBEDDING = {
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }],
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 8, total_tokens: 8 },
};

describe("OpenAI's SDK", () => {
  test('embeddings', async () => {
    const upstream = vendor(() => Response.json(EMBEDDING, { headers: { 'x-request-id': 'v-1' } }));
    const gateway = await gatewayTo([upstream]);
    const answer = await clientOf(gateway).embeddings.create({
      model: 'text-embedding-3-small',
      input: 'hello',
      encoding_format: 'float',
    });
    expect(answer.data[0]!.embedding).toEqual([0.5, -0.25]);
    expect(upstream.received[0]).toMatchObject({ path: '/v1/embeddings' });
    expect(upstream.received[0]!.headers.get('authorization')).toBe('Bearer sk-vendor-key');
    expect(await exchangeLine(gateway)).toMatchObject({
      client: expect.stringMatching(/^embeddings /),
      target: 'v0/text-embedding-3-small',
      status: 200,
      usage: { input: 8, output: 0 },
    });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toContain('protocol="embeddings",target="v0/text-embedding-3-small"');
  });

  test('audio.transcriptions, with the model before or behind the file', async () => {
    const upstream = vendor(() => Response.json({ text: 'good morning' }));
    const gateway = await gatewayTo([upstream], { aliases: { hearing: 'v0/whisper-1' } });
    const client = clientOf(gateway);
    const speech = await toFile(AUDIO, 'speech.wav', { type: 'audio/wav' });
    const answers = [
      await client.audio.transcriptions.create({ file: speech, model: 'hearing' }),
      await client.audio.transcriptions.create({ model: 'hearing', file: speech }),
    ];
    expect(answers.map(({ text }) => text)).toEqual(['good morning', 'good morning']);
    for (const { path, headers, body } of upstream.received) {
      expect(path).toBe('/v1/audio/transcriptions');
      expect(Number(headers.get('content-length'))).toBe(body.length);
      const form = await new Response(body, {
        headers: { 'content-type': headers.get('content-type')! },
      }).formData();
      expect(form.get('model')).toBe('whisper-1');
      const received = form.get('file') as File;
      expect(received.name).toBe('speech.wav');
      expect(body.toString('latin1')).toMatch(/content-type: audio\/wav/i);
      expect(Buffer.from(await received.arrayBuffer()).equals(AUDIO)).toBe(true);
    }
  });

  test('audio.speech: the bytes come as they are', async () => {
    const upstream = vendor(
      () => new Response(AUDIO, { headers: { 'content-type': 'audio/mpeg' } }),
    );
    const gateway = await gatewayTo([upstream]);
    const answer = await clientOf(gateway).audio.speech.create({
      model: 'tts-1',
      voice: 'alloy',
      input: 'hello',
    });
    expect(answer.headers.get('content-type')).toBe('audio/mpeg');
    expect(Buffer.from(await answer.arrayBuffer()).equals(AUDIO)).toBe(true);
  });

  test('images.edit with a file', async () => {
    const data = [{ b64_json: AUDIO.toString('base64') }];
    const upstream = vendor(() => Response.json({ created: 1, data }));
    const gateway = await gatewayTo([upstream]);
    const answer = await clientOf(gateway).images.edit({
      model: 'gpt-image-1',
      image: await toFile(AUDIO, 'cat.png', { type: 'image/png' }),
      prompt: 'a hat',
    });
    expect(answer.data?.[0]?.b64_json).toBe(data[0]!.b64_json);
    expect(upstream.received[0]!.body.includes(AUDIO)).toBe(true);
  });

  test('moderations and a stream of completions', async () => {
    const frames = ['a', 'b'].map((text) => `data: ${JSON.stringify({ choices: [{ text }] })}\n\n`);
    const upstream = vendor(({ path }) =>
      path === '/v1/completions'
        ? new Response(`${frames.join('')}data: [DONE]\n\n`, {
            headers: { 'content-type': 'text/event-stream' },
          })
        : Response.json({ id: 'modr-1', model: 'm', results: [{ flagged: false }] }),
    );
    const client = clientOf(await gatewayTo([upstream]));
    const moderation = await client.moderations.create({ model: 'm', input: 'x' });
    expect(moderation.results[0]!.flagged).toBe(false);
    const stream = await client.completions.create({ model: 'm', prompt: 'x', stream: true });
    const texts: string[] = [];
    for await (const { choices } of stream) texts.push(choices[0]!.text);
    expect(texts).toEqual(['a', 'b']);
  });

  test.each([1, 7, 4096])(
    'an error in a stream tells no key, in pieces of %i bytes',
    async (size) => {
      const words = (text: string) => `data: ${JSON.stringify({ choices: [{ text }] })}\n\n`;
      const error = { message: 'Incorrect API key: sk-vendor-key.', code: 'sk-vendor-key' };
      const failed = Buffer.from(`data: ${JSON.stringify({ error })}\n\n`);
      const upstream = vendor(
        () =>
          new Response(
            (async function* () {
              yield Buffer.from(words('a'));
              await Bun.sleep(5);
              for (let at = 0; at < failed.length; at += size) {
                yield failed.subarray(at, at + size);
                await Bun.sleep(1);
              }
            })() as never,
            { headers: { 'content-type': 'text/event-stream' } },
          ),
      );
      const gateway = await gatewayTo([upstream]);
      const body = JSON.stringify({ model: 'm', prompt: 'x', stream: true });
      const text = await (await post(gateway, '/v1/completions', body)).text();
      expect(text).toStartWith(words('a'));
      expect(text).not.toContain('sk-vendor-key');
      expect(text).toContain('Incorrect API key: *************.');
    },
  );

  test("gets a vendor's refusal in the vendor's words", async () => {
    const upstream = vendor(() =>
      Response.json(
        { error: { message: 'no such size', type: 'invalid_request_error', param: 'size' } },
        { status: 400 },
      ),
    );
    const client = clientOf(await gatewayTo([upstream]));
    const refused = await client.images
      .generate({ model: 'm', prompt: 'x' })
      .catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(APIError);
    expect(refused).toMatchObject({ status: 400, param: 'size' });
    expect(upstream.received).toHaveLength(1);
  });
});

const post = (gateway: InProcess, path: string, body: Bun.BodyInit, type = 'application/json') =>
  fetch(gateway.url + path, { method: 'POST', body, headers: { 'content-type': type } });

describe('the body', () => {
  test('of JSON stays byte for byte but for the name of the model', async () => {
    const upstream = vendor(() => Response.json({ results: [] }));
    const gateway = await gatewayTo([upstream], { aliases: { sort: 'v0/rerank-2' } });
    const written =
      '{ "n":1.0, "model" : "sort",\n "documents":["é","\\u00e9"], "x":12345678901234567890 }';
    expect((await post(gateway, '/v1/rerank', written)).status).toBe(200);
    expect((await post(gateway, '/rerank', written.replace('sort', 'v0/rerank-3'))).status).toBe(
      200,
    );
    expect(upstream.received.map(({ body }) => body.toString())).toEqual([
      written.replace('sort', 'rerank-2'),
      written.replace('sort', 'rerank-3'),
    ]);
  });

  test('of a form larger than its spool is streamed on', async () => {
    const upstream = vendor(() => Response.json({ text: 'long' }));
    const gateway = await gatewayTo([upstream], {
      aliases: { hearing: 'v0/whisper-1' },
      limits: { form_spool_bytes: 100_000 },
    });
    const large = Buffer.alloc(5_000_000, 'abcdefgh');
    const form = (model: string) => formBytes([{ name: 'model', value: model }, file(large)]);
    const path = '/v1/audio/transcriptions';
    expect((await post(gateway, path, form('hearing'), FORM_TYPE)).status).toBe(200);
    const pieces = new ReadableStream({
      async start(controller) {
        for (let at = 0; at < 5_000_000; at += 500_000) {
          controller.enqueue(form('hearing').subarray(at, at + 500_000));
          await Bun.sleep(1);
        }
        controller.enqueue(form('hearing').subarray(5_000_000));
        controller.close();
      },
    });
    expect((await post(gateway, path, pieces, FORM_TYPE)).status).toBe(200);
    expect(upstream.received).toHaveLength(2);
    for (const { body } of upstream.received) expect(body.equals(form('whisper-1'))).toBe(true);
    const late = formBytes([file(large), { name: 'model', value: 'hearing' }]);
    const refused = await post(gateway, path, late, FORM_TYPE);
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ error: { param: 'model' } });
  });
});

describe('a failure', () => {
  test('goes to the same target again, then to the next, with the same body', async () => {
    const bad = vendor(() => failing(500));
    const good = vendor(() => Response.json({ text: 'ok' }));
    const gateway = await gatewayTo([bad, good]);
    const form = formBytes([file(AUDIO), { name: 'model', value: 'm' }]);
    const answer = await post(gateway, '/v1/audio/translations', form, FORM_TYPE);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-hopgate-target')).toBe('v1/m');
    expect(bad.received).toHaveLength(2);
    for (const { body } of [...bad.received, ...good.received])
      expect(body.equals(form)).toBe(true);
  });

  test.each([
    ['an empty answer', () => new Response('')],
    ['a web page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
    ['an error in disguise', () => Response.json({ error: { message: 'busy', code: 500 } })],
    [
      'half an answer',
      () => new Response('{"data":[', { headers: { 'content-type': 'application/json' } }),
    ],
    ['a path that it does not have', () => failing(404, 'no such path')],
  ])('%s is no success', async (_what, answer) => {
    const bad = vendor(answer);
    const good = vendor(() => Response.json(EMBEDDING));
    const body = '{"model":"m","input":"x"}';
    const both = await post(await gatewayTo([bad, good]), '/v1/embeddings', body);
    expect([both.status, both.headers.get('x-hopgate-target')]).toEqual([200, 'v1/m']);
    const alone = await post(await gatewayTo([bad]), '/v1/embeddings', body);
    expect(alone.status).toBeGreaterThanOrEqual(400);
    expect(await alone.json()).toHaveProperty('error.message');
  });

  test('of a form that was streamed is not followed by another try', async () => {
    const bad = vendor(() => failing(500));
    const good = vendor(() => Response.json({ text: 'ok' }));
    const gateway = await gatewayTo([bad, good], { limits: { form_spool_bytes: 50_000 } });
    const form = formBytes([{ name: 'model', value: 'm' }, file(Buffer.alloc(1_000_000, 'x'))]);
    const answer = await post(gateway, '/v1/audio/transcriptions', form, FORM_TYPE);
    expect(answer.status).toBe(500);
    expect([bad.received.length, good.received.length]).toEqual([1, 0]);
  });

  test('in the middle of audio cuts the client, too', async () => {
    const upstream = rawUpstream(async (wire) => {
      const head = 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 100000\r\n\r\n';
      await wire.write(head + 'x'.repeat(70_000));
      await Bun.sleep(50);
      wire.end();
    });
    open.push(upstream);
    const gateway = await gatewayTo([upstream]);
    const answer = await post(gateway, '/v1/audio/speech', '{"model":"m","input":"x"}');
    expect(answer.status).toBe(200);
    await expect(answer.arrayBuffer()).rejects.toThrow();
    expect(await exchangeLine(gateway)).toMatchObject({ status: 200, error: 'upstream' });
  });

  test('for want of an endpoint names the provider', async () => {
    const gateway = await startInProcess({
      providers: {
        claude: { protocol: 'anthropic-messages', base_url: 'http://127.0.0.1:1', keys: ['k'] },
      },
      routes: [{ to: ['claude/*'] }],
    });
    open.push(gateway);
    const answer = await post(gateway, '/v1/embeddings', '{"model":"m","input":"x"}');
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({
      error: { code: 'endpoint_not_served', message: expect.stringContaining('claude') },
    });
  });
});

describe('bad input', () => {
  const cases: readonly [string, string, string | Uint8Array, string, number, string | null][] = [
    ['no JSON', '/v1/embeddings', '{', 'application/json', 400, null],
    ['no object', '/v1/embeddings', '[]', 'application/json', 400, null],
    ['no model', '/v1/embeddings', '{"input":"x"}', 'application/json', 400, 'model'],
    ['a model that is no text', '/v1/rerank', '{"model":1}', 'application/json', 400, 'model'],
    ['a form without model', '/v1/images/edits', formBytes([file('x')]), FORM_TYPE, 400, 'model'],
    [
      'half a form',
      '/v1/audio/transcriptions',
      formBytes([{ name: 'model', value: 'm' }, file('x'.repeat(200))]).subarray(0, -100),
      FORM_TYPE,
      400,
      'file',
    ],
    ['no boundary', '/v1/images/edits', formBytes([]), 'multipart/form-data', 400, 'content-type'],
  ];
  test.each(cases)(
    '%s names the field, and nothing is sent',
    async (_, path, body, type, status, param) => {
      const upstream = vendor(() => Response.json({}));
      const gateway = await gatewayTo([upstream]);
      const answer = await post(gateway, path, body as Bun.BodyInit, type);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toMatchObject({
        error: { type: 'invalid_request_error', param },
      });
      expect(upstream.begun()).toBe(0);
    },
  );

  test('a form that breaks off in its streamed part never reaches the vendor whole', async () => {
    const upstream = vendor(() => Response.json({}));
    const gateway = await gatewayTo([upstream], { limits: { form_spool_bytes: 50_000 } });
    const form = formBytes([{ name: 'model', value: 'm' }, file(Buffer.alloc(500_000, 'x'))]);
    const wrong = Buffer.concat([form.subarray(0, -4), Buffer.from('xx\r\n')]);
    const answer = await post(gateway, '/v1/audio/transcriptions', wrong, FORM_TYPE);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param: 'file' } });
    expect(upstream.received).toHaveLength(0);
  });

  test('a form larger than its limit is a 413, with and without a length', async () => {
    const upstream = vendor(() => Response.json({}));
    const gateway = await gatewayTo([upstream], { limits: { form_bytes: 100_000 } });
    const form = formBytes([{ name: 'model', value: 'm' }, file(AUDIO)]);
    const chunked = new Blob([form]).stream();
    for (const body of [form, chunked]) {
      const answer = await post(gateway, '/v1/audio/transcriptions', body, FORM_TYPE);
      expect(answer.status).toBe(413);
    }
    expect(upstream.begun()).toBe(0);
  });

  test('without a key nothing is read', async () => {
    const upstream = vendor(() => Response.json(EMBEDDING));
    const gateway = await gatewayTo([upstream], {
      auth: { keys: [{ name: 'ann', key: 'sk-ann-0001' }] },
    });
    const refused = await post(gateway, '/v1/embeddings', '{');
    expect(refused.status).toBe(401);
    const client = clientOf(gateway, 'sk-ann-0001');
    await client.embeddings.create({ model: 'm', input: 'x' });
    expect(upstream.received).toHaveLength(1);
  });
});

test('a key reaches only the models that it may use', async () => {
  const upstream = vendor(() => Response.json(EMBEDDING));
  const gateway = await gatewayTo([upstream], {
    auth: { keys: [{ name: 'ann', key: 'sk-ann-0001', models: ['m'] }] },
  });
  const client = clientOf(gateway, 'sk-ann-0001');
  const refused = await client.embeddings.create({ model: 'other', input: 'x' }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(refused).toMatchObject({ status: 403, code: 'model_not_allowed' });
  expect(upstream.begun()).toBe(0);
  await client.embeddings.create({ model: 'm', input: 'x' });
  expect(upstream.received).toHaveLength(1);
});

test('a request is counted with its price, and a budget that is used up refuses the next', async () => {
  const upstream = vendor(() => Response.json(EMBEDDING));
  const gateway = await gatewayTo([upstream], {
    providers: { v0: providerAt(upstream.url, { prices: { '*': { input: 1, output: 1 } } }) },
    auth: {
      keys: [{ name: 'ann', key: 'sk-ann-0001', budgets: [{ usd: 0.000_02, per: 'day' }] }],
    },
  });
  const ask = () =>
    fetch(`${gateway.url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-ann-0001', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', input: 'x' }),
    });
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) {
    const answer = await ask();
    statuses.push(answer.status);
    if (i === 0) expect(answer.headers.get('x-hopgate-cost-usd')).toBe('0.000008');
    await answer.arrayBuffer();
  }
  expect(statuses[0]).toBe(200);
  expect(statuses[3]).toBe(429);
  expect(upstream.received.length).toBe(statuses.filter((status) => status === 200).length);
});

const SOUND = 'x'.repeat(2_800_000);
/** Each costs $0.45 to 0.5 at most, so a dollar is enough for two at a time. */
test.each<
  [
    name: string,
    path: string,
    price: { input: number; output: number },
    fields: Record<string, string>,
    admitted: number,
  ]
>([
  ['images', '/images/generations', { input: 5, output: 40 }, {}, 2],
  ['images, two by each', '/images/generations', { input: 5, output: 40 }, { n: '2' }, 1],
  ['edited images', '/images/edits', { input: 5, output: 40 }, {}, 2],
  ['edited images, two by each', '/images/edits', { input: 5, output: 40 }, { n: '2' }, 1],
  ['speech', '/audio/speech', { input: 1, output: 40 }, { input: 'word '.repeat(800) }, 2],
  ['transcripts', '/audio/transcriptions', { input: 30, output: 20 }, { file: SOUND }, 2],
  ['translations', '/audio/translations', { input: 30, output: 20 }, { file: SOUND }, 2],
])('%s at the same time do not go beyond a budget', async (_, path, price, fields, admitted) => {
  const finish = Promise.withResolvers<void>();
  const usage = { input_tokens: 10, output_tokens: 1584, total_tokens: 1594 };
  const upstream = vendor(async () => {
    await finish.promise;
    return Response.json({ created: 1, data: [{ b64_json: 'AAAA' }], usage });
  });
  const gateway = await gatewayTo([upstream], {
    providers: { v0: providerAt(upstream.url, { prices: { '*': price } }) },
    auth: { keys: [{ name: 'ann', key: 'sk-ann-0001', budgets: [{ usd: 1, per: 'day' }] }] },
  });
  const all = { model: 'm', prompt: 'a cat', ...fields };
  const ask = () => {
    const form = new FormData();
    for (const [name, value] of Object.entries(all)) {
      form.set(name, name === 'file' ? new File([value], 'a.mp3') : value);
    }
    form.set('image', new File(['image'], 'a.png'));
    const isForm = /edits|scriptions|lations/.test(path);
    return fetch(`${gateway.url}/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer sk-ann-0001',
        ...(!isForm && { 'content-type': 'application/json' }),
      },
      body: isForm ? form : JSON.stringify({ ...all, ...(fields.n && { n: Number(fields.n) }) }),
    });
  };
  const asked = Array.from({ length: 8 }, async () => {
    const answer = await ask();
    await answer.arrayBuffer();
    return answer.status;
  });
  let refused = 0;
  for (const one of asked) void one.then((status) => (refused += Number(status === 429)));
  await until(() => refused === 8 - admitted);
  await until(() => upstream.begun() >= admitted);
  expect(upstream.begun()).toBe(admitted);
  finish.resolve();
  await Promise.all(asked);
  // What they really cost leaves room for the next.
  expect((await ask()).status).toBe(200);
});

test('a client that leaves stops the vendor', async () => {
  let cancelled = false;
  const upstream = vendor(
    () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            await Bun.sleep(5);
            if (!cancelled) controller.enqueue(new Uint8Array(1000));
          },
          cancel() {
            cancelled = true;
          },
        }),
        { headers: { 'content-type': 'audio/mpeg' } },
      ),
  );
  const gateway = await gatewayTo([upstream]);
  const body = '{"model":"m","input":"x"}';
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
  await until(() => cancelled);
  expect(await exchangeLine(gateway)).toMatchObject({ status: 499, aborted: true });
});

test('an exchange is recorded without its media', async () => {
  const base64 = AUDIO.toString('base64');
  const upstream = vendor(() => Response.json({ data: [{ b64_json: base64 }] }));
  const gateway = await gatewayTo([upstream]);
  const form = formBytes([file(AUDIO, 'image'), { name: 'model', value: 'm' }]);
  await (await post(gateway, '/v1/images/edits', form, FORM_TYPE)).text();
  const folder = join(gateway.home, 'samples', 'images-edits');
  const names = await until(() => {
    if (!existsSync(folder)) return undefined;
    const found = readdirSync(folder, { recursive: false }) as string[];
    return found.some((name) => name.endsWith('_meta.json')) && found;
  });
  const read = (stage: string) => {
    const name = names.find((one) => one.endsWith(`_${stage}.json`));
    return JSON.parse(readFileSync(join(folder, name!), 'utf8')) as unknown;
  };
  const fields = {
    form: [
      {
        name: 'image',
        bytes: AUDIO.length,
        filename: 'speech.wav',
        content_type: 'audio/wav',
      },
      { name: 'model', bytes: 1, value: 'm' },
    ],
  };
  const answer = { data: [{ b64_json: `(${base64.length} bytes)` }] };
  expect(read('client-request')).toEqual(fields);
  expect(read('provider-request')).toEqual(fields);
  expect(read('provider-response')).toEqual(answer);
  expect(read('client-response')).toEqual(answer);
  expect(read('meta')).toMatchObject({ entry: 'images-edits', status: 200, model: 'm' });
});
