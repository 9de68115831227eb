/** For generated streams of any upstream, the official client accepts what a Responses client gets. */

import { afterAll, describe, expect, setSystemTime, test } from 'bun:test';
import * as fc from 'fast-check';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { BlockHead, StreamEvent } from '../../../src/conversation/events.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { block, finish, SEALING, start, write } from './builders.ts';
import { client, conversation, plain } from './material.ts';
import { readBySdk } from './sdk.ts';
import { checkSkeleton } from './skeleton.ts';

const ids = fc.constantFrom('call_1', 'toolu_2', 'functions.x:0', '');
const head: fc.Arbitrary<BlockHead> = fc.oneof(
  fc.constant<BlockHead>({ type: 'text' }),
  fc.constant<BlockHead>({ type: 'refusal' }),
  fc.boolean().map((summary): BlockHead => ({ type: 'reasoning', summary })),
  fc
    .record({
      id: ids,
      name: fc.constantFrom('go', 'web_search', 'ünïcode'),
      namespace: fc.option(fc.constant('ns'), { nil: undefined }),
      kind: fc.constantFrom('function' as const, 'custom' as const, 'tool-search' as const),
      by: fc.constantFrom('client' as const, 'provider' as const, 'gateway' as const),
    })
    .map((one): BlockHead => ({ type: 'tool-call', ...one })),
  fc.constantFrom<BlockHead>(
    {
      type: 'whole',
      block: { type: 'opaque', name: 'x', wire: { protocol: 'openai-chat', value: 1 } },
    },
    {
      type: 'whole',
      block: {
        type: 'opaque',
        name: 'x',
        wire: { protocol: 'openai-responses', value: { type: 'compaction', id: 'cmp_1' } },
      },
    },
    { type: 'whole', block: { type: 'media', media: 'image', source: { type: 'url', url: 'u' } } },
    {
      type: 'whole',
      block: {
        type: 'tool-result',
        callId: 'toolu_2',
        kind: 'function',
        content: [],
        isError: false,
        by: 'provider',
      },
    },
    {
      type: 'whole',
      block: {
        type: 'tool-call',
        id: 'toolu_2',
        name: 'web_search',
        kind: 'function',
        input: '{"query":"q"}',
        by: 'gateway',
      },
    },
  ),
);

/** Within an answer each id is there once: the `unique-call-ids` feature sees to those of calls. */
function eachOnce(): (one: BlockHead, i: number) => BlockHead {
  const seen = new Set<string>();
  const own = (id: string, i: number) => (seen.size === seen.add(id).size ? `${id}_${i}` : id);
  return (one, i) => {
    if (one.type === 'tool-call') return { ...one, id: own(one.id, i) };
    if (one.type !== 'whole') return one;
    if (one.block.type === 'tool-call') {
      return { ...one, block: { ...one.block, id: own(one.block.id, i) } };
    }
    return JSON.parse(JSON.stringify(one).replace('"cmp_1"', `"cmp_${i}"`)) as BlockHead;
  };
}

/** Any stream in the promised order, from any upstream. */
const stream: fc.Arbitrary<readonly StreamEvent[]> = fc
  .record({
    heads: fc.array(fc.tuple(head, fc.array(fc.string(), { maxLength: 3 }), fc.nat(7)), {
      maxLength: 6,
    }),
    reason: fc.constantFrom(
      'stop' as const,
      'tool-calls' as const,
      'length' as const,
      'refusal' as const,
    ),
    usage: fc.boolean(),
  })
  .map((given) => ({ ...given, own: eachOnce() }))
  .map(({ heads, reason, usage, own }) => [
    start,
    ...heads.flatMap(([given, deltas, extra], i) => {
      const one = own(given, i);
      const inner: (string | object)[] = one.type === 'whole' ? [] : [...deltas];
      if (extra & 1 && one.type === 'reasoning') {
        inner.push({
          type: 'sealed',
          sealed: { protocol: 'anthropic-messages', kind: 'signature', value: 's' },
        });
      }
      if (extra & 2 && one.type === 'text') {
        inner.unshift({
          type: 'citation',
          citation: extra & 4 ? { url: 'u', start: 0, end: 0 } : { url: 'u' },
        });
      }
      if (extra & 4 && one.type === 'reasoning')
        inner.push({ type: 'delta', text: 'more', newPart: true });
      return block(i, one, ...inner);
    }),
    ...(usage ? [{ type: 'usage' as const, usage: { input: 1, output: 2 } }] : []),
    ...finish(reason),
  ]);

afterAll(() => {
  setSystemTime();
});

describe('any stream of any upstream', () => {
  const request: JsonObject = { ...SEALING, tools: [{ type: 'web_search' }] };

  test('the stream has the right structure, satisfies the official client, and equals the whole reply', async () => {
    setSystemTime(new Date('2026-03-01T12:00:00Z'));
    await fc.assert(
      fc.asyncProperty(stream, async (events) => {
        const sse = write(events, request);
        const last = checkSkeleton(sse);
        const { output: read } = plain(await readBySdk(sse)) as { output: readonly JsonObject[] };
        expect(read.map((item) => item.id) as unknown[]).toEqual(
          (last.output as readonly JsonObject[]).map((item) => item.id),
        );
        const fold = new ReplyBuilder();
        for (const event of events) fold.push(event);
        const asker = client(conversation(request));
        const whole = openaiResponses.encodeReply(fold.reply, asker);
        expect(meaning(whole)).toEqual(meaning(last));
        const wholeText = openaiResponses.encodeReplyText(fold.reply, asker);
        expect(meaning(JSON.parse(wholeText))).toEqual(meaning(whole));
      }),
      { numRuns: 200 },
    );
  }, 60_000);

  test('events out of order do not make the encoder throw', () => {
    void fc.assert(
      fc.property(fc.array(stream, { minLength: 1, maxLength: 2 }), fc.nat(), (streams, seed) => {
        const events = streams.flat();
        const shuffled = events
          .map((event, i) => ({ event, key: (i * 7919 + seed) % 104729 }))
          .sort((a, b) => a.key - b.key)
          .map(({ event }) => event);
        write(shuffled, request);
      }),
      { numRuns: 100 },
    );
  });
});

/** Folding a stream joins summary parts and moves text sources after the text, so both are left out. */
function meaning(response: JsonObject): unknown {
  const items = (response.output as readonly JsonObject[]).map((item) => {
    if (item.type !== 'reasoning') return item;
    const parts = item.summary as readonly { text: string }[];
    return { ...item, summary: parts.map((part) => part.text).join('\n\n') };
  });
  return plain({ ...response, output: items });
}
