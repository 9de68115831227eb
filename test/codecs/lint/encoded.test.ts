/** Recorded streams, encoded for clients of every protocol, pass the linters. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { lintStream as lintMessages } from '../../../src/codecs/anthropic-messages/lint/lint-stream.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { lintStream as lintChat } from '../../../src/codecs/openai-chat/lint/lint-stream.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { lintStream as lintResponses } from '../../../src/codecs/openai-responses/lint/lint-stream.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Conversation, ProtocolName } from '../../../src/conversation/types.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { lintBytes, rulesOf } from './rules.ts';

const FIXTURES = fileURLToPath(new URL('../../../../shared/fixtures', import.meta.url));
const there = existsSync(`${FIXTURES}/index.json`);
const when = there ? test : test.skip;
const unless = there ? '' : ' (SKIPPED: the recorded exchanges are not here)';

const CODECS = {
  messages: { protocol: anthropicMessages, lint: lintMessages },
  chat: { protocol: openaiChat, lint: lintChat },
  responses: { protocol: openaiResponses, lint: lintResponses },
} as const;
type Name = keyof typeof CODECS;

interface Row {
  readonly file: string;
  readonly protocol: string;
  readonly kind: string;
  readonly anomalies: readonly string[];
}
const rows: readonly Row[] = there
  ? (JSON.parse(readFileSync(`${FIXTURES}/index.json`, 'utf8')) as Row[])
  : [];

/** Handmade: a call whose arguments break off, which no codec completes. */
const BROKEN = 'incomplete_partial_json_response.sse';

const request: Conversation = {
  model: 'm',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: true, streamUsage: true },
};

/** The stream of one protocol as a client of another gets it; undefined where the vendor broke off. */
function translated(bytes: Uint8Array, from: Name, to: Name): string | undefined {
  const notes = new Notes();
  const protocol: ProtocolName = CODECS[from].protocol.name;
  const target = { provider: 'v', model: 'm', protocol, profile: { name: 'none' } };
  const decoder = CODECS[from].protocol.decodeStream({ sent: request, target, notes });
  const encoder = CODECS[to].protocol.encodeStream({
    request: request,
    requestId: 'req_1_abcdef',
    provider: 'v',
    notes,
  });
  const parser = new SseParser();
  const events = [...parser.push(bytes), ...parser.end()].flatMap((frame) => decoder.push(frame));
  const all = [...events, ...decoder.end()];
  if (all.at(-1)?.type !== 'end') return undefined;
  return all.map((event) => encoder.event(event)).join('');
}

describe('encoded streams', () => {
  for (const from of Object.keys(CODECS) as Name[]) {
    for (const to of Object.keys(CODECS) as Name[]) {
      when(`${from} to ${to}: no finding in any stream${unless}`, () => {
        let checked = 0;
        for (const row of rows) {
          if (row.kind !== 'sse' || row.protocol !== from || row.anomalies.length > 0) continue;
          if (row.file.endsWith(BROKEN)) continue;
          const text = translated(readFileSync(`${FIXTURES}/${row.file}`), from, to);
          if (text === undefined) continue;
          const found = lintBytes(CODECS[to].lint(), new TextEncoder().encode(text));
          expect([row.file, rulesOf(found)]).toEqual([row.file, []]);
          checked++;
        }
        expect(checked).toBeGreaterThan(100);
      });
    }
  }
});
