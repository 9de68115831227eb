/** A member or field that is there twice: what was checked and priced could be another request to the vendor's parser. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FORM_TYPE, formBytes } from '../endpoints/forms.ts';
import { type EndpointVendor, startVendor } from '../endpoints/vendor.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

let vendor: EndpointVendor;
let gateway: InProcess;
beforeAll(async () => {
  vendor = startVendor(() => Response.json({}));
  const target = (protocol: string) => ({
    protocol,
    base_url: vendor.url,
    keys: ['sk-vendor-key'],
    models: ['*'],
  });
  gateway = await startInProcess({
    providers: {
      chat: target('openai-chat'),
      responses: target('openai-responses'),
      messages: target('anthropic-messages'),
      gemini: target('google-gemini'),
    },
    routes: [
      { when: { protocol: 'openai-responses' }, to: 'responses/*' },
      { when: { protocol: 'anthropic-messages' }, to: 'messages/*' },
      { when: { protocol: 'google-gemini' }, to: 'gemini/*' },
      { to: 'chat/*' },
    ],
    samples: { mode: 'off' },
    retry: { attempts: 1 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop();
});

const MESSAGES = '"messages":[{"role":"user","content":"hi"}]';
const PATHS: Readonly<Record<string, string>> = {
  '/v1/chat/completions': MESSAGES,
  '/v1/messages': `"max_tokens":5,${MESSAGES}`,
  '/v1/messages/count_tokens': MESSAGES,
  '/v1/responses': '"input":"hi"',
  '/v1/responses/input_tokens': '"input":"hi"',
  '/v1beta/models/cheap:generateContent': '"contents":[{"role":"user","parts":[{"text":"hi"}]}]',
  '/v1beta/models/cheap:countTokens': '"contents":[{"role":"user","parts":[{"text":"hi"}]}]',
  '/v1/embeddings': '"input":"hi"',
  '/v1/completions': '"prompt":"hi"',
  '/v1/rerank': '"query":"q","documents":["a"]',
  '/v1/moderations': '"input":"hi"',
  '/v1/images/generations': '"prompt":"hi"',
  '/v1/audio/speech': '"input":"hi","voice":"v"',
};
const ALL = Object.entries(PATHS);

/** What makes a body small, one that is read in pieces, one of too many pieces, and one that is looked through in slices. */
const FILLS: readonly (readonly [string, string])[] = [
  ['small', ''],
  ['100 KB', `,"metadata":"${'x'.repeat(100_000)}"`],
  ['100 KB of items', `,"stop":[${'1,'.repeat(50_000)}1]`],
  ['3 MB', `,"metadata":"${'x'.repeat(3_000_000)}"`],
];

const TWICE: readonly (readonly [string, string, string])[] = [
  ['model', '"model":"cheap"', '"model":"dear"'],
  ['model', '"model":"cheap"', '"mod\\u0065l":"dear"'],
  ['model', '"\\u006dodel":"cheap"', '"model" : "dear"'],
  ['stream', '"model":"cheap","stream":false', '"stream":true'],
  ['tools', '"model":"cheap","tools":[]', '"tools":[{"type":"web_search"}]'],
  ['max_tokens', '"model":"cheap","max_tokens":1', '"max_tokens":100000'],
  ['n', '"model":"cheap","n":1', '"n":128'],
  [
    'previous_response_id',
    '"model":"cheap","previous_response_id":null',
    '"previous_response_id":"resp_x"',
  ],
  ['a "quoted" name', '"model":"cheap","a \\"quoted\\" name":1', '"a \\"quoted\\" name":1'],
];

const post = (path: string, body: string | Uint8Array, type = 'application/json') =>
  fetch(`${gateway.url}${path}`, {
    method: 'POST',
    body: Buffer.from(body),
    headers: { 'content-type': type },
  });

describe.each(ALL)('%s', (path, rest) => {
  test.each(FILLS)('%s: a member that is there twice is refused', async (_, fill) => {
    const before = vendor.received.length;
    for (const [name, first, second] of TWICE) {
      // A Gemini body has no model of its own: the address names it, and stands for those of this name.
      if (path.startsWith('/v1beta') && /model|stream/.test(name)) continue;
      for (const body of [
        `{${first},${rest}${fill},${second}}`,
        `{${first},${second},${rest}${fill}}`,
      ]) {
        const response = await post(path, body);
        expect([name, response.status]).toEqual([name, 400]);
        await response.text();
      }
    }
    expect(vendor.received.length).toBe(before);
  });

  test('names that are there once at each level are no repetition', async () => {
    const before = vendor.received.length;
    const inner = '"metadata":{"model":"a","tools":"b","text":"\\"model\\":1,\\\\"}';
    await post(path, `{"model":"cheap",${rest},${inner}}`);
    expect(vendor.received.length).toBe(before + 1);
  });
});

test('Gemini: the model of the address is the only one that goes out', async () => {
  const rest = PATHS['/v1beta/models/cheap:generateContent'];
  for (const own of ['"model":"dear"', '"model":"dear","model":"dear"', '"mod\\u0065l":"dear"']) {
    const before = vendor.received.length;
    await post('/v1beta/models/cheap:generateContent', `{${own},${rest}}`);
    for (const { body, path } of vendor.received.slice(before)) {
      expect(path).toContain('cheap');
      expect(body.toString()).not.toContain('dear');
    }
  }
});

test.each(['model', 'stream', 'n', 'size', 'quality', 'response_format'])(
  'a form with the field %s twice is refused',
  async (name) => {
    const before = vendor.received.length;
    const fields = [
      { name: 'model', value: 'cheap' },
      { name: 'prompt', value: 'p' },
      { name, value: '1' },
      { name, value: '2' },
    ];
    const response = await post('/v1/images/edits', formBytes(fields), FORM_TYPE);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(`'${name}' twice`);
    expect(vendor.received.length).toBe(before);
  },
);
