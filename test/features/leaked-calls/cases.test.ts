/** Every constructed leak, at every possible split of the stream. */

import { describe, expect, test } from 'bun:test';
import type { Tool } from '../../../src/conversation/types.ts';
import { FAMILIES } from '../../../src/features/leaked-calls/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { leakCases } from '../../support/fixtures.ts';
import { characters, eventsOf, type Part, type Played, play } from './transcript.ts';

interface Case {
  readonly id: string;
  readonly text: string;
  readonly reasoning?: string;
  readonly tools: readonly { readonly name: string; readonly parameters: JsonObject }[];
  readonly chunks: readonly string[];
  readonly expect: {
    readonly kind: string;
    readonly content?: string;
    readonly content_any?: readonly string[];
    readonly reasoning?: string;
    readonly calls: readonly { readonly name: string; readonly arguments: unknown }[];
  };
}

const cases = leakCases() as unknown as readonly Case[];

/** Text that must never be visible once tools were offered, except in quotations. */
const MARKUP =
  /DSML|<\/?(?:invoke|function_calls|tool_calls?|function=|parameter|arg_key|arg_value|minimax)|<[|｜]|\]<\]|\[TOOL_CALLS\]|tool_calls"|rcc\.tool/;

function check(it: Case, chunks: readonly string[], how: string): string | undefined {
  // A case describes one channel; `chunks` splits the channel with the leak.
  const parts: Part[] = it.reasoning === undefined ? [] : [{ reasoning: chunks }];
  if (it.reasoning === undefined) parts.push({ text: chunks });
  else if (it.text !== '') parts.push({ text: [it.text] });
  const tools = it.tools.map(
    ({ name, parameters }): Tool => ({ type: 'function', name, schema: parameters }),
  );
  // The prompt held the opener; only the model's profile can know this.
  const profile = it.id === 'think__no-open' ? { leakFamilies: FAMILIES } : {};
  const events = eventsOf(parts);
  const played = play(events, { tools, profile });
  const wrong = verdict(it, played);
  return wrong === undefined ? undefined : `${it.id} (${how}): ${wrong}`;
}

function verdict(it: Case, played: Played): string | undefined {
  const { kind, calls, content, content_any, reasoning } = it.expect;
  if (!Bun.deepEquals(played.calls, calls, true)) return `calls ${JSON.stringify(played.calls)}`;
  const text = played.text.trim();
  if (content !== undefined && text !== content) return `content ${JSON.stringify(text)}`;
  if (content_any !== undefined && !content_any.includes(text)) {
    return `content ${JSON.stringify(text)}`;
  }
  if (reasoning !== undefined && played.reasoning.trim() !== reasoning) {
    return `reasoning ${JSON.stringify(played.reasoning)}`;
  }
  if (kind === 'unchanged') return played.same ? undefined : 'not the events that came';
  if (MARKUP.test(text)) return `markup in ${JSON.stringify(text)}`;
  if (calls.length > 0 && played.finish !== 'tool-calls') return `finish ${played.finish}`;
  if (calls.length > 0 && !played.notes.includes('leaked_call_recovered')) return 'no note';
  if (kind === 'truncated' && played.finish !== 'length') return `finish ${played.finish}`;
  if (kind === 'no-call' && !played.notes.includes('leaked_markup_removed')) return 'no note';
  return undefined;
}

const failures = (splits: (it: Case, text: string) => Iterable<readonly [string[], string]>) =>
  cases.flatMap((it) => {
    const text = it.reasoning ?? it.text;
    for (const [chunks, how] of splits(it, text)) {
      const wrong = check(it, chunks, how);
      if (wrong !== undefined) return [wrong];
    }
    return [];
  });

const suite = cases.length > 0 ? describe : describe.skip;

suite(
  cases.length > 0
    ? 'constructed leaks'
    : 'SKIPPED: the constructed leaks are not beside this checkout',
  () => {
    test('the cases cover many families', () => {
      expect(cases.length).toBeGreaterThan(150);
    });

    test('a reply in one piece', () => {
      expect(failures((_, text) => [[[text], 'whole']])).toEqual([]);
    });

    test('token by token', () => {
      expect(failures((it) => [[[...it.chunks], 'tokens']])).toEqual([]);
    });

    test('character by character', () => {
      expect(failures((_, text) => [[characters(text), 'characters']])).toEqual([]);
    });

    test('one cut, at every position', () => {
      const cuts = function* (_: Case, text: string): Generator<readonly [string[], string]> {
        for (let at = 1; at < text.length; at++) {
          yield [[text.slice(0, at), text.slice(at)], `cut at ${at}`];
        }
      };
      expect(failures(cuts)).toEqual([]);
    });
  },
);
