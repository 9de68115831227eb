/** No recorded body of a vendor shows a sentence once its texts are blanked, whatever members the vendor has. */

import { expect } from 'bun:test';
import { type Json, parseJson } from '../../../src/lib/json/json.ts';
import { blankBody } from '../../support/blank-body.ts';
import { fixtureBytes, fixtures, fixtureTest } from '../../support/fixtures.ts';

/** What vendors say of a failure, and of their own routing: without it nobody could tell what went wrong. */
const VENDORS_WORDS = new Set([
  'message',
  'detail',
  'error',
  'explanation',
  'finishMessage',
  'blockReasonMessage',
  'internalReasoning',
  'planningReasoning',
  // OpenRouter's name of a provider, and the name of a member in an MCP tool's schema.
  'provider',
  'title',
]);
/** Three words in a row; blanked ones are of x alone. */
const SENTENCE = /(?:\b(?!x+\b)[A-Za-z]{2,}[\s,]+){2}(?!x+\b)[A-Za-z]{2,}/i;

/** The members that still hold a sentence, and which. */
function* sentences(value: Json, key = ''): Generator<readonly [key: string, text: string]> {
  if (typeof value === 'string') {
    if (!VENDORS_WORDS.has(key) && SENTENCE.test(value)) yield [key, value.slice(0, 80)];
  } else if (Array.isArray(value)) {
    for (const one of value as Json[]) yield* sentences(one, key);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, one] of Object.entries(value)) yield* sentences(one as Json, name);
  }
}

fixtureTest('recorded answers and their requests, blanked, hold no sentence', () => {
  const found: unknown[] = [];
  let bodies = 0;
  let said = 0;
  for (const { file, kind, request } of fixtures(
    ({ protocol, kind: one }) => one !== 'jsonl' && !protocol.endsWith('other'),
  )) {
    for (const name of [file, ...(request ? [request] : [])]) {
      const sse = name === file && kind === 'sse';
      const parts = (bytes: Uint8Array) => {
        const text = Buffer.from(bytes).toString();
        return sse
          ? text.split('\n').flatMap((line) => /^data: ?(\{.*)/.exec(line)?.[1] ?? [])
          : [text];
      };
      const values = (bytes: Uint8Array) =>
        parts(bytes).flatMap((part) => {
          try {
            return [parseJson(part)];
          } catch {
            return [];
          }
        });
      const raw = fixtureBytes(name);
      said += values(raw).flatMap((value) => [...sentences(value)]).length;
      bodies++;
      for (const value of values(blankBody(raw, sse, ['texts']))) {
        for (const one of sentences(value)) found.push([name, ...one]);
      }
    }
  }
  expect(found).toEqual([]);
  expect([bodies > 1000, said > 1000]).toEqual([true, true]);
});
