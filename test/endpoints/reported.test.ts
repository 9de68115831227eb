/** Answers of vendors that users of gateways have reported: what reaches the client, and what is tried again. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import OpenAI, { APIError } from 'openai';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import { type EndpointVendor, startVendor, type VendorAnswer } from './vendor.ts';

let answer: VendorAnswer;
let first: EndpointVendor;
let second: EndpointVendor;
let gateway: InProcess;

const SECOND = { from: 'second' };

beforeEach(async () => {
  first = startVendor((request, number) => answer(request, number));
  second = startVendor(() => Response.json(SECOND));
  const provider = ({ url }: EndpointVendor) => ({
    protocol: 'openai-chat',
    base_url: url,
    keys: ['sk-vendor-key'],
    models: ['*'],
  });
  gateway = await startInProcess({
    providers: { first: provider(first), second: provider(second) },
    routes: [{ when: { model: 'alone-*' }, to: ['first/*'] }, { to: ['first/*', 'second/*'] }],
    retry: { attempts: 2, base_delay: 0 },
  });
});

afterEach(async () => {
  await gateway.stop();
  await first.stop();
  await second.stop();
});

const JSON_TYPE = { 'content-type': 'application/json' };

/** @param path behind `/v1` */
function ask(path: string, more: object = {}, model = 'm'): Promise<Response> {
  const url = `${gateway.url}/v1${path}`;
  if (!/transcriptions|translations|edits|variations/.test(path)) {
    const body = JSON.stringify({ model, input: 'x', prompt: 'x', ...more });
    return fetch(url, { method: 'POST', headers: JSON_TYPE, body });
  }
  const form = new FormData();
  form.set('model', model);
  for (const [name, value] of Object.entries(more)) form.set(name, String(value));
  form.set('file', new File(['RIFF'], 'speech.wav'));
  return fetch(url, { method: 'POST', body: form });
}

const json =
  (body: unknown, status = 200) =>
  () =>
    Response.json(body, { status });
const typed = (body: string, type: string) => () =>
  new Response(body, { headers: { 'content-type': type } });

const VECTORS = {
  object: 'list',
  data: [{ index: 0, embedding: [1] }],
  usage: { total_tokens: 1 },
};
const MINUTES = { text: 'hello', usage: { type: 'duration', seconds: 3 } };
const SRT = '1\n00:00:00,000 --> 00:00:01,000\nhello\n\n';
const VTT = 'WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n';

