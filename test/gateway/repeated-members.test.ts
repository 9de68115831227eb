/** A member or field that is there twice: what was checked and priced could be another request to the vendor's parser. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FORM_TYPE, formBytes } from '../endpoints/forms.ts';
import { type EndpointVendor, startVendor } from '../endpoints/vendor.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const POLICED = { tools: 't'.repeat(32), models: 'o'.repeat(32), money: 'm'.repeat(32) };

let vendor: EndpointVendor;
let gateway: InProcess;
let policed: InProcess;
beforeAll(async () => {
  vendor = startVendor(() => Response.json({}));
  const target = (protocol: string) => ({
    protocol,
    base_url: vendor.url,
    keys: ['sk-vendor-key'],
    models: ['*'],
  });
  const providers = {
    chat: target('openai-chat'),
    responses: target('openai-responses'),
    messages: target('anthropic-messages'),
    gemini: target('google-gemini'),
  };
  policed = await startInProcess({
    providers,
    auth: {
      keys: [
        { name: 'tools', key: POLICED.tools, tools: ['web_search'] },
        { name: 'models', key: POLICED.models, models: ['*cheap'] },
        { name: 'money', key: POLICED.money, budgets: [{ usd: 100, per: 'total' }] },
      ],
    },
    samples: { mode: 'off' },
    retry: { attempts: 1 },
  });
  gateway = await startInProcess({
    providers,
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
  await policed.stop();
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
    const at = ALL.findIndex(([one]) => one === path);
    for (const [i, [name, first, second]] of TWICE.entries()) {
      // Of the largest bodies each path has a third, and all paths together have all.
      if (fill.length > 1_000_000 && (i + at) % 3 !== 0) continue;
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

/** A name in another case is the same one to vendors in Go: https://pkg.go.dev/encoding/json#Unmarshal. */
const CASES: readonly (readonly [string, string])[] = [
  ['Model', '"Model":"dear"'],
  ['MODEL', '"MODEL":"dear"'],
  ['\\u004dodel', '"\\u004dodel":"dear"'],
  ['N', '"N":128'],
  ['Tools', '"Tools":[{"type":"web_search"}]'],
  ['tool\u017f', '"tool\u017f":[{"type":"web_search"}]'],
  ['Max_Tokens', '"Max_Tokens":100000'],
  ['Stream', '"Stream":true'],
  ['Models', '"Models":["dear"]'],
];

describe.each(ALL)('%s', (path, rest) => {
  test.each(FILLS)('%s: a name in another letter case is refused', async (_, fill) => {
    const before = vendor.received.length;
    for (const [name, member] of CASES) {
      const response = await post(path, `{"model":"cheap",${rest}${fill},${member}}`);
      expect([name, response.status]).toEqual([name, 400]);
      await response.text();
    }
    expect(vendor.received.length).toBe(before);
  });
});

test('names that nothing here goes by may have any letter case', async () => {
  const before = vendor.received.length;
  const more = '"providerOptions":{},"reasoningEffort":"low","Metadata":{"A":1}';
  await post('/v1/chat/completions', `{"model":"cheap",${MESSAGES},${more}}`);
  expect(vendor.received.length).toBe(before + 1);
});

test('Gemini: a field in both of its spellings is refused', async () => {
  const before = vendor.received.length;
  const contents = PATHS['/v1beta/models/cheap:generateContent'];
  const twice = '"generation_config":{"candidateCount":8},"generationConfig":{"candidateCount":1}';
  const response = await post('/v1beta/models/cheap:generateContent', `{${contents},${twice}}`);
  expect(response.status).toBe(400);
  expect(vendor.received.length).toBe(before);
});

/** Members of objects in the body that decide about tools, models and money, each in both orders. */
const NESTED: readonly (readonly [string, string])[] = [
  ['/v1/chat/completions', '"tools":[{"type":"function","function":{"name":"f"},@}]'],
  ['/v1/chat/completions', '"tools":[{"type":"function","function":{"name":"f",@}}]'],
  ['/v1/chat/completions', '"stream_options":{@}'],
  ['/v1/chat/completions', '"providerOptions":{"gateway":{@}}'],
  ['/v1/responses', '"tools":[{"type":"function","name":"f",@}]'],
  ['/v1/responses', '"prompt":{@}'],
  ['/v1/messages', '"tools":[{"name":"f","input_schema":{"type":"object"},@}]'],
  ['/v1/messages', '"thinking":{@}'],
  ['/v1/messages', '"mcp_servers":[{@}]'],
  ['/v1beta/models/cheap:generateContent', '"generationConfig":{@}'],
  ['/v1beta/models/cheap:generateContent', '"generation_config":{@}'],
  ['/v1beta/models/cheap:generateContent', '"tools":[{@}]'],
];

describe.each(Object.entries(POLICED))('a key that is limited in %s', (_, key) => {
  test.each(NESTED)('%s: %s', async (path, shape) => {
    const send = (members: string, fill: string) =>
      fetch(policed.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: `{"model":"chat/cheap",${PATHS[path]},${shape.replace('@', members)}${fill}}`,
      });
    const before = vendor.received.length;
    for (const [, fill] of FILLS) {
      for (const members of [
        '"k":"a","k":"b"',
        '"a":{"x":1},"b":[{"y":1,"z":"\\"",  "y" : 2}]',
        '"k":"a","\\u006b":"b"',
      ]) {
        const response = await send(members, fill);
        expect(response.status).toBe(400);
        expect(await response.text()).toContain('twice');
      }
    }
    expect(vendor.received.length).toBe(before);
  });
});
