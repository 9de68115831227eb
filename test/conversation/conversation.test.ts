/** The conversation model: seals, tool names, reply building, edits and counts. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { editNode, mapUnchanged } from '../../src/conversation/edit.ts';
import type { Reply } from '../../src/conversation/events.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { ReplyBuilder, replyEvents } from '../../src/conversation/reply-builder.ts';
import {
  openEnvelope,
  openSeal,
  SEAL_ENVELOPE_PREFIX,
  wrapSeal,
  wrapUnsealed,
} from '../../src/conversation/seal.ts';
import {
  toolNames,
  unwrapFreeform,
  wrapFreeform,
} from '../../src/conversation/tools/tool-names.ts';
import type { Block, Sealed, TextBlock, Tool } from '../../src/conversation/types.ts';
import { addUsage, totalInput, totalOutput } from '../../src/conversation/usage.ts';

const seal: fc.Arbitrary<Sealed> = fc.record(
  {
    protocol: fc.constantFrom('anthropic-messages', 'openai-chat', 'openai-responses'),
    kind: fc.constantFrom('signature', 'encrypted', 'redacted'),
    value: fc.string({ unit: 'grapheme' }),
    provider: fc.string({ minLength: 1, unit: 'grapheme' }),
  },
  { requiredKeys: ['protocol', 'kind', 'value'] },
);

describe('seals through a client of another protocol', () => {
  test('seals come back unchanged', () => {
    fc.assert(fc.property(seal, (sealed) => expect(openSeal(wrapSeal(sealed))).toEqual(sealed)));
  });

  test('seals hold the span they were made for, and open as the same seal without it', () => {
    const span = fc.record({ from: fc.nat(), to: fc.nat() });
    fc.assert(
      fc.property(seal, span, (sealed, span) => {
        const carrier = wrapSeal(sealed, span);
        expect(openEnvelope(carrier)).toEqual({ sealed, span });
        expect(openSeal(carrier)).toEqual(sealed);
        // An envelope with a span is the plain one with the span at its end.
        expect(carrier).toBe(`${wrapSeal(sealed)}.${span.from}-${span.to}`);
      }),
    );
    expect(
      openEnvelope(`${wrapSeal({ protocol: 'openai-chat', kind: 'signature', value: 'S' })}.x`),
    ).toEqual({
      sealed: { protocol: 'openai-chat', kind: 'signature', value: 'S' },
    });
  });

  test('a foreign signature is not an envelope', () => {
    fc.assert(fc.property(fc.base64String(), (text) => expect(openSeal(text)).toBeUndefined()));
  });

  test('a damaged envelope is not a seal and does not throw', () => {
    fc.assert(fc.property(fc.string(), (text) => void openSeal(SEAL_ENVELOPE_PREFIX + text)));
    expect(openSeal(`${SEAL_ENVELOPE_PREFIX}zz.x.y`)).toBeUndefined();
    expect(openSeal(wrapUnsealed('openai-chat', 'glm'))?.provider).toBe('glm');
  });
});

describe('tool names on a flat protocol', () => {
  const tool: fc.Arbitrary<Tool> = fc.oneof(
    fc.record(
      {
        type: fc.constant('function' as const),
        name: fc.string({ minLength: 1, maxLength: 90 }),
        namespace: fc.string({ minLength: 1, maxLength: 20 }),
      },
      { requiredKeys: ['type', 'name'] },
    ),
    fc.record({
      type: fc.constant('custom' as const),
      name: fc.stringMatching(/^[a-z_]{1,70}$/),
    }),
  );

  test('flat names are valid, unique, and reversible', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(tool, {
          selector: (t) => `${'namespace' in t ? `${t.namespace}__` : ''}${t.name}`,
        }),
        (tools) => {
          const names = toolNames(tools, 64);
          const flat = tools.map((t) =>
            names.flat(t.name, 'namespace' in t ? t.namespace : undefined),
          );
          expect(new Set(flat).size).toBe(tools.length);
          for (const [i, name] of flat.entries()) {
            expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
            const t = tools[i]!;
            expect(names.original(name)).toEqual({
              name: t.name,
              namespace: 'namespace' in t ? t.namespace : undefined,
              kind: t.type === 'custom' ? 'custom' : 'function',
            });
          }
        },
      ),
    );
  });

  test('flat names do not depend on other tools', () => {
    const long: Tool = { type: 'function', name: 'mcp__server__'.repeat(8) };
    const alone = toolNames([long], 64).flat(long.name);
    const among = toolNames([{ type: 'function', name: 'a' }, long], 64).flat(long.name);
    expect(among).toBe(alone);
  });

  test('freeform input survives as a function argument', () => {
    fc.assert(
      fc.property(fc.string(), (text) => expect(unwrapFreeform(wrapFreeform(text))).toBe(text)),
    );
    expect(unwrapFreeform('*** Begin Patch')).toBe('*** Begin Patch');
  });
});

describe('a reply and its events', () => {
  const block: fc.Arbitrary<Block> = fc.oneof(
    fc.record({ type: fc.constant('text' as const), text: fc.string() }),
    fc.record({ type: fc.constant('refusal' as const), text: fc.string() }),
    fc.record(
      { type: fc.constant('reasoning' as const), text: fc.string(), sealed: seal },
      { requiredKeys: ['type', 'text'] },
    ),
    fc.record({
      type: fc.constant('tool-call' as const),
      id: fc.string(),
      name: fc.string(),
      kind: fc.constantFrom('function' as const, 'custom' as const),
      by: fc.constant('client' as const),
      input: fc.json(),
    }),
  );

  test('a reply is the same after conversion to events and back', () => {
    fc.assert(
      fc.property(fc.array(block), (blocks) => {
        const reply: Reply = {
          id: 'a',
          model: 'm',
          blocks,
          finish: 'stop',
          usage: { input: 1, output: 2 },
        };
        const fold = new ReplyBuilder();
        for (const event of replyEvents(reply)) fold.push(event);
        expect(fold.complete).toBe(true);
        expect(JSON.parse(JSON.stringify(fold.reply))).toEqual(JSON.parse(JSON.stringify(reply)));
      }),
    );
  });
});

describe('edits', () => {
  const turn: TextBlock = {
    type: 'text',
    text: 'a',
    wire: { protocol: 'openai-chat', value: { type: 'text', text: 'a', extra: 1 } },
  };

  test('an edited node has residue instead of wire', () => {
    const once = editNode(turn, { text: 'b' });
    expect(once.wire).toBeUndefined();
    expect(once.residue).toBe(turn.wire);
    expect(editNode(once, { text: 'c' }).residue).toBe(turn.wire);
  });

  test('an unchanged list is the same object', () => {
    const list = [1, 2, 3];
    expect(mapUnchanged(list, (n) => n)).toBe(list);
    expect(mapUnchanged(list, (n) => (n === 2 ? undefined : n))).toEqual([1, 3]);
    expect(mapUnchanged(list, (n) => (n === 1 ? [7, 8] : n))).toEqual([7, 8, 2, 3]);
  });
});

describe('counts', () => {
  test('notes are reported by name and number', () => {
    const notes = new Notes();
    expect(notes.summary()).toBe('');
    notes.add('a');
    notes.add('b');
    notes.add('a');
    expect(notes.summary()).toBe('a=2,b');
  });

  test('usage over hops: totals are the sums of the totals', () => {
    const count = fc.nat(1_000_000);
    const usage = fc.record(
      { input: count, output: count, cacheRead: count, cacheWrite: count, reasoning: count },
      { requiredKeys: ['input', 'output'] },
    );
    fc.assert(
      fc.property(usage, usage, (a, b) => {
        const both = addUsage(a, b);
        expect(totalInput(both)).toBe(totalInput(a) + totalInput(b));
        expect(totalOutput(both)).toBe(totalOutput(a) + totalOutput(b));
      }),
    );
  });

  test('usage over hops: hosted tools are counted by name, inherited names too', () => {
    const hosted = JSON.parse('{"web_search_requests":1,"constructor":2,"__proto__":3}');
    const both = addUsage({ input: 1, output: 1, hosted }, { input: 1, output: 1, hosted });
    expect(JSON.stringify(both.hosted)).toBe(
      '{"web_search_requests":2,"constructor":4,"__proto__":6}',
    );
  });
});
