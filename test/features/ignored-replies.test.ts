/** Whole replies that interceptors ignore. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import type { Reply } from '../../src/conversation/events.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { ReplyBuilder, replyEvents } from '../../src/conversation/reply-builder.ts';
import type { Block } from '../../src/conversation/types.ts';
import type { Interceptor } from '../../src/features/feature.ts';
import { leakedCalls } from '../../src/features/leaked-calls/index.ts';
import { ANSWERS, reasoningMemory } from '../../src/features/reasoning-memory/index.ts';
import type { Json } from '../../src/lib/json/json.ts';
import { memoryRoom } from '../support/entries.ts';
import { STREAMED, targetWith } from './leaked-calls/transcript.ts';

const LEAK = '<tool_call>\n{"name": "exec_command", "arguments": {"cmd": "ls"}}\n</tool_call>';
const PYTHONIC = '[exec_command(cmd="ls")]';

const text = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('word', ' and more', '.', ' 3', 'é', '你好', '😀') },
      fc.constantFrom(LEAK, LEAK.slice(0, 30), PYTHONIC, '<think>', '</think>', '\n', '`', '```\n'),
      fc.constantFrom('', ' ', '{', '[', '<', '"', 'to=functions.exec_command', 'commentary to='),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(''));

const block: fc.Arbitrary<Block> = fc.oneof(
  { weight: 8, arbitrary: text.map((said): Block => ({ type: 'text', text: said })) },
  text.map((said): Block => {
    const citations = [{ url: 'https://example.com/', title: 'T', start: 0, end: 1 }];
    return { type: 'text', text: `${said}x`, citations };
  }),
  text.map((said): Block => ({ type: 'reasoning', text: said })),
  text.map((said): Block => ({ type: 'refusal', text: said })),
  fc.constant<Block>({
    type: 'tool-call',
    id: 'call_1',
    name: 'exec_command',
    kind: 'function',
    input: '{"cmd":"ls"}',
    by: 'client',
  }),
);

const reply: fc.Arbitrary<Reply> = fc.record({
  id: fc.constant('c'),
  model: fc.constant('m'),
  blocks: fc.array(block, { maxLength: 3 }),
  finish: fc.constantFrom('stop', 'length', 'tool-calls', 'refusal'),
  usage: fc.constantFrom({ input: 1, output: 2 }, { input: 0, output: 0 }),
});

/** Texts that Responses says in two messages. */
const TWO_MESSAGES: [Reply][] = [
  [
    {
      id: 'c',
      model: 'm',
      blocks: [
        { type: 'text', text: 'word' },
        { type: 'reasoning', text: '' },
        { type: 'text', text: 'word' },
      ],
      finish: 'stop',
      usage: { input: 1, output: 2 },
    },
  ],
];

const PROTOCOLS = [openaiChat, anthropicMessages, openaiResponses];
const VENDORS = [...PROTOCOLS, googleGemini];

/** The reply as a vendor of this protocol would write it. */
const bodyOf = (protocol: Codec, given: Reply): Json => {
  const context = {
    request: STREAMED,
    requestId: 'req_1_aaaaaa',
    provider: 'v',
    notes: new Notes(),
  };
  return JSON.parse(JSON.stringify(protocol.encodeReply(given, context)));
};

const decoded = (protocol: Codec, body: Json): Reply =>
  protocol.decodeReply(body, {
    sent: STREAMED,
    target: { ...targetWith(), protocol: protocol.name },
    notes: new Notes(),
  });

/** An interceptor of a kind, and what it does beside handing events on. */
const KINDS: Readonly<Record<string, (protocol: Codec) => [Interceptor, () => unknown[]]>> = {
  'leaked calls'(protocol) {
    const told: unknown[] = [];
    const notes = new Notes();
    const made = leakedCalls((leak) => told.push(leak)).intercept?.(STREAMED, {
      target: { ...targetWith(), protocol: protocol.name },
      client: protocol.name,
      notes,
      hop: 1,
    });
    if (made === undefined) throw new Error('nothing looks for leaked calls');
    return [made, () => [...told, ...notes.all]];
  },
  'the session ledger'(protocol) {
    const told: unknown[] = [];
    const ledger = memoryRoom(ANSWERS);
    ledger.put = (...kept: unknown[]) => told.push(kept);
    const made = reasoningMemory({ ledger, owner: '' }).intercept?.(STREAMED, {
      target: { ...targetWith(), protocol: protocol.name },
      client: 'openai-chat',
      notes: new Notes(),
      hop: 1,
    });
    if (made === undefined) throw new Error('nothing listens for what is to be remembered');
    return [made, () => told];
  },
};