describe('an answer goes out byte for byte', () => {
  test.each<[string, string, string, string]>([
    ['vectors of two models', '/embeddings', JSON.stringify(VECTORS), 'application/json'],
    ['vectors without usage', '/embeddings', '{"data":[{"embedding":[1]}]}', 'application/json'],
    ['vectors of tokens', '/embeddings', '{"data":[{"embedding":[[1],[2]]}]}', 'application/json'],
    ['int8 vectors', '/embeddings', '{"data":[{"embedding":[-3,4]}]}', 'application/json'],
    ["TEI's list of scores", '/rerank', '[{"index":0,"score":0.9}]', 'application/json'],
    [
      "Cohere's results",
      '/rerank',
      '{"id":"r","results":[{"index":0,"relevance_score":0.9}],"meta":{"billed_units":{"search_units":1}}}',
      'application/json',
    ],
    [
      "Voyage's results",
      '/rerank',
      '{"object":"list","data":[{"index":0,"relevance_score":0.9}],"usage":{"total_tokens":2}}',
      'application/json',
    ],
    [
      "Jina's results",
      '/rerank',
      '{"model":"j","results":[],"usage":{"total_tokens":2}}',
      'application/json',
    ],
    [
      'a wrapped success',
      '/rerank',
      '{"code":200,"message":"success","data":[1]}',
      'application/json',
    ],
    ['a flagged text', '/moderations', '{"results":[{"flagged":true}]}', 'application/json'],
    [
      'an image by its URL',
      '/images/generations',
      '{"data":[{"url":"https://x/y?a=1&b=2"}]}',
      'application/json',
    ],
    [
      'an image with a null error',
      '/images/generations',
      '{"data":[{"url":"u"}],"error":null}',
      'application/json',
    ],
    ['an accepted job', '/images/generations', '{"task_id":"t"}', 'application/json'],
    ['a transcript', '/audio/transcriptions', JSON.stringify(MINUTES), 'application/json'],
    ['a transcript of silence', '/audio/transcriptions', '{"text":""}', 'application/json'],
    [
      'words with their times',
      '/audio/transcriptions',
      '{"task":"transcribe","text":"a","words":[],"segments":[]}',
      'application/json',
    ],
    [
      'speakers',
      '/audio/transcriptions',
      '{"text":"a","segments":[{"type":"transcript.text.segment","speaker":"A"}]}',
      'application/json',
    ],
    ['subtitles', '/audio/transcriptions', SRT, 'text/plain; charset=utf-8'],
    ['subtitles by their type', '/audio/transcriptions', SRT, 'application/x-subrip'],
    ['captions', '/audio/transcriptions', VTT, 'text/vtt'],
    ['the text of silence', '/audio/transcriptions', '', 'text/plain; charset=utf-8'],
    ['the subtitles of silence', '/audio/transcriptions', '', 'application/x-subrip'],
    ['a translation of silence', '/audio/translations', '', 'text/plain'],
    ['a line end', '/audio/translations', '\n', 'text/plain'],
    ['a text that reads like an error', '/audio/transcriptions', 'error: it said', 'text/plain'],
    ['audio without a length', '/audio/speech', 'RIFF', 'audio/wav'],
    ['audio of no known type', '/audio/speech', 'RIFF', 'application/octet-stream'],
  ])('%s', async (_, path, body, type) => {
    answer = typed(body, type);
    const response = await ask(path, { response_format: 'text' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe(type);
    expect(response.headers.get('x-hopgate-notes')).toBeNull();
    expect(await response.text()).toBe(body);
    expect(first.received).toHaveLength(1);
    expect(second.received).toHaveLength(0);
  });
});

/** Tries at the first vendor, before the second one answers. */
const FAILURES: [string, string, VendorAnswer, number][] = [
  ['no vector at all', '/embeddings', json({ object: 'list', data: [], usage: {} }), 1],
  ['images that a filter took out', '/images/generations', json({ created: 1, data: [] }), 1],
  ["Ollama's words", '/embeddings', json({ error: 'model runner has unexpectedly stopped' }), 2],
  [
    "DashScope's code",
    '/images/generations',
    json({ code: 'InvalidApiKey', message: 'Invalid API-key', request_id: 'r' }),
    1,
  ],
  [
    "MiniMax's base_resp",
    '/audio/speech',
    json({ base_resp: { status_code: 1004, status_msg: 'login fail' } }),
    1,
  ],
  ["FastAPI's detail", '/rerank', json({ detail: 'CUDA out of memory' }), 2],
  [
    "vLLM's object",
    '/embeddings',
    json({ object: 'error', message: 'engine is dead', code: 500 }),
    2,
  ],
  [
    'an error with a status of success',
    '/audio/speech',
    json({ error: { message: 'try again' } }),
    2,
  ],
  ['nothing in the place of audio', '/audio/speech', typed('', 'audio/mpeg'), 1],
  ['nothing in the place of JSON', '/audio/transcriptions', typed('', 'application/json'), 1],
  ['nothing in the place of a stream', '/images/generations', typed('', 'text/event-stream'), 1],
  ['a page', '/embeddings', typed('<html>', 'text/html'), 2],
  ['half of the JSON', '/embeddings', typed('{"data":[', 'application/json'), 2],
  ['another method', '/embeddings', json({ detail: 'Method Not Allowed' }, 405), 1],
  ["a static server's 405", '/rerank', () => new Response('<h1>405</h1>', { status: 405 }), 1],
  ['no such path', '/rerank', json({ detail: 'Not Found' }, 404), 1],
  [
    "llama.cpp's 501",
    '/embeddings',
    json(
      {
        error: {
          code: 501,
          message: 'This server does not support embeddings. Start it with `--embeddings`',
          type: 'not_supported_error',
        },
      },
      501,
    ),
    1,
  ],
  [
    'a form that is too large there',
    '/audio/transcriptions',
    json({ error: { message: 'Maximum content size limit (26214400) exceeded' } }, 413),
    1,
  ],
  [
    'an error before the first image',
    '/images/generations',
    typed(
      'event: error\ndata: {"type":"error","error":{"message":"overloaded","type":"server_error"}}\n\n',
      'text/event-stream',
    ),
    1,
  ],
  [
    'an error before the first word',
    '/audio/transcriptions',
    typed('data: {"error":{"message":"oom"}}\n\ndata: [DONE]\n\n', 'text/event-stream'),
    2,
  ],
  [
    'an error before the first token',
    '/completions',
    typed('data: {"object":"error","message":"oom","code":500}\n\n', 'text/event-stream'),
    2,
  ],
];

test.each(FAILURES)(
  '%s is a failure, and the next target answers',
  async (_, path, given, tries) => {
    answer = given;
    const response = await ask(path, { stream: true });
    expect(await response.json()).toEqual(SECOND);
    expect(first.received).toHaveLength(tries);
  },
);

const SDK_ERRORS: [string, unknown, number, RegExp][] = [
  [
    "TEI's",
    { error: 'Input validation error: `inputs` cannot be empty', error_type: 'Validation' },
    422,
    /cannot be empty/,
  ],
  [
    "TEI's batch",
    { error: 'batch size 64 > maximum allowed batch size 32', error_type: 'Validation' },
    422,
    /batch size 64/,
  ],
  [
    "FastAPI's list",
    { detail: [{ loc: ['body', 'input'], msg: 'field required', type: 'missing' }] },
    422,
    /body\.input: field required/,
  ],
  [
    "Voyage's",
    { detail: 'The batch size limit is 1000. Your batch size is 2048.' },
    400,
    /batch size limit/,
  ],
  [
    "Cohere's",
    { id: 'x', message: 'invalid request: list of documents must not be empty' },
    400,
    /documents must not be empty/,
  ],
  [
    "vLLM's",
    {
      object: 'error',
      message: 'Model does not support matryoshka',
      type: 'BadRequestError',
      code: 400,
    },
    400,
    /matryoshka/,
  ],
  [
    "SiliconFlow's",
    { code: 20015, message: 'input must have less than 512 tokens', data: null },
    400,
    /512/,
  ],
  [
    "DashScope's",
    { code: 'InvalidParameter', message: 'url error, please check url', request_id: 'r' },
    400,
    /url error/,
  ],
  [
    "Xinference's",
    { detail: '[address=127.0.0.1:1, pid=1] Model not found in the model list' },
    400,
    /Model not found/,
  ],
  [
    "Infinity's",
    { error: { message: 'ModelNotDeployedError: no embed', type: null, param: null, code: 400 } },
    400,
    /no embed/,
  ],
  ["Azure's", { error: { code: 'BadRequest', message: 'Invalid size' } }, 400, /Invalid size/],
  [
    "xAI's",
    { code: 'Client specified an invalid argument', error: 'Argument not supported: size' },
    400,
    /not supported: size/,
  ],
  [
    "OpenAI's",
    {
      error: {
        message: 'safety_violations=[violence]',
        type: 'image_generation_user_error',
        param: null,
        code: 'moderation_blocked',
      },
    },
    400,
    /violence/,
  ],
];

test.each(SDK_ERRORS)(
  "%s refusal reaches OpenAI's SDK with its words",
  async (_, body, status, words) => {
    answer = json(body, status);
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const refused = (await client.embeddings
      .create({ model: 'alone-m', input: '' })
      .catch((thrown: unknown) => thrown)) as APIError;
    expect(refused).toBeInstanceOf(APIError);
    expect(refused.message).toMatch(words);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect((refused.error as { message: string }).message).toMatch(words);
  },
);

test.each<[string, VendorAnswer]>([
  [
    'whole',
    json({ error: { message: 'rejected by the safety system', code: 'moderation_blocked' } }, 400),
  ],
  [
    'in a stream',
    typed(
      'event: error\ndata: {"type":"error","error":{"message":"rejected by the safety system","code":"moderation_blocked"}}\n\n',
      'text/event-stream',
    ),
  ],
])("an image that the vendor's filter refuses is not paid for elsewhere: %s", async (_, given) => {
  answer = given;
  const response = await ask('/images/generations', { stream: true });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    error: { message: expect.stringContaining('safety system') },
  });
  expect(first.received).toHaveLength(1);
  expect(second.received).toHaveLength(0);
});

