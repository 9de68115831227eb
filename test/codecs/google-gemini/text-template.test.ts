/** Chunks that are read without being parsed give the same events as chunks that are. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { decodeStream } from '../../../src/codecs/google-gemini/stream/decode-stream.ts';
import { textTemplate } from '../../../src/codecs/google-gemini/stream/text-template.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { isObject, type JsonObject } from '../../../src/lib/json/json.ts';
import { fixtureBytes, haveFixtures } from '../../support/fixtures.ts';
import { rows, upstream } from './support.ts';

const frameOf = (data: string) => {
  const bytes = new Uint8Array(0);
  return { event: '', data, bytes, from: 0, to: 0 };
};

/** The events of all chunks: with the shortcut, or each of them parsed. Calls have ids of their own. */
function eventsOf(chunks: readonly string[], parsed: boolean): string {
  const decoder = decodeStream(upstream());
  const events: StreamEvent[] = [];
  for (const data of chunks) {
    if (!parsed) events.push(...decoder.push(frameOf(data)));
    else {
      const chunk = JSON.parse(data) as unknown;
      if (isObject(chunk)) events.push(...decoder.chunk(chunk));
    }
  }
  events.push(...decoder.end());
  return JSON.stringify(events).replace(/call_[A-Za-z0-9]+/g, 'ID');
}

const part = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ text: fc.oneof(fc.string({ unit: 'binary' }), fc.string()) }),
  },
  fc.record({ text: fc.string(), thought: fc.constant(true) }),
  fc.record({ text: fc.string(), thoughtSignature: fc.constant('c2ln') }),
  fc.constant({ functionCall: { name: 'f', args: { a: 1 } } }),
);
const number = fc.oneof(fc.nat(2000), fc.constantFrom(0, -1, 1.5, 0.05, 1e21));
const chunk = fc
  .record({
    parts: fc.array(part, { minLength: 1, maxLength: 2 }),
    finish: fc.option(fc.constantFrom('STOP', 'MAX_TOKENS'), { freq: 20, nil: undefined }),
    tokens: fc.option(number, { nil: undefined }),
    index: fc.constantFrom(0, 0, 0, 0, 1),
    time: fc.constantFrom('2026-01-05T10:00:01.05Z', '2026-01-12T10:00:01.5Z'),
    spaced: fc.boolean(),
  })
  .map(({ parts, finish, tokens, index, time, spaced }) => {
    const value: JsonObject = {
      candidates: [
        {
          content: { parts: parts as JsonObject[], role: 'model' },
          ...(finish !== undefined && { finishReason: finish }),
          index,
        },
      ],
      ...(tokens !== undefined && {
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: tokens, totalTokenCount: 99 },
      }),
      modelVersion: 'gemini-2.5-pro',
      createTime: time,
      responseId: 'r1',
    };
    const text = JSON.stringify(value);
    return spaced ? JSON.stringify(value, undefined, 1).replaceAll('\n', '') : text;
  });

describe('the shortcut for text', () => {
  test('says what parsing says, whatever chunks are mixed', () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 30, size: 'max' }), (chunks) => {
        expect(eventsOf(chunks, false)).toBe(eventsOf(chunks, true));
      }),
      { numRuns: 500 },
    );
  });

  test.skipIf(!haveFixtures)(
    'says what parsing says of every recorded stream, and is taken',
    () => {
      let spliced = 0;
      for (const row of rows.filter(({ kind }) => kind === 'sse')) {
        const parser = new SseParser();
        const frames = [...parser.push(fixtureBytes(row.file)), ...parser.end()];
        const chunks = frames.flatMap(({ data }) => (data ? [data] : []));
        if (!chunks.every((data) => data.startsWith('{'))) continue;
        expect([row.file, eventsOf(chunks, false)]).toEqual([row.file, eventsOf(chunks, true)]);
        const template = textTemplate();
        for (const data of chunks) {
          if (template.read(data, '') !== undefined) spliced++;
          else template.learn(data, '', JSON.parse(data) as JsonObject);
        }
      }
      expect(spliced).toBeGreaterThan(40);
    },
  );

  test('the index of the candidate is no count', () => {
    const of = (index: number, tokens: number) =>
      `{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":${index}}],"usageMetadata":{"totalTokenCount":${tokens}}}`;
    const template = textTemplate();
    for (const data of [of(0, 1), of(0, 2)]) template.learn(data, '', JSON.parse(data));
    expect(template.read(of(0, 3), '')).toBe('a');
    expect(template.takeLast()).toMatchObject({ usageMetadata: { totalTokenCount: 3 } });
    expect(template.read(of(1, 3), '')).toBeUndefined();
  });
});
