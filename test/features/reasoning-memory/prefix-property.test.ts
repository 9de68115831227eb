/** With any sequence of vendors, each request to a vendor extends its previous one, and seals go only to their maker. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import {
  CLAUDE,
  call,
  chatReply,
  chatStream,
  DEEPSEEK,
  GEMINI,
  messagesReply,
  Session,
  seal,
  type Vendor,
} from './scripts.ts';

interface Step {
  readonly vendor: 0 | 1 | 2;
  readonly calls: number;
  readonly reasons: boolean;
  readonly text: boolean;
  readonly stream: boolean;
}

const VENDORS: readonly Vendor[] = [CLAUDE, DEEPSEEK, GEMINI];

const steps = fc.array(
  fc.record<Step>({
    vendor: fc.constantFrom(0, 1, 2),
    calls: fc.nat({ max: 3 }),
    reasons: fc.boolean(),
    text: fc.boolean(),
    stream: fc.boolean(),
  }),
  { minLength: 2, maxLength: 9 },
);

/** The answer of step `n`; text that only its maker may see again is spelled `secret-<vendor>-<n>`. */
function answer({ vendor, calls, reasons, text, stream }: Step, n: number) {
  const ids = Array.from({ length: calls }, (_, i) => `call_${n}f7a${i}c1e90b8d2a64${n}${i}`);
  const message = text || calls === 0 ? `step ${n}` : undefined;
  const secret = `secret-${vendor}-${n}`;
  if (vendor === 0) {
    return messagesReply([
      ...(reasons ? [{ type: 'thinking', thinking: secret, signature: seal(n) }] : []),
      ...(message === undefined ? [] : [{ type: 'text', text: message }]),
      ...ids.map((id) => ({ type: 'tool_use', id, name: 'read', input: {} })),
    ]);
  }
  const thought: JsonObject = reasons && vendor === 1 ? { reasoning_content: secret } : {};
  const signed = (i: number): JsonObject =>
    reasons && vendor === 2 && i === 0
      ? { extra_content: { google: { thought_signature: secret } } }
      : {};
  const made = ids.map((id, i) => call(id, signed(i)));
  const textPart: JsonObject = message === undefined ? {} : { content: message };
  if (!stream)
    return chatReply({ ...thought, ...textPart, ...(calls > 0 ? { tool_calls: made } : {}) });
  const indexed = made.map((one, index) => ({ index, ...one }));
  const deltas = [thought, textPart, ...(calls > 0 ? [{ tool_calls: indexed }] : [])];
  return chatStream(
    deltas.filter((delta) => Object.keys(delta).length > 0),
    calls > 0 ? 'tool_calls' : 'stop',
  );
}

async function run(list: readonly Step[]): Promise<readonly (readonly [number, JsonObject[]])[]> {
  const session = new Session();
  const sent: [number, JsonObject[]][] = [];
  for (const [n, step] of list.entries()) {
    const body = await session.ask(VENDORS[step.vendor]!, answer(step, n));
    sent.push([step.vendor, body.messages as JsonObject[]]);
    if (step.calls === 0) session.say(`question ${n}`);
  }
  return sent;
}

describe('a session that changes its vendor at any time', () => {
  test('each vendor gets a history that begins with its previous one', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const last = new Map<number, JsonObject[]>();
        for (const [vendor, messages] of await run(list)) {
          const before = last.get(vendor) ?? [];
          expect(messages.slice(0, before.length)).toEqual(before);
          last.set(vendor, messages);
        }
      }),
      { numRuns: 60 },
    );
  }, 60_000);

  test('each vendor gets everything it made and wants back, and nothing from another vendor', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const sent = await run(list);
        for (const [at, [vendor, messages]] of sent.entries()) {
          const text = JSON.stringify(messages);
          for (const [n, step] of list.slice(0, at).entries()) {
            const secret = `secret-${step.vendor}-${n}`;
            const made = step.reasons && (step.vendor !== 2 || step.calls > 0);
            expect(text.includes(secret)).toBe(made && vendor === step.vendor);
          }
        }
      }),
      { numRuns: 60 },
    );
  }, 60_000);

  test('a repeated request is equal to the first', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        expect(await run(list)).toEqual(await run(list));
      }),
      { numRuns: 15 },
    );
  }, 60_000);
});
