/** What Google's own clients write: streamed answers piece by piece, and bytes in the alphabet for URLs. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import { wrapSeal } from '../../src/conversation/seal.ts';
import { refusalRetry } from '../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../src/features/vendor-fit/index.ts';
import type { Json } from '../../src/lib/json/json.ts';
import { FINE, scriptedGateway } from './scripted.ts';

const OTHERS = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;

const says = (...parts: object[]) => ({ role: 'user', parts });

async function sent(vendor: ProtocolName, contents: readonly object[]) {
  const gateway = scriptedGateway(vendor, [FINE[vendor]]);
  const answer = await gateway.ask('google-gemini', { model: 'm', stream: false, contents });
  expect(answer.status).toBe(200);
  const [body] = gateway.sent as { messages?: Json; input?: Json; contents?: Json }[];
  return body!.messages ?? body!.input ?? body!.contents;
}

const signature = Buffer.from(
  wrapSeal({ protocol: 'anthropic-messages', kind: 'signature', value: 'EiwK', provider: 'up' }),
).toString('base64');
const PIECES = [
  { text: 'Thin', thought: true },
  { text: 'king', thought: true },
  { text: '', thought: true, thoughtSignature: signature },
  { text: 'I will look.' },
];
// `chats` of google-genai (JavaScript, Python) keeps each chunk as a content; who adds up the parts keeps them in one.
const ANSWERS: Readonly<Record<string, readonly object[]>> = {
  'in one content': [{ role: 'model', parts: PIECES }],
  'in a content each': PIECES.map((part) => ({ role: 'model', parts: [part] })),
};

describe.each(Object.entries(ANSWERS))('the pieces of a streamed answer, %s', (_, answer) => {
  const history = [says({ text: 'a' }), ...answer, says({ text: 'b' })];

  test.each([
    ['openai-chat', { role: 'assistant', content: 'I will look.', reasoning_content: 'Thinking' }],
    [
      'anthropic-messages',
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Thinking', signature: 'EiwK' },
          { type: 'text', text: 'I will look.' },
        ],
      },
    ],
    [
      'openai-responses',
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'I will look.' }],
      },
    ],
  ] as const)('are one text and one thought at %s', async (vendor, wanted) => {
    expect(await sent(vendor, history)).toMatchObject({ 1: wanted, length: 3 } as never);
  });

  test("with another vendor's seal are not sent to Google, which refuses it", async () => {
    expect(JSON.stringify(await sent('google-gemini', history))).not.toContain(signature);
  });

  test('go to Google as they came, where it made them', async () => {
    const own = JSON.parse(JSON.stringify(history).replace(signature, 'AbC+')) as object[];
    expect(await sent('google-gemini', own)).toEqual(own as never);
  });
});

test('an answer that ends in an empty part is no empty message of Responses', async () => {
  const call = { functionCall: { name: 'f', args: {} } };
  const result = { functionResponse: { name: 'f', response: { output: 'x' } } };
  const history = [
    says({ text: 'a' }),
    { role: 'model', parts: [{ text: 'So.' }, call, { text: '' }] },
    says(result),
  ];
  const input = (await sent('openai-responses', history)) as { type: string }[];
  expect(input.map(({ type }) => type)).toEqual([
    'message',
    'message',
    'function_call',
    'function_call_output',
  ]);
});

// google-genai for Python, _common.py: `ser_json_bytes='base64'` of pydantic, which is the alphabet for URLs.
const BYTES = Buffer.from([0xfb, 0xff, 0xfe, 0x3e]);
const SPELLINGS: Readonly<Record<string, string>> = {
  'the alphabet for URLs': '-__-Pg==',
  'no padding': BYTES.toString('base64url'),
  'line breaks': '+//+\nPg==\r\n',
};

test('texts of one content stay apart: they may be paragraphs', async () => {
  const history = [
    says({ text: 'a' }),
    { role: 'model', parts: [{ text: 'One.' }, { text: 'Two.' }] },
    says({ text: 'b' }),
  ];
  expect(await sent('anthropic-messages', history)).toMatchObject({
    1: { content: [{ text: 'One.' }, { text: 'Two.' }] },
  } as never);
});

describe.each(Object.entries(SPELLINGS))('bytes in base64 with %s', (_, data) => {
  test.each(OTHERS)('are base64 as %s takes it', async (vendor) => {
    const files = [
      { inlineData: { mimeType: 'image/png', data } },
      { inlineData: { mimeType: 'application/pdf', data } },
    ];
    const shown = JSON.stringify(await sent(vendor, [says({ text: 'a' }, ...files)]));
    expect(shown.match(/[",]\+\/\/\+Pg=="/g)).toHaveLength(2);
  });

  test.each(['openai-responses', 'anthropic-messages', 'google-gemini'] as const)(
    'in an address of a Chat client are base64 as %s takes it',
    async (vendor) => {
      const gateway = scriptedGateway(vendor, [FINE[vendor]]);
      const url = `data:image/png;base64,${data}`;
      const content = [{ type: 'image_url', image_url: { url } }];
      await gateway.ask('openai-chat', { model: 'm', messages: [{ role: 'user', content }] });
      expect(JSON.stringify(gateway.sent[0])).toContain('+//+Pg=="');
    },
  );

  test.each([
    // new-api, which counts the tokens of media (google-gemini/deprecated-generative-ai-python#751)
    [
      500,
      'error counting image token, media index[0] err: failed to decode base64 string: illegal base64 data at input byte 0 (request id: 1)',
    ],
    [400, 'illegal base64 data at input byte 4'],
  ])('are the usual ones at a relay that refuses them: %j', async (status, message) => {
    const refused = { status, json: { error: { message } } };
    const features = [refusalRetry(), vendorFit()];
    const video = { videoMetadata: { fps: 1 } };
    for (const key of ['inlineData', 'inline_data']) {
      const script = [refused, FINE['google-gemini']];
      const gateway = scriptedGateway('google-gemini', script, features);
      const part = { [key]: { mimeType: 'image/png', data, displayName: 'a' }, ...video };
      const contents = [says({ text: 'a' }, part)];
      const answer = await gateway.ask('google-gemini', { model: 'm', stream: false, contents });
      expect(answer.status).toBe(200);
      const usual = { [key]: { mimeType: 'image/png', data: '+//+Pg==', displayName: 'a' } };
      const second = gateway.sent.at(-1) as { contents: Json };
      expect(second.contents).toEqual([says({ text: 'a' }, { ...usual, ...video })] as never);
      const notes = gateway.summaries[0]!.notes.map(({ name }) => name);
      expect(notes).toContain('content_bridged');
    }
  });

  test('go to Google as they came', async () => {
    const contents = [says({ inlineData: { mimeType: 'image/png', data } })];
    expect(await sent('google-gemini', contents)).toEqual(contents as never);
  });
});
