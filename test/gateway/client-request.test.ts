/** What is asked: the glance at bytes, the extension, and bodies that cannot be read. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { ClientRequest, clientRequest } from '../../src/gateway/client-request.ts';
import { Histories } from '../../src/gateway/histories/histories.ts';
import { wholeBytes } from '../../src/lib/bytes/byte-list.ts';
import { scriptedGateway } from './scripted.ts';

const bytes = (value: unknown) =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const text = (value: Uint8Array) => new TextDecoder().decode(value);
const messages = [{ role: 'user', content: 'hi' }];
const BIG = 'x'.repeat(80_000);

function refusal(body: Uint8Array): GatewayError {
  try {
    const request = new ClientRequest(openaiChat, body);
    void request.conversation;
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('accepted');
}

describe('what is asked', () => {
  test('only the model name changes where bytes are forwarded, small body or large', () => {
    for (const content of ['hi', BIG]) {
      const body = `{ "messages":[{"role":"user","content":"${content}"}], "model" : "a", "x": 1.0 }`;
      const request = new ClientRequest(openaiChat, bytes(body));
      expect(text(wholeBytes(request.bytesFor('b/"c')))).toBe(body.replace('"a"', '"b/\\"c"'));
      expect(request.bytesFor('a')).toBe(request.bytes);
    }
  });

  test('a large body is not parsed for its model and stream flag', () => {
    const body = bytes(`{"model":"m","stream":true,"messages":[tru,"${BIG}"]}`);
    const request = new ClientRequest(openaiChat, body);
    expect([request.model, request.stream]).toEqual(['m', true]);
  });

  test('the hopgate extension goes, wherever it stands, and nothing else does', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }), fc.nat(4), (order, at) => {
        const members = [
          '"model":"m"',
          '"messages":[{"role":"user","content":"x"}]',
          '"s":"\\"hopgate\\""',
          '"a":{"hopgate":1}',
        ];
        const own = order.map((i) => members[i]!);
        const withIt = [...own.slice(0, at), '"hopgate":{"memory":{}}', ...own.slice(at)];
        const request = new ClientRequest(openaiChat, bytes(`{${withIt.join(',')}}`));
        expect(text(request.bytes)).toBe(`{${own.join(',')}}`);
        expect(request.extension).toEqual({ memory: {} });
      }),
    );
  });

  test.each([
    ['not JSON', 'hello', undefined],
    ['cut JSON', '{"model":"m","messages":[', undefined],
    ['an array', '[]', undefined],
    ['no model', { messages }, 'model'],
    ['a model that is a number', { model: 3, messages }, 'model'],
    ['large and not JSON', `x${BIG}`, undefined],
    ['large without a model', { messages, x: BIG }, 'model'],
    ['an extension that is no object', { model: 'm', messages, hopgate: 1 }, 'hopgate'],
  ])('%s is a 400 that names the field', (_name, body, param) => {
    const error = refusal(bytes(body));
    expect(error.status).toBe(400);
    expect(error.param).toBe(param);
  });

  test('invalid UTF-8 and bottomless nesting are 400s', () => {
    expect(refusal(Uint8Array.of(0x7b, 0xff, 0x7d)).message).toContain('UTF-8');
    const deep = `{"model":"m","messages":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    expect(refusal(bytes(deep)).status).toBe(400);
  });
});

describe('half of a surrogate pair does not reach the vendor', () => {
  const halves = (content: string) =>
    bytes(`{"model":"m","messages":[{"role":"user","content":"${content}a\\ud83d b"}]}`);
  const named = ['malformed_content_mended'];

  test.each(['', BIG])('in a body that is small or large', async (content) => {
    const asker = { owner: '', protocol: openaiChat, sessionId: 's' };
    const histories = new Histories(() => 1e9);
    // The second turn of a session holds what the first one held.
    for (const _ of [1, 2]) {
      const request = await clientRequest(openaiChat, halves(content), { histories, asker });
      expect(text(request.bytes)).toContain('a\\ufffd b');
      expect(JSON.stringify(request.value)).not.toContain('\\ud83d');
      expect(request.repairs.map(({ name }) => name)).toEqual(named);
    }
  });

  test.each(['anthropic-messages', 'openai-chat', 'openai-responses', 'google-gemini'] as const)(
    'from any client to %s',
    async (target) => {
      const said = 'a\ud83d b';
      const turns = [{ role: 'user', content: said }];
      const asked = [
        ['anthropic-messages', { model: 'up/m', max_tokens: 9, messages: turns }],
        ['openai-chat', { model: 'up/m', messages: turns }],
        ['openai-responses', { model: 'up/m', input: said }],
        [
          'google-gemini',
          { model: 'up/m', stream: false, contents: [{ parts: [{ text: said }] }] },
        ],
      ] as const;
      for (const [client, body] of asked) {
        const { ask, sent, summaries } = scriptedGateway(target, [{ json: {} }, { json: {} }]);
        await ask(client, body);
        expect(JSON.stringify(sent[0])).toContain('a\ufffd b');
        expect(summaries[0]?.notes.map(({ name }) => name)).toContain(named[0]!);
      }
    },
  );
});

test.each([
  ['', 'The request body is empty.'],
  [' \r\n', 'The request body is empty.'],
  ['{"model":', 'The request body is not valid JSON: Unexpected EOF'],
  ["{'model':1}", "The request body is not valid JSON: Single quotes (') are not allowed in JSON"],
])('the body %j is refused in plain words', (body, words) => {
  expect(refusal(bytes(body)).message).toBe(words);
});

describe('a body that holds too much to parse in one go is refused before that', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `"key${i}":1`).join();
  const filled = (more: string) =>
    bytes(`{"model":"m","messages":[{"role":"user","content":"hi"}],${more}}`);
  const MANY = 310_000;

  test.each([
    ['at the top', names(MANY)],
    ['in one object', `"metadata":{${names(MANY)}}`],
    ['in different texts', `"x":[${Array.from({ length: 700_000 }, (_, i) => `"t${i}"`).join()}]`],
    ['in many lists', `"x":[${'[],'.repeat(1_000_000)}0]`],
    ['behind a text', `"user":"\\\\",${names(MANY)}`],
  ])('%s', async (_, more) => {
    const asker = { owner: '', protocol: openaiChat, sessionId: 's' };
    const histories = new Histories(() => 1e9);
    for (const options of [{}, { histories, asker }]) {
      const asked = Promise.resolve(clientRequest(openaiChat, filled(more), options));
      expect(asked).rejects.toMatchObject({ kind: 'invalid_request', status: 400 });
      await asked.catch(() => {});
    }
  });

  test('a long text is none of that, whatever it quotes', async () => {
    const code = JSON.stringify('{"a":[1]}\n'.repeat(400_000));
    const request = await clientRequest(openaiChat, filled(`"user":${code}`));
    expect(request.model).toBe('m');
  });
});
