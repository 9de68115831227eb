/** On a WebSocket the last event is all that a client gets of an end: a kill behind it would lose what is not written. */

import { expect, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { TurnStates } from '../../../src/conversation/session/turn-state.ts';
import type { Account } from '../../../src/gateway/account.ts';
import { WITHOUT_KEY } from '../../../src/keys/principal.ts';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { RunAnswer } from '../../../src/server/websocket/run-answer.ts';
import { Run } from '../../../src/server/websocket/session.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { until } from '../../support/until.ts';

const sse = (value: JsonObject) =>
  `${typeof value.type === 'string' ? `event: ${value.type}\n` : ''}data: ${JSON.stringify(value)}\n\n`;

const chunk = (delta: JsonObject, finish_reason: string | null) =>
  sse({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta, finish_reason }],
    ...(finish_reason !== null && { usage: { prompt_tokens: 7, completion_tokens: 1 } }),
  });
const WORDS = chunk({ role: 'assistant', content: 'Hello' }, null);
const CHAT = [WORDS, chunk({}, 'stop'), 'data: [DONE]\n\n'];

const response = { id: 'r', object: 'response', created_at: 1, model: 'm' };
const part = { type: 'output_text', text: 'Hello', annotations: [] };
const item = { id: 'i', type: 'message', role: 'assistant', status: 'completed', content: [part] };
const usage = { input_tokens: 7, output_tokens: 1, total_tokens: 8 };
const ERROR = { code: 'server_error', message: 'Broken.' };
const begun = [
  sse({ type: 'response.created', response: { ...response, status: 'in_progress', output: [] } }),
  sse({
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...item, status: 'in_progress', content: [] },
  }),
  sse({
    ...{ type: 'response.content_part.added', item_id: 'i', output_index: 0, content_index: 0 },
    part: { ...part, text: '' },
  }),
  sse({
    ...{ type: 'response.output_text.delta', item_id: 'i', output_index: 0, content_index: 0 },
    delta: 'Hello',
  }),
];
const last = (status: string, more: JsonObject = {}) =>
  sse({
    type: `response.${status}`,
    response: { ...response, status, output: [item], usage, ...more },
  });
const COMPLETED = last('completed');

const CASES: Readonly<
  Record<
    string,
    readonly ['openai-chat' | 'openai-responses', Scripted, ended: string, end: string]
  >
> = {
  'a translated answer': ['openai-chat', { sse: CHAT }, 'done', 'response.completed'],
  'a translated answer that is cut': [
    'openai-chat',
    { sse: [WORDS], cut: true },
    'cut',
    'response.failed',
  ],
  'a translated error': [
    'openai-chat',
    { sse: [WORDS, sse({ error: ERROR })] },
    'error',
    'response.failed',
  ],
  'an answer': ['openai-responses', { sse: [...begun, COMPLETED] }, 'done', 'response.completed'],
  'an answer that comes at once': [
    'openai-responses',
    { sse: [[...begun, COMPLETED].join('')] },
    'done',
    'response.completed',
  ],
  'an answer whose last line comes alone': [
    'openai-responses',
    { sse: [...begun, COMPLETED.slice(0, -1), '\n'] },
    'done',
    'response.completed',
  ],
  'an answer without a last line': [
    'openai-responses',
    { sse: [...begun, COMPLETED.slice(0, -2)] },
    'done',
    'response.completed',
  ],
  'an answer that reached its limit': [
    'openai-responses',
    {
      sse: [...begun, last('incomplete', { incomplete_details: { reason: 'max_output_tokens' } })],
    },
    'done',
    'response.incomplete',
  ],
  'an answer that failed': [
    'openai-responses',
    { sse: [...begun, last('failed', { error: ERROR, usage: null })] },
    'error',
    'response.failed',
  ],
  'an error event': [
    'openai-responses',
    { sse: [...begun, sse({ type: 'error', ...ERROR, param: null })] },
    'error',
    'response.failed',
  ],
  'an answer that is cut': [
    'openai-responses',
    { sse: begun, cut: true },
    'cut',
    'response.failed',
  ],
  'an answer whose connection stays open': [
    'openai-responses',
    { sse: [...begun, COMPLETED], open: true },
    'done',
    'response.completed',
  ],
  'a refusal': ['openai-chat', { json: { error: ERROR }, status: 400 }, 'error', 'error'],
};

test.each(Object.entries(CASES))(
  '%s: what it cost is written before the client has its last event',
  async (_, [vendor, script, ended, end]) => {
    const order: string[] = [];
    // As the journal does: what is appended is written in a microtask.
    const write = (row: string) => queueMicrotask(() => order.push(`row: ${row}`));
    const account: Account = {
      forbids: () => undefined,
      route: undefined,
      mayHedge: true,
      needsUsage: false,
      addHeaders: () => {},
      cost: undefined,
      spent: undefined,
      end: () => {},
      beginTry: () => {
        let isOver = false;
        return {
          answered: () => {},
          end: (result) => {
            if (!isOver) write(`${result.ended} ${result.usage?.input ?? 'without usage'}`);
            isOver = true;
          },
        };
      },
    };
    const { gateway } = scriptedGateway(vendor, [script], [], '', {
      accounts: { open: () => account },
    });
    const body = new TextEncoder().encode(
      JSON.stringify({ model: 'm', stream: true, input: 'hi' }),
    );
    const answer = new RunAnswer(
      {
        serve: (request, protocol, _asked, lane) =>
          gateway({
            ...{ id: 'req_1', protocol, body, headers: new FlatHeaders(), sessionId: '' },
            ...{ search: '', signal: request.signal, principal: WITHOUT_KEY, owner: '' },
            ...{ started: performance.now(), lane },
          }),
        warmUp: () => Promise.reject(new Error('no warm-up')),
        codec: openaiResponses,
        writer: {
          write: (frames) => {
            for (const frame of frames) order.push(JSON.parse(frame).type);
            return undefined;
          },
        },
        url: 'http://gateway.test/v1/responses',
        headers: new FlatHeaders(),
        turnStates: new TurnStates(),
        keepAliveMs: 0,
        address: undefined,
      },
      new Run({ kind: 'create', streamId: undefined, body, generate: true } as never),
      { recall: () => undefined, remember: () => {} },
    );
    const done = answer.done();
    await until(
      () => order.includes(end),
      () => order.join(),
    );
    answer.gone();
    await done;
    const rows = order.filter((one) => one.startsWith('row: '));
    const input = ended === 'done' ? '7' : 'without usage';
    expect(rows).toEqual([`row: ${ended} ${input}`]);
    expect(order.filter((one) => one === rows[0] || one === end)).toEqual([rows[0]!, end]);
  },
);
