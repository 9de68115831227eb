/** An answer that goes on with another request: one stream for the client, whatever happens between. */

import { describe, expect, test } from 'bun:test';
import { GatewayError } from '../../src/conversation/errors.ts';
import type { StreamEvent } from '../../src/conversation/events.ts';
import type { Continuation, Feature, Interceptor } from '../../src/features/feature.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import { type Scripted, scriptedGateway } from './scripted.ts';

/** Continues after a first hop that called `lookup`: the call is held, its answer is a user turn. */
function lookup(run?: () => void): Feature {
  return {
    name: 'lookup',
    intercept(sent, { hop }): Interceptor {
      let held = false;
      let called = false;
      return {
        event(event: StreamEvent) {
          if (hop > 1) {
            if (event.type === 'start') return [];
            return 'index' in event ? { ...event, index: event.index + 1 } : event;
          }
          if (event.type === 'block-start') held = event.head.type === 'tool-call';
          called ||= held;
          return held || (called && event.type !== 'start') ? [] : event;
        },
        end: () => [],
        continuation(): Continuation | undefined {
          if (!called || hop > 1) return undefined;
          return {
            async run() {
              run?.();
              const found = { role: 'user', blocks: [{ type: 'text', text: 'found' }] } as const;
              return { ...sent, turns: [...sent.turns, found] };
            },
          };
        },
      };
    },
  };
}

