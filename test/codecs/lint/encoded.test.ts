/** Recorded streams, encoded for clients of every protocol, pass the linters. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { lintStream as lintMessages } from '../../../src/codecs/anthropic-messages/lint/lint-stream.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { lintStream as lintChat } from '../../../src/codecs/openai-chat/lint/lint-stream.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { lintStream as lintResponses } from '../../../src/codecs/openai-responses/lint/lint-stream.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Conversation, ProtocolName } from '../../../src/conversation/types.ts';
import { decodeCut } from '../../support/chunkings.ts';
import { fixtureBytes, fixtures, haveFixtures, unlessRecorded } from '../../support/fixtures.ts';
import { lintBytes, rulesOf } from './rules.ts';

const CODECS = {
  messages: { protocol: anthropicMessages, lint: lintMessages },
  chat: { protocol: openaiChat, lint: lintChat },
  responses: { protocol: openaiResponses, lint: lintResponses },
} as const;
type Name = keyof typeof CODECS;

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
  const all = decodeCut(decoder, bytes);
  if (all.at(-1)?.type !== 'end') return undefined;
  return all.map((event) => encoder.event(event)).join('');
}

describe('encoded streams', () => {
  for (const from of Object.keys(CODECS) as Name[]) {
    for (const to of Object.keys(CODECS) as Name[]) {
      test.skipIf(!haveFixtures)(
        `${from} to ${to}: no finding in any stream${unlessRecorded}`,
        () => {
          let checked = 0;
          for (const row of fixtures()) {
            if (row.kind !== 'sse' || row.protocol !== from || row.anomalies.length > 0) continue;
            if (row.file.endsWith(BROKEN)) continue;
            const text = translated(fixtureBytes(row.file), from, to);
            if (text === undefined) continue;
            const found = lintBytes(CODECS[to].lint(), new TextEncoder().encode(text));
            expect([row.file, rulesOf(found)]).toEqual([row.file, []]);
            checked++;
          }
          expect(checked).toBeGreaterThan(100);
        },
      );
    }
  }
});