function isUntouched(interceptor: Interceptor, given: Reply): boolean {
  const events = [...replyEvents(given)];
  const out = events.flatMap((event) => interceptor.event(event));
  out.push(...interceptor.end());
  const same = out.length === events.length && out.every((event, i) => event === events[i]);
  return same && interceptor.continuation?.() === undefined;
}

const CASES = PROTOCOLS.flatMap((protocol) =>
  Object.keys(KINDS).map((kind) => [kind, protocol.name, protocol] as const),
);

describe('a whole reply that is nothing but plain words', () => {
  test.each(PROTOCOLS.map((protocol) => [protocol.name, protocol] as const))(
    '%s: the texts are all that there is',
    (_name, protocol) => {
      let plain = 0;
      fc.assert(
        fc.property(reply, (given) => {
          const body = bodyOf(protocol, given);
          const { texts } = protocol.digestReply(body);
          if (texts === undefined) return;
          plain++;
          const blocks = texts.map((said) => ({ type: 'text', text: said }));
          // Where a further message of Responses begins is beside the texts.
          const found = decoded(protocol, body).blocks.map(({ wire: _, ...block }): object =>
            block.type === 'text' && block.paragraph ? { type: 'text', text: block.text } : block,
          );
          expect(found).toEqual(blocks);
        }),
        { numRuns: 2000, examples: TWO_MESSAGES },
      );
      // A digest that never tells the texts proves nothing.
      expect(plain).toBeGreaterThan(100);
    },
  );

  test.each(CASES)('ignored by %s, %s: untouched and unnoticed', (kind, _name, protocol) => {
    let ignored = 0;
    fc.assert(
      fc.property(reply, (given) => {
        const body = bodyOf(protocol, given);
        const { texts } = protocol.digestReply(body);
        if (texts === undefined) return;
        if (KINDS[kind]!(protocol)[0].fast?.ignoresTexts?.(texts) !== true) return;
        ignored++;
        const [interceptor, told] = KINDS[kind]!(protocol);
        expect(isUntouched(interceptor, decoded(protocol, body))).toBe(true);
        expect(told()).toEqual([]);
      }),
      { numRuns: 2000, examples: TWO_MESSAGES },
    );
    expect(ignored).toBeGreaterThan(100);
  });

  test('is not ignored with a leaked call in it', () => {
    const ignores = (text: string) =>
      KINDS['leaked calls']!(openaiChat)[0].fast?.ignoresTexts?.([text]);
    expect(ignores('All done.')).toBe(true);
    expect(ignores(`All done. ${LEAK}`)).toBe(false);
    expect(ignores(PYTHONIC)).toBe(false);
  });
});

describe('a whole reply of plain words that is encoded for another protocol', () => {
  const pairs = VENDORS.flatMap((vendor) =>
    VENDORS.filter((client) => client !== vendor).map(
      (client) => [vendor.name, client.name, vendor, client] as const,
    ),
  );

  test.each(pairs)(
    '%s for a client of %s: the same as from its events',
    (_v, _c, vendor, client) => {
      let plain = 0;
      fc.assert(
        fc.property(reply, (given) => {
          const body = bodyOf(vendor, given);
          if (vendor.digestReply(body).texts === undefined) return;
          plain++;
          const found = decoded(vendor, body);
          const fold = new ReplyBuilder();
          for (const event of replyEvents(found)) fold.push(event);
          expect(bodyOf(client, found)).toEqual(bodyOf(client, fold.reply));
        }),
        { numRuns: 300, examples: TWO_MESSAGES },
      );
      expect(plain).toBeGreaterThan(10);
    },
  );
});
