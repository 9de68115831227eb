/** Recorded traffic passes the linters, except for the known deviations listed here. */

import { describe, expect, test } from 'bun:test';
import { lintRequest as messagesRequest } from '../../../src/codecs/anthropic-messages/lint/lint-request.ts';
import { lintStream as messagesStream } from '../../../src/codecs/anthropic-messages/lint/lint-stream.ts';
import { lintRequest as chatRequest } from '../../../src/codecs/openai-chat/lint/lint-request.ts';
import { lintStream as chatStream } from '../../../src/codecs/openai-chat/lint/lint-stream.ts';
import { lintRequest as responsesRequest } from '../../../src/codecs/openai-responses/lint/lint-request.ts';
import { lintStream as responsesStream } from '../../../src/codecs/openai-responses/lint/lint-stream.ts';
import { type Json, parseJson } from '../../../src/lib/json/json.ts';
import {
  type Fixture,
  fixtureBytes,
  fixtures,
  fixtureText,
  haveFixtures,
  unlessRecorded,
} from '../../support/fixtures.ts';
import { lintBytes, rulesOf } from './rules.ts';

const of = (protocol: string) =>
  fixtures((row) => row.protocol.replace(/-vertex$/, '') === protocol);
const folder = (row: Fixture) => row.file.split('/')[0]!;

const LINTERS = {
  messages: { request: messagesRequest, stream: messagesStream },
  chat: { request: chatRequest, stream: chatStream },
  responses: { request: responsesRequest, stream: responsesStream },
} as const;
type Name = keyof typeof LINTERS;

/** Streams that the index marks as valid and that still break a rule. */
const STREAMS: Readonly<Record<string, readonly string[]>> = {
  // Handmade: the block of a call never ends.
  'anthropic-sdk-typescript__incomplete_partial_json_response.sse': ['block-unclosed'],
  // Copilot has another id in every event.
  'ai__github-copilot-id-rotation.1.sse': ['item-id-changed', 'id-changed'],
};

/** OpenAI's rules that other Chat vendors break, and a reused id that Anthropic once accepted. */
const DIALECTS: Readonly<Record<string, readonly string[]>> = {
  'anthropic-messages': ['duplicate-call-id'],
  'deepseek-responses': ['item-id-prefix'],
  'huggingface-chat': ['tools-empty'],
  'mistral-chat': ['tool-calls-empty', 'part-type', 'tool-type', 'content-empty', 'tool-choice'],
  'ollama-chat': ['part-type'],
  'openrouter-chat': ['part-type', 'tool-type'],
};

describe('recorded streams', () => {
  for (const [name, least] of [
    ['messages', 130],
    ['chat', 200],
    ['responses', 160],
  ] as const satisfies readonly (readonly [Name, number])[]) {
    test.skipIf(!haveFixtures)(
      `${name}: sound ones are clean, unsound ones are not${unlessRecorded}`,
      () => {
        let clean = 0;
        for (const row of of(name).filter(({ kind }) => kind === 'sse')) {
          const bytes = fixtureBytes(row.file);
          const found = rulesOf(lintBytes(LINTERS[name].stream(), bytes));
          const known = STREAMS[row.file.split('/')[1]!];
          const sound = row.anomalies.length === 0 && row.sdk_accumulator === 'ok';
          if (known !== undefined) expect([row.file, found]).toEqual([row.file, [...known]]);
          else if (sound) expect([row.file, found]).toEqual([row.file, []]);
          if (found.length === 0) clean++;
        }
        expect(clean).toBeGreaterThan(least);
      },
    );
  }

  test.skipIf(!haveFixtures)(
    `message_start repeated or spliced in by relays is found${unlessRecorded}`,
    () => {
      const broken = of('messages').filter(({ anomalies }) =>
        anomalies.some((anomaly) => anomaly.includes('message_start')),
      );
      expect(broken.length).toBeGreaterThan(3);
      for (const row of broken) {
        const bytes = fixtureBytes(row.file);
        const found = rulesOf(lintBytes(messagesStream(), bytes));
        expect(found.some((rule) => rule === 'start-once' || rule === 'after-end')).toBe(true);
      }
    },
  );
});

describe('recorded requests that were accepted', () => {
  for (const [name, least] of [
    ['messages', 450],
    ['chat', 850],
    ['responses', 500],
  ] as const satisfies readonly (readonly [Name, number])[]) {
    test.skipIf(!haveFixtures)(
      `${name}: clean, but for the dialects of other vendors${unlessRecorded}`,
      () => {
        let clean = 0;
        for (const row of of(name)) {
          if (row.request === null || (row.status ?? 200) !== 200) continue;
          const body = parseJson(fixtureText(row.request)) as Json;
          const found = rulesOf(LINTERS[name].request(body));
          const dialect = DIALECTS[folder(row)] ?? [];
          const unknown = found.filter((rule) => !dialect.includes(rule));
          expect([row.request, unknown]).toEqual([row.request, []]);
          if (found.length === 0) clean++;
        }
        expect(clean).toBeGreaterThan(least);
      },
    );
  }
});
