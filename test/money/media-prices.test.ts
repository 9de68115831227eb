/** Sound, images and their text have prices of their own, by the token, the minute or the character: of the catalogue, as vendors count them. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const ADMIN = 'key-of-the-admin';
const KEY = 'key-of-the-buyer';

let answer: () => Response;
let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;
beforeAll(async () => {
  vendor = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answer() });
  const at = (preset: string, path: string, more: object) => ({
    preset,
    base_url: `http://127.0.0.1:${vendor.port}${path}`,
    keys: ['k'],
    ...more,
  });
  gateway = await startInProcess({
    providers: {
      openai: at('openai', '/v1', { models: ['gpt-4.1-*', 'gpt-image-*', 'whisper-1', 'tts-1'] }),
      chats: at('openai', '/v1', { protocol: 'openai-chat', models: ['gpt-4o-audio-*'] }),
      mistral: at('mistral', '/v1', { models: ['voxtral-*'] }),
      gemini: at('gemini', '/v1beta', { models: ['gemini-*'] }),
      own: at('openai', '/v1', {
        protocol: 'openai-chat',
        models: ['own-*'],
        prices: {
          'own-sound': { input: 1, output: 2, input_audio: 10, output_audio: 20 },
          'own-length': { input: 0, output: 0, minute: 6, character: 15 },
        },
      }),
    },
    auth: { keys: [{ name: 'ci', key: KEY }], admin_keys: [ADMIN] },
    samples: { mode: 'off' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const SPEECH = '/v1/audio/speech';
const TRANSCRIPT = '/v1/audio/transcriptions';
const IMAGES = '/v1/images/generations';
const GEMINI = '/v1beta/models/MODEL:generateContent';

const message = { role: 'assistant', content: 'Hello.' };
const chat = (usage: object) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: '',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage,
});
const chunks = (usage: object) => {
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: '' };
  const frames = [
    { ...head, choices: [{ index: 0, delta: message, finish_reason: 'stop' }] },
    { ...head, choices: [], usage },
  ];
  return `${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`;
};
const google = (usageMetadata: object) => ({
  candidates: [
    { content: { role: 'model', parts: [{ text: 'Hello.' }] }, finishReason: 'STOP', index: 0 },
  ],
  usageMetadata,
});
const drawn = (tool: object) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-4.1-mini',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello.', annotations: [] }],
    },
  ],
  tools: [{ type: 'image_generation', ...tool }],
  usage: { input_tokens: 100, output_tokens: 30, total_tokens: 130 },
  tool_usage: { image_gen: { input_tokens: 20, output_tokens: 1000, total_tokens: 1020 } },
});
/** https://platform.openai.com/docs/guides/audio */
const HEARD = {
  prompt_tokens: 100,
  completion_tokens: 50,
  total_tokens: 150,
  prompt_tokens_details: { audio_tokens: 60, cached_tokens: 0, text_tokens: 40 },
  completion_tokens_details: { audio_tokens: 40, reasoning_tokens: 0, text_tokens: 10 },
};
/** As Mistral answers: what was heard is in the total alone. */
const VOXTRAL = {
  prompt_audio_seconds: 12,
  prompt_tokens: 3,
  total_tokens: 419,
  completion_tokens: 41,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 375 },
};
const drawing = (more: object) => ({
  created: 1,
  data: [{ b64_json: 'AAAA' }],
  usage: { input_tokens: 100, output_tokens: 1000, total_tokens: 1100, ...more },
});