const event = (value: { type: string }) =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const IMAGE = 'A'.repeat(100_000);
const WORD = { choices: [{ text: 'a', finish_reason: null }] };

interface Ended {
  readonly path: string;
  readonly frames: readonly string[];
  /** In the log line. */
  readonly error?: string;
  readonly cut?: true;
}

const STREAMS: Record<string, Ended> = {
  'an image': {
    path: '/images/generations',
    frames: [
      event({ type: 'image_generation.partial_image' }),
      event({ type: 'image_generation.completed' }),
    ],
  },
  'an edit': {
    path: '/images/edits',
    frames: [event({ type: 'image_edit.partial_image' }), event({ type: 'image_edit.completed' })],
  },
  "Seedream's image": {
    path: '/images/generations',
    frames: [event({ type: 'image_generation.partial_succeeded' }), 'data: [DONE]\n\n'],
  },
  "MiniMax's image behind a comment": {
    path: '/images/generations',
    frames: [
      ': keepalive\n\n',
      event({ type: 'image_generation.partial_succeeded' }),
      event({ type: 'image_generation.completed' }),
    ],
  },
  speech: {
    path: '/audio/speech',
    frames: [data({ type: 'speech.audio.delta' }), data({ type: 'speech.audio.done' })],
  },
  'a transcript': {
    path: '/audio/transcriptions',
    frames: [data({ type: 'transcript.text.delta' }), data({ type: 'transcript.text.done' })],
  },
  "vLLM's transcript": {
    path: '/audio/transcriptions',
    frames: [data({ object: 'transcription.chunk' }), 'data: [DONE]\n\n'],
  },
  'a transcript that has no end of its own': {
    path: '/audio/transcriptions',
    frames: [data({ text: 'a' }), data({ text: 'b' })],
  },
  'completions with a reason': {
    path: '/completions',
    frames: [data(WORD), data({ choices: [{ text: '', finish_reason: 'stop' }] })],
  },
  "llama.cpp's own completions": {
    path: '/completions',
    frames: [data({ content: 'a', stop: false }), data({ content: '', stop: true })],
  },
  'completions with lines of Windows': {
    path: '/completions',
    frames: [data(WORD).replaceAll('\n', '\r\n'), 'data: [DONE]\r\n\r\n'],
  },
  'completions with usage behind the reason': {
    path: '/completions',
    frames: [
      data({ choices: [{ text: 'a', finish_reason: 'length' }] }),
      data({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }),
    ],
  },
  'a partial image alone': {
    path: '/images/generations',
    cut: true,
    error: 'upstream',
    frames: [event({ type: 'image_generation.partial_image', ...{ b64_json: IMAGE } })],
  },
  'a partial image whose type stands last': {
    path: '/images/generations',
    cut: true,
    error: 'upstream',
    frames: [
      `event: image_generation.partial_image\ndata: {"b64_json":"${IMAGE}","type":"image_generation.partial_image"}\n\n`,
    ],
  },
  'half a frame': {
    path: '/images/generations',
    cut: true,
    error: 'upstream',
    frames: [
      event({ type: 'image_generation.partial_image' }),
      `data: {"type":"image_generation.partial_image","b64_json":"${IMAGE}`,
    ],
  },
  'half of speech': {
    path: '/audio/speech',
    cut: true,
    error: 'upstream',
    frames: [data({ type: 'speech.audio.delta' }), data({ type: 'speech.audio.delta' })],
  },
  'half a transcript': {
    path: '/audio/transcriptions',
    cut: true,
    error: 'upstream',
    frames: [data({ type: 'transcript.text.delta' }), data({ type: 'transcript.text.delta' })],
  },
  'completions without an end': {
    path: '/completions',
    cut: true,
    error: 'upstream',
    frames: [data(WORD), data(WORD)],
  },
  "a vendor's own error": {
    path: '/images/generations',
    error: 'upstream',
    frames: [
      event({ type: 'image_generation.partial_image' }),
      event({ type: 'error', ...{ error: { message: 'no capacity' } } }),
    ],
  },
  "a vendor's error before the last frame": {
    path: '/completions',
    error: 'upstream',
    frames: [
      data(WORD),
      data({ error: { message: 'oom', type: 'server_error' } }),
      'data: [DONE]\n\n',
    ],
  },
};

describe('a stream', () => {
  test.each(Object.keys(STREAMS))('of %s ends as what it is', async (name) => {
    const { path, frames, error, cut } = STREAMS[name]!;
    answer = () =>
      new Response(
        (async function* () {
          for (const frame of frames) {
            yield Buffer.from(frame);
            await Bun.sleep(5);
          }
        })() as never,
        { headers: { 'content-type': 'text/event-stream' } },
      );
    const seen = gateway.lines.length;
    const response = await ask(path, { stream: true, stream_format: 'sse' });
    let text = '';
    let reset = false;
    try {
      for await (const chunk of response.body!) text += Buffer.from(chunk).toString();
    } catch {
      reset = true;
    }
    expect(reset).toBe(cut === true);
    expect(text).toStartWith(frames.join(''));
    if (cut !== true) expect(text).toBe(frames.join(''));
    const line = await until(() => {
      const lines = gateway.lines
        .slice(seen)
        .map((one) => JSON.parse(one) as Record<string, unknown>);
      return lines.find(({ event }) => event === 'exchange');
    });
    expect(line).toMatchObject({ status: 200, level: error === undefined ? 'info' : 'warn' });
    expect(line.error).toBe(error);
    expect(second.received).toHaveLength(0);
  });
});
