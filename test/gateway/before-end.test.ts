/** The end of an answer waits for what its next request needs, and for nothing else. */

import { describe, expect, test } from 'bun:test';
import type { Feature } from '../../src/features/feature.ts';
import { until } from '../support/until.ts';
import { type Scripted, scriptedGateway } from './scripted.ts';

const chunk = (delta: unknown, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const DONE = 'data: [DONE]\n\n';
const WORDS = [chunk({ role: 'assistant', content: 'It is ' }), chunk({ content: '42.' })];
const END = [chunk({}, 'stop'), DONE];
const body = (stream: boolean) => ({
  model: 'm',
  stream,
  messages: [{ role: 'user', content: 'hi' }],
});
const STREAMS: Readonly<Record<string, Scripted>> = {
  'that comes in pieces': { sse: [...WORDS, ...END] },
  'that comes at once': { sse: [[...WORDS, ...END].join('')] },
  'whose last piece is half a frame': { sse: [...WORDS, END[0]!, DONE.slice(0, 8), DONE.slice(8)] },
};
const WHOLE: Scripted = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'It is 42.' }, finish_reason: 'stop' },
    ],
  },
};

/** Ends a hop with an event of its own, as a turn in which the client's own calls stand beside others. */
const mixed: Feature = {
  name: 'mixed',
  intercept: () => ({
    event: (event) => (event.type === 'finish' || event.type === 'end' ? [] : event),
    end: () => [],
    continuation: () => ({
      last: true,
      async run(_, emit) {
        emit([{ type: 'finish', reason: 'stop' }, { type: 'end' }]);
        return { model: 'm', system: [], turns: [], tools: [], settings: { stream: true } };
      },
    }),
  }),
};

/** Looks at everything and changes nothing. Without any interceptor no feature has anything to store. */
const untouched: Feature = {
  name: 'untouched',
  intercept: () => ({ event: (event) => event, end: () => [] }),
};

describe('the end of an answer', () => {
  for (const [name, script] of Object.entries(STREAMS)) {
    for (const [how, features] of [
      ['as it is', [untouched]],
      ['in a mixed turn', [mixed]],
    ] as const) {
      for (const client of ['openai-chat', 'anthropic-messages'] as const) {
        test(`a stream ${name}, ${how}, to ${client}: no end goes out before the state is stored`, async () => {
          const stored = Promise.withResolvers<void>();
          let asked = 0;
          let text = '';
          const gateway = scriptedGateway('openai-chat', [{ ...script }], features, '', {
            beforeEnd: () => (asked++ === 0 ? stored.promise : undefined),
          });
          const request = client === 'openai-chat' ? body(true) : { ...body(true), max_tokens: 9 };
          const answer = gateway.ask(client, request, undefined, (piece) => {
            text += piece;
          });
          await until(() => asked > 0);
          await Bun.sleep(20);
          expect(text).not.toMatch(/\[DONE\]|message_stop/);
          expect(gateway.summaries).toHaveLength(0);
          stored.resolve();
          const { text: all, reset } = await answer;
          expect(reset).toBe(false);
          expect(all).toMatch(/\[DONE\]|message_stop/);
          expect(all).toContain('42.');
          expect(gateway.summaries).toHaveLength(1);
        });
      }
    }
  }

  test('a whole answer waits, too', async () => {
    const stored = Promise.withResolvers<void>();
    let isThere = false;
    const gateway = scriptedGateway('openai-chat', [WHOLE], [], '', {
      beforeEnd: () => stored.promise,
    });
    const answer = gateway.ask('openai-chat', body(false)).then((all) => {
      isThere = true;
      return all;
    });
    await Bun.sleep(20);
    expect(isThere).toBe(false);
    stored.resolve();
    expect((await answer).text).toContain('It is 42.');
  });

  test('is not asked for before the end: the words go out at once', async () => {
    let text = '';
    const seen: string[] = [];
    const gateway = scriptedGateway('openai-chat', [{ sse: [...WORDS, ...END] }], [untouched], '', {
      beforeEnd: () => {
        seen.push(text);
        return undefined;
      },
    });
    await gateway.ask('openai-chat', body(true), undefined, (piece) => {
      text += piece;
    });
    expect(seen.length).toBeGreaterThan(0);
    expect(seen[0]).toContain('It is ');
  });
});