const chunk = (delta: unknown, finish: string | null = null, usage?: unknown) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`;
const DONE = 'data: [DONE]\n\n';
const call = {
  index: 0,
  id: 'call_1',
  type: 'function',
  function: { name: 'lookup', arguments: '{}' },
};
const calls: Scripted = {
  sse: [
    chunk({ role: 'assistant', content: 'Let me see. ' }),
    chunk({ tool_calls: [call] }),
    chunk({}, 'tool_calls'),
    DONE,
  ],
};
const says = (text: string): Scripted => ({
  sse: [chunk({ role: 'assistant', content: text }), chunk({}, 'stop'), DONE],
});
const whole = (message: unknown, finish: string): Scripted => ({
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: finish }],
  },
});

const messages = [{ role: 'user', content: 'hi' }];
const BODIES: Record<ProtocolName, (stream: boolean) => unknown> = {
  'openai-chat': (stream) => ({ model: 'm', stream, messages }),
  'openai-responses': (stream) => ({ model: 'm', stream, input: 'hi' }),
  'anthropic-messages': (stream) => ({ model: 'm', stream, max_tokens: 9, messages }),
};
const START = {
  'openai-chat': '"role":"assistant"',
  'openai-responses': 'event: response.created',
  'anthropic-messages': 'event: message_start',
};
const END = {
  'openai-chat': 'data: [DONE]',
  'openai-responses': 'event: response.completed',
  'anthropic-messages': 'event: message_stop',
};
const count = (text: string, part: string) => text.split(part).length - 1;

for (const client of Object.keys(BODIES) as ProtocolName[]) {
  describe(client, () => {
    test('two hops are one stream: one start, one end, no trace of the held call', async () => {
      const gateway = scriptedGateway('openai-chat', [calls, says('It is 42.')], [lookup()]);
      const { text, reset } = await gateway.ask(client, BODIES[client](true));
      expect(reset).toBe(false);
      expect([count(text, START[client]), count(text, END[client])]).toEqual([1, 1]);
      expect(text).toContain('Let me see. ');
      expect(text).toContain('It is 42.');
      expect(text).not.toContain('lookup');
      expect(JSON.stringify(gateway.sent[1])).toContain('found');
      expect(gateway.summaries[0]).toMatchObject({ status: 200, hops: 2, error: undefined });
    });

    test('a client without streaming gets both hops in one reply', async () => {
      const first = whole(
        { role: 'assistant', content: 'Let me see. ', tool_calls: [call] },
        'tool_calls',
      );
      const second = whole({ role: 'assistant', content: 'It is 42.' }, 'stop');
      const gateway = scriptedGateway('openai-chat', [first, second], [lookup()]);
      const { status, text } = await gateway.ask(client, BODIES[client](false));
      expect(status).toBe(200);
      expect(text).toContain('Let me see. ');
      expect(text).toContain('It is 42.');
      expect(text).not.toContain('lookup');
    });

    test('the header of a whole answer has the notes of all hops', async () => {
      const noting: Feature = {
        name: 'noting',
        request(conversation, { notes, hop }) {
          notes.add(`hop_${hop}`);
          return conversation;
        },
      };
      const first = whole({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls');
      const features = [noting, lookup()];
      const ends: readonly Scripted[] = [
        whole({ role: 'assistant', content: 'It is 42.' }, 'stop'),
        { status: 400, json: { error: { message: 'no', type: 'invalid_request_error' } } },
      ];
      for (const end of ends) {
        const gateway = scriptedGateway('openai-chat', [first, end], features);
        const { headers } = await gateway.ask(client, BODIES[client](false));
        const named = headers.get('x-hopgate-notes')?.split(',');
        expect(named).toEqual(expect.arrayContaining(['hop_1', 'hop_2']));
        expect(gateway.summaries[0]!.notes.map(({ name }) => name)).toEqual(named!);
      }
    });

    test('a second hop that fails before it said anything is tried again, unseen', async () => {
      const cut: Scripted = { sse: [chunk({ role: 'assistant' })], cut: true };
      const gateway = scriptedGateway('openai-chat', [calls, cut, says('It is 42.')], [lookup()]);
      const { text, reset } = await gateway.ask(client, BODIES[client](true));
      expect(reset).toBe(false);
      expect([count(text, START[client]), count(text, END[client])]).toEqual([1, 1]);
      expect(text).toContain('It is 42.');
    });

    test('a second hop that keeps failing is an error and a reset, never an end', async () => {
      const broken: Scripted = { json: { error: { message: 'boom' } }, status: 500 };
      const gateway = scriptedGateway('openai-chat', [calls, broken, broken], [lookup()]);
      const { text, reset } = await gateway.ask(client, BODIES[client](true));
      expect(text).not.toContain(END[client]);
      expect(text).toContain('boom');
      expect(reset).toBe(true);
      expect(gateway.summaries[0]?.error?.message).toContain('boom');
    });

    test('what throws between the hops is told, not swallowed', async () => {
      const failing = lookup(() => {
        throw new GatewayError('upstream', 'the tool broke');
      });
      const gateway = scriptedGateway('openai-chat', [calls], [failing]);
      const { text, reset } = await gateway.ask(client, BODIES[client](true));
      expect(text).toContain('the tool broke');
      expect([reset, text.includes(END[client])]).toEqual([true, false]);
    });
  });
}

describe('a last hop that says nothing', () => {
  const wholeCall = whole(
    { role: 'assistant', content: 'Let me see. ', tool_calls: [call] },
    'tool_calls',
  );
  const wholeEmpty = whole({ role: 'assistant', content: '' }, 'stop');
  const wholeReasoned = whole({ role: 'assistant', content: '', reasoning_content: 'Hm.' }, 'stop');

  test.each(Object.keys(BODIES) as ProtocolName[])(
    '%s: is an error, streamed or not',
    async (client) => {
      for (const stream of [true, false]) {
        const script = stream ? [calls, says(''), says('')] : [wholeCall, wholeEmpty, wholeEmpty];
        const {
          ask: request,
          sent,
          summaries,
        } = scriptedGateway('openai-chat', script, [lookup()]);
        const seen = await request(client, BODIES[client](stream));
        // The call, the empty hop, and that one once more.
        expect(sent).toHaveLength(3);
        expect(seen.text).toContain('answered with nothing at all');
        expect(summaries[0]?.error?.kind).toBe('upstream');
        if (stream) expect(seen.reset).toBe(true);
        else expect([seen.status, seen.headers.get('x-should-retry')]).toEqual([502, 'false']);
      }
    },
  );

  test('has reasoned only where it did', async () => {
    const { ask } = scriptedGateway(
      'openai-chat',
      [wholeCall, wholeReasoned, wholeReasoned],
      [lookup()],
    );
    expect((await ask('openai-chat', BODIES['openai-chat'](false))).text).toContain(
      'reasoned, but answered nothing',
    );
  });
});

test('markup that is taken out of a whole answer is no reasoning', async () => {
  const mute: Feature = {
    name: 'mute',
    intercept: () => ({
      event: (event) =>
        event.type === 'delta' || event.type === 'block-start' || event.type === 'block-stop'
          ? []
          : event,
      end: () => [],
    }),
  };
  const said = whole({ role: 'assistant', content: '<tool_call>' }, 'stop');
  const { ask } = scriptedGateway('openai-chat', [said, said], [mute]);
  const seen = await ask('openai-chat', BODIES['openai-chat'](false));
  expect([seen.status, seen.text.includes('nothing at all')]).toEqual([502, true]);
});