type Row = readonly [
  name: string,
  path: string,
  model: string,
  answer: object | string,
  nanoUsd: number | null,
];
const SOUND = 40 * 2500 + 60 * 40_000 + 10 * 10_000 + 40 * 80_000;
test.each<Row>([
  ['sound in and out', CHAT, 'gpt-4o-audio-preview-2025-06-03', chat(HEARD), SOUND],
  ['sound, streamed', CHAT, 'gpt-4o-audio-preview-2025-06-03', chunks(HEARD), SOUND],
  [
    'sound at your prices',
    CHAT,
    'own-sound',
    chat(HEARD),
    40 * 1000 + 60 * 10_000 + 10 * 2000 + 40 * 20_000,
  ],
  [
    'sound that is said to be more than all there is',
    CHAT,
    'own-sound',
    chat({ ...HEARD, prompt_tokens_details: { audio_tokens: 1e9 } }),
    100 * 10_000 + 10 * 2000 + 40 * 20_000,
  ],
  ['what Mistral heard', CHAT, 'voxtral-small-latest', chat(VOXTRAL), 378 * 100 + 41 * 400],
  [
    'what Mistral heard, streamed',
    CHAT,
    'voxtral-small-latest',
    chunks(VOXTRAL),
    378 * 100 + 41 * 400,
  ],
  [
    'what Gemini heard',
    GEMINI,
    'gemini-2.5-flash',
    google({
      promptTokenCount: 100,
      candidatesTokenCount: 10,
      totalTokenCount: 110,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 10 },
        { modality: 'AUDIO', tokenCount: 90 },
      ],
    }),
    10 * 300 + 90 * 1000 + 10 * 2500,
  ],
  [
    'an image of Gemini with words beside it',
    GEMINI,
    'gemini-3.1-flash-image',
    google({
      promptTokenCount: 10,
      candidatesTokenCount: 1300,
      totalTokenCount: 1310,
      candidatesTokensDetails: [
        { modality: 'IMAGE', tokenCount: 1290 },
        { modality: 'TEXT', tokenCount: 10 },
      ],
    }),
    10 * 500 + 1290 * 60_000 + 10 * 3000,
  ],
  [
    'words alone of a model of images',
    GEMINI,
    'gemini-3.1-flash-image',
    google({
      promptTokenCount: 10,
      candidatesTokenCount: 20,
      totalTokenCount: 30,
      candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 20 }],
    }),
    10 * 500 + 20 * 3000,
  ],
  [
    'what a model of images made and did not tell apart',
    GEMINI,
    'gemini-3.1-flash-image',
    google({ promptTokenCount: 10, candidatesTokenCount: 20, totalTokenCount: 30 }),
    10 * 500 + 20 * 60_000,
  ],
  ['an image', IMAGES, 'gpt-image-1.5', drawing({}), 100 * 8000 + 1000 * 32_000],
  [
    'an image, and its words',
    IMAGES,
    'gpt-image-1.5',
    drawing({
      input_tokens_details: { text_tokens: 80, image_tokens: 20 },
      output_tokens_details: { text_tokens: 100, image_tokens: 900 },
    }),
    80 * 5000 + 20 * 8000 + 100 * 10_000 + 900 * 32_000,
  ],
  [
    'an image of a tool that names no model',
    RESPONSES,
    'gpt-4.1-mini',
    drawn({}),
    100 * 400 + 30 * 1600 + 20 * 8000 + 1000 * 30_000,
  ],
  [
    'an image of a tool that names its model',
    RESPONSES,
    'gpt-4.1-mini',
    drawn({ model: 'gpt-image-1.5' }),
    100 * 400 + 30 * 1600 + 20 * 8000 + 1000 * 32_000,
  ],
  // https://github.com/openai/openai-node, transcriptions.ts: Transcription.Duration
  [
    'a minute and a half of Whisper',
    TRANSCRIPT,
    'whisper-1',
    { text: 'x', usage: { type: 'duration', seconds: 90 } },
    9_000_000,
  ],
  [
    'a length at your price',
    TRANSCRIPT,
    'own-length',
    { text: 'x', usage: { type: 'duration', seconds: 90 } },
    9_000_000,
  ],
  [
    'a length that no price is known of',
    TRANSCRIPT,
    'own-sound',
    { text: 'x', usage: { type: 'duration', seconds: 90 } },
    null,
  ],
  ['a transcript whose length nobody tells', TRANSCRIPT, 'whisper-1', { text: 'x' }, null],
  [
    'twelve seconds of Voxtral',
    TRANSCRIPT,
    'voxtral-mini-latest',
    { text: 'x', usage: VOXTRAL },
    600_000,
  ],
  [
    'twelve seconds of Voxtral without tokens',
    TRANSCRIPT,
    'voxtral-mini-latest',
    { text: 'x', usage: { prompt_audio_seconds: 12, request_count: 1 } },
    600_000,
  ],
  ['three characters that are spoken', SPEECH, 'tts-1', 'sound', 3 * 15_000],
  ['three characters at your price', SPEECH, 'own-length', 'sound', 3 * 15_000],
  ['speech without usage at a price of tokens', SPEECH, 'own-sound', 'sound', null],
])('%s: %s of %s', async (_, path, model, said, nanoUsd) => {
  const isText = typeof said === 'string';
  const type = said === 'sound' ? 'audio/mpeg' : isText ? 'text/event-stream' : 'application/json';
  answer = () =>
    new Response(isText ? said : JSON.stringify(said), { headers: { 'content-type': type } });
  const form = new FormData();
  form.set('model', model);
  form.set('file', new File(['sound'], 'a.mp3'));
  const body = {
    model,
    stream: type === 'text/event-stream',
    messages: [{ role: 'user', content: 'Hi.' }],
    contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }],
    input: 'Hi.',
    prompt: 'Hi.',
  };
  const { model: _model, stream: _stream, messages: _m, input: _i, prompt: _p, ...parts } = body;
  const isForm = path === TRANSCRIPT;
  const got = await fetch(gateway.url + path.replace('MODEL', model), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`,
      ...(!isForm && { 'content-type': 'application/json' }),
    },
    body: isForm ? form : JSON.stringify(path === GEMINI ? parts : body),
  });
  expect(got.status).toBe(200);
  await got.arrayBuffer();
  const id = got.headers.get('x-hopgate-request-id');
  const rows = await until(async () => {
    const found = await fetch(`${gateway.url}/admin/v1/spend`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    const { data } = (await found.json()) as {
      data: { request: string; cost_nano_usd: number | null }[];
    };
    const own = data.filter(({ request }) => request === id);
    return own.length > 0 && own;
  });
  expect(rows.map(({ cost_nano_usd }) => cost_nano_usd)).toEqual([nanoUsd]);
});
