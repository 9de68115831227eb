/** Errors in a stream that have no key `error`: every client hears of an error in its own protocol, and of no good end. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { scriptedGateway } from '../scripted.ts';

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const SAID = chunk({ role: 'assistant', content: 'Half an ans' });
const DONE = 'data: [DONE]\n\n';

const ERRORS: readonly (readonly [who: string, frame: string, words: string])[] = [
  ['FastAPI', 'data: {"detail":"worker died"}\n\n', 'worker died'],
  ['FastAPI, nested', 'data: {"detail":{"message":"worker died"}}\n\n', 'worker died'],
  ['DashScope', 'data: {"code":"InternalError","message":"worker died"}\n\n', 'worker died'],
  ['a type', 'data: {"type":"InternalError","message":"worker died"}\n\n', 'worker died'],
  ['vLLM', 'data: {"object":"error","message":"worker died","code":500}\n\n', 'worker died'],
  [
    'MiniMax',
    'data: {"base_resp":{"status_code":1000,"status_msg":"worker died"}}\n\n',
    'worker died',
  ],
  [
    'llama.cpp',
    'error: {"code":500,"message":"worker died","type":"server_error"}\n\n',
    'worker died',
  ],
];

const ASKED: Readonly<Record<ProtocolName, object>> = {
  'openai-chat': { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { model: 'm', stream: true, input: 'hi' },
  'anthropic-messages': {
    model: 'm',
    stream: true,
    max_tokens: 10,
    messages: [{ role: 'user', content: 'hi' }],
  },
  'google-gemini': {
    model: 'm',
    stream: true,
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  },
};
const GOOD_ENDS = [
  '[DONE]',
  '"stop_reason":"end_turn"',
  'response.completed',
  'message_stop',
  '"finishReason"',
];

/** A vendor whose streams are looked through, and one whose streams are not. */
const BOTH = (Object.keys(ASKED) as ProtocolName[]).flatMap((client) =>
  ['none', 'openai'].map((profile) => [client, { profile }] as const),
);

describe.each(BOTH)('%s, %o', (client, options) => {
  for (const [who, frame, words] of ERRORS) {
    for (const end of [[DONE], []]) {
      test.each([
        ['in one chunk', (parts: readonly string[]) => [parts.join('')]],
        ['in chunks of one frame', (parts: readonly string[]) => parts],
        ['with CRLF', (parts: readonly string[]) => parts.map((p) => p.replaceAll('\n', '\r\n'))],
        [
          'late in a long answer',
          (parts: readonly string[]) => [
            parts[0]!,
            ...Array.from({ length: 40 }, () => chunk({ content: 'more words ' })),
            ...parts.slice(1),
          ],
        ],
      ])(
        `${who}, behind content, ${end.length > 0 ? 'then [DONE]' : 'then nothing'}, %s`,
        async (_, cut) => {
          const script = [{ sse: cut([SAID, frame, ...end]) }];
          const { ask, summaries } = scriptedGateway('openai-chat', script, [], '', options);
          const { text, reset } = await ask(client, ASKED[client]);
          expect(text).toContain('Half an ans');
          expect(text).toContain('"error"');
          expect(text.slice(text.lastIndexOf('"error"'))).toContain(words);
          for (const good of GOOD_ENDS) expect(text).not.toContain(good);
          expect(reset).toBe(true);
          expect(summaries[0]!.error?.message).toContain(words);
        },
      );
    }

    test(`${who}, before content: an error answer`, async () => {
      const sse = [frame, DONE];
      const { ask } = scriptedGateway('openai-chat', [{ sse }, { sse }]);
      const { text, status } = await ask(client, ASKED[client]);
      expect(status).toBeGreaterThanOrEqual(500);
      expect(JSON.parse(text).error.message).toContain(words);
    });
  }

  test('the words of an error line decide: one try, and a full context is told as one', async () => {
    const sse = [
      'error: {"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}\n\n',
    ];
    const { ask, sent } = scriptedGateway('openai-chat', [{ sse }]);
    const { text, status } = await ask(client, ASKED[client]);
    expect([status, sent.length]).toEqual([400, 1]);
    const { error } = JSON.parse(text) as { error: { code?: string | number; message: string } };
    if (client === 'google-gemini') {
      expect(error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' });
      expect(error.message).toContain('exceeds');
    } else if (client === 'anthropic-messages')
      expect(error.message).toStartWith('prompt is too long');
    else expect(error.code).toBe('context_length_exceeded');
  });
});

test('content without a finish reason and then [DONE] is an answer: some servers never give a reason', async () => {
  const sse = [SAID, DONE];
  const { ask } = scriptedGateway('openai-chat', [{ sse }]);
  const { text, reset } = await ask('openai-chat', ASKED['openai-chat']);
  expect([text, reset]).toEqual([sse.join(''), false]);
});

test.each([
  ['usage alone', `data: {"usage":{"prompt_tokens":1,"completion_tokens":2},"choices":[]}\n\n`],
  ['a notice', 'data: {"message":"queued"}\n\n'],
  ['a filter result of Azure', 'data: {"choices":[],"prompt_filter_results":[]}\n\n'],
])('%s is no error', async (_, frame) => {
  const sse = [SAID, frame, chunk({}, 'stop'), DONE];
  const { ask } = scriptedGateway('openai-chat', [{ sse }]);
  const { text } = await ask('openai-chat', ASKED['openai-chat']);
  expect(text).toBe(sse.join(''));
});
