/** Reads the linters' rule names from their sources, and splits streams into frames. */

import { readdirSync, readFileSync } from 'node:fs';
import type { Finding, StreamLinter } from '../../../src/codecs/lint.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';

const REPORT = /\breport\(\s*(?:`[^`]*`|'[^']*'|\w+)\s*,\s*([^,]+),/g;

/** Rules named in the linters of one protocol whose files match. */
export function rulesIn(room: string, files: RegExp): readonly string[] {
  const folder = new URL(`../../../src/codecs/${room}/lint/`, import.meta.url);
  const rules = new Set<string>();
  for (const name of readdirSync(folder)) {
    if (!name.startsWith('lint-') || !files.test(name)) continue;
    const text = readFileSync(new URL(name, folder), 'utf8');
    // report(place, rule, words): the rule is a word, or one of two.
    for (const [, rule] of text.matchAll(REPORT)) {
      for (const [, word] of rule!.matchAll(/'([a-z-]+)'/g)) rules.add(word!);
    }
  }
  return [...rules].sort();
}

export const sse = (events: readonly (JsonObject | string)[], named: boolean): Uint8Array =>
  new TextEncoder().encode(
    events
      .map((event) => {
        if (typeof event === 'string') return `data: ${event}\n\n`;
        const head = named ? `event: ${String(event.type)}\n` : '';
        return `${head}data: ${JSON.stringify(event)}\n\n`;
      })
      .join(''),
  );

/** All findings of a stream. */
export function lintBytes(linter: StreamLinter, bytes: Uint8Array): readonly Finding[] {
  const parser = new SseParser();
  const found = [...parser.push(bytes), ...parser.end()].flatMap((frame) => linter.push(frame));
  return [...found, ...linter.end()];
}

export const rulesOf = (found: readonly Finding[]) => [...new Set(found.map(({ rule }) => rule))];
