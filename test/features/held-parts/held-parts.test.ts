/** Images inside a document or a search result of Messages: other vendors see them, and blind models read what they show. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type FakeUpstream, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { png } from '../vision/support.ts';

const PROTOCOLS = [
  'openai-chat',
  'openai-responses',
  'google-gemini',
  'anthropic-messages',
] as const;

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  const provider = (protocol: (typeof PROTOCOLS)[number], model: string, profile = 'none') => ({
    protocol,
    profile,
    base_url: upstream.baseUrl(protocol),
    keys: ['sk-upstream'],
    models: [model],
  });
  gateway = await startInProcess({
    profiles: { blind: { images: false }, unread: { documents: false } },
    providers: {
      ...Object.fromEntries(
        PROTOCOLS.flatMap((protocol) => [
          [protocol, provider(protocol, `m-${protocol}`)],
          [`blind-${protocol}`, provider(protocol, `blind-${protocol}`, 'blind')],
        ]),
      ),
      unread: provider('anthropic-messages', 'unread', 'unread'),
      eyes: provider('openai-chat', 'eyes'),
    },
    server_tools: { vision: { target: 'eyes/eyes' } },
    retry: { attempts: 1 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});
beforeEach(() => upstream.clear());

const imageOf = (data: string) => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data },
});
const content = (data: string) => [
  { type: 'text', text: 'Above the figure.' },
  imageOf(data),
  { type: 'text', text: 'Below the figure.' },
];

/** Where a client may put such blocks. */
const BLOCKS: Readonly<Record<string, (data: string) => JsonObject>> = {
  'a document': (data) => ({
    type: 'document',
    title: 'Heading of it',
    context: 'Context of it',
    source: { type: 'content', content: content(data) },
    cache_control: { type: 'ephemeral' },
  }),
  'a document of images alone': (data) => ({
    type: 'document',
    source: { type: 'content', content: [imageOf(data)] },
  }),
  'a search result': (data) => ({
    type: 'search_result',
    title: 'Heading of it',
    source: 'https://example.com/a',
    content: content(data),
  }),
};
const PLACES: Readonly<Record<string, (block: JsonObject) => JsonObject[]>> = {
  'the message of a user': (block) => [
    { role: 'user', content: [{ type: 'text', text: 'Read.' }, block] },
  ],
  'a tool result': (block) => [
    { role: 'user', content: 'Read.' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'read', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: [block] }] },
  ],
};

async function sent(model: string, messages: JsonObject[]) {
  upstream.enqueue({ parts: [{ kind: 'text', text: 'x' }] });
  const body = {
    model,
    max_tokens: 99,
    messages,
    tools: [{ name: 'read', input_schema: { type: 'object' } }],
  };
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  expect(upstream.refusals).toEqual([]);
  const got = upstream.modelRequests.at(-1)!.body;
  return {
    body,
    got,
    text: JSON.stringify(got),
    notes: response.headers.get('x-hopgate-notes') ?? '',
  };
}

let count = 0;

for (const [what, block] of Object.entries(BLOCKS)) {
  describe.each(Object.keys(PLACES))(`${what} in %s`, (place) => {
    const at = PLACES[place]!;

    test.each(PROTOCOLS.slice(0, 3))('reaches a vendor of %s with its images', async (protocol) => {
      const data = png(`${++count}`);
      const given = block(data);
      const { text, notes } = await sent(`m-${protocol}`, at(given));
      expect(text).toContain(data);
      if (what !== 'a document of images alone') {
        for (const word of ['Heading of it', 'Above the figure.', 'Below the figure.']) {
          expect(text.split(word)).toHaveLength(2);
        }
      }
      expect(notes).toContain('content_bridged');
    });

    test.each(PROTOCOLS)('is described to a model of %s that sees no images', async (protocol) => {
      const data = png(`${++count}`);
      upstream.enqueue({ parts: [{ kind: 'text', text: 'A red square.' }] });
      const { text } = await sent(`blind-${protocol}`, at(block(data)));
      expect(upstream.modelRequests).toHaveLength(2);
      expect(text).toContain('A red square.');
      expect(text).not.toContain(data);
    });

    test('goes to a vendor of Messages as it is', async () => {
      const { got, body, notes } = await sent('m-anthropic-messages', at(block(png('same'))));
      expect(got).toEqual(body as never);
      expect(notes).toBe('');
    });

    test('goes in parts to a vendor of Messages that takes no documents', async () => {
      const data = png('same');
      const { text } = await sent('unread', at(block(data)));
      expect(text).toContain(data);
      expect(text).not.toContain('"document"');
    });
  });
}

test('a document of text alone stays one document', async () => {
  const document = {
    type: 'document',
    title: 'Heading of it',
    source: { type: 'content', content: [{ type: 'text', text: 'Words.' }] },
  };
  const { text, notes } = await sent('m-openai-chat', [{ role: 'user', content: [document] }]);
  expect(text).toContain('Heading of it\\n\\nWords.');
  expect(notes).not.toContain('content_bridged');
});

test('parts of a foreign kind in such a document refuse no request', async () => {
  const odd = {
    type: 'content',
    content: [{ type: 'text' }, { type: 'video' }, imageOf(png('o'))],
  };
  const { text } = await sent('m-openai-chat', [
    { role: 'user', content: [{ type: 'document', source: odd }] },
  ]);
  expect(text).toContain(png('o'));
});
