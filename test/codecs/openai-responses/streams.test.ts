/** Every recorded stream decodes the same at every chunk split, and re-encodes for the official client. */

import { afterAll, describe, expect, setSystemTime, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import type { Block, Conversation } from '../../../src/conversation/types.ts';
import { type SseFrame, SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { bytewise, chunkings, everySplit } from '../../support/chunkings.ts';
import { haveFixtures } from '../../support/fixtures.ts';
import {
  bodyOf,
  client,
  conversation,
  frames,
  plain,
  recorded,
  requestOf,
  upstream,
} from './material.ts';
import { readBySdk } from './sdk.ts';
import { checkSkeleton } from './skeleton.ts';

if (!haveFixtures) test.skip('recorded streams: SKIPPED, ../shared/fixtures is absent', () => {});

function decode(parts: readonly SseFrame[], sent: Conversation): readonly StreamEvent[] {
  const decoder = openaiResponses.decodeStream(upstream(sent));
  return [...parts.flatMap((frame) => decoder.push(frame)), ...decoder.end()];
}

/** The order that events.ts promises to every encoder. */
function checkOrder(events: readonly StreamEvent[], name: string): void {
  expect(events[0]?.type, name).toBe('start');
  let open = false;
  let next = 0;
  for (const event of events.slice(1)) {
    expect(event.type, name).not.toBe('start');
    if (event.type === 'block-start') {
      expect([open, event.index], name).toEqual([false, next++]);
      open = true;
    } else if (event.type === 'block-stop') {
      expect(open, name).toBe(true);
      open = false;
    } else if ('index' in event) expect([open, event.index], name).toEqual([true, next - 1]);
  }
  expect(open, name).toBe(false);
  const last = events.slice(-2).map((event) => event.type);
  expect(last.at(-1) === 'error' || last.join(' ') === 'finish end', `${name}: ${last}`).toBe(true);
}

/** A block's content without its origin; newlines between summary parts count as one kind. */
function contentOf(block: Block): unknown {
  const { wire: _, residue: __, ...rest } = block as Block & { residue?: unknown };
  if (rest.type === 'text') {
    return { ...rest, citations: rest.citations?.map(({ wire: ___, ...c }) => c) };
  }
  // The vendor encrypts anew for every event, so the same payload never comes twice.
  if (rest.type === 'reasoning' && rest.sealed) {
    return { ...rest, sealed: { ...rest.sealed, value: rest.sealed.value !== '' } };
  }
  return rest;
}

const streams = recorded.filter((row) => row.kind === 'sse' && row.status === 200);
const isWhole = (text: string) => text.split('"type":"response.created"').length <= 2;

/** A sanitised recording: the texts of its `done` events differ from its deltas. */
function contradictsItself(text: string): boolean {
  let deltas = '';
  let dones = '';
  for (const frame of frames(text)) {
    if (frame.data?.startsWith('{') !== true) continue;
    const data = JSON.parse(frame.data) as JsonObject;
    if (data.type === 'response.output_text.delta') deltas += data.delta;
    if (data.type === 'response.output_text.done') dones += data.text;
  }
  return dones !== '' && deltas !== dones;
}

afterAll(() => {
  setSystemTime();
});

/** Chunkings with about as many pieces as a stream has words. */
const SMALL_PIECES = new Set(chunkings.filter((way) => way.cut(new Uint8Array(1000)).length > 100));

describe.skipIf(!haveFixtures)('recorded streams', () => {
  test('more than a hundred streams are available', () => {
    expect(streams.length).toBeGreaterThan(150);
  });

  test('every stream decodes to the promised order of events', () => {
    for (const row of streams) {
      const text = bodyOf(row);
      if (isWhole(text)) checkOrder(decode(frames(text), conversation(requestOf(row))), row.file);
    }
  });

  test('every stream decodes to the response object in its last event', () => {
    let compared = 0;
    for (const row of streams) {
      const text = bodyOf(row);
      const last = frames(text)
        .flatMap((f) => (f.data?.startsWith('{') ? [JSON.parse(f.data) as JsonObject] : []))
        .findLast((d) => d.type === 'response.completed' || d.type === 'response.incomplete');
      if (last === undefined || !isWhole(text) || contradictsItself(text)) continue;
      const sent = conversation(requestOf(row));
      const fold = new ReplyBuilder();
      for (const event of decode(frames(text), sent)) fold.push(event);
      const reply = openaiResponses.decodeReply(last.response as JsonObject, upstream(sent));
      expect(plain(fold.reply.blocks.map(contentOf)), row.file).toEqual(
        plain(reply.blocks.map(contentOf)),
      );
      expect(fold.reply.finish, row.file).toBe(reply.finish);
      expect(fold.reply.usage, row.file).toEqual(reply.usage);
      expect(fold.complete, row.file).toBe(true);
      compared++;
    }
    expect(compared).toBeGreaterThan(150);
  });

  test('every chunk split gives the same events', () => {
    for (const row of streams) {
      const bytes = new TextEncoder().encode(bodyOf(row));
      const sent = conversation(requestOf(row));
      const expected = JSON.stringify(decode(frames(bodyOf(row)), sent));
      for (const way of chunkings) {
        if (way === bytewise && bytes.length > 10_000) continue;
        if (bytes.length > 50_000 && SMALL_PIECES.has(way)) continue;
        const parser = new SseParser();
        const got = way.cut(bytes).flatMap((chunk) => parser.push(chunk));
        const events = JSON.stringify(decode([...got, ...parser.end()], sent));
        expect(events === expected, `${row.file}, ${way.name}`).toBe(true);
      }
    }
  }, 60_000);

  test('a small stream gives the same events at every single split', () => {
    const row = streams
      .map((one) => ({ one, bytes: new TextEncoder().encode(bodyOf(one)) }))
      .sort((a, b) => a.bytes.length - b.bytes.length)[0]!;
    const sent = conversation(requestOf(row.one));
    const expected = decode(frames(bodyOf(row.one)), sent);
    for (const way of everySplit(row.bytes)) {
      const parser = new SseParser();
      const got = way.cut(row.bytes).flatMap((chunk) => parser.push(chunk));
      expect(decode([...got, ...parser.end()], sent), way.name).toEqual(expected);
    }
  }, 60_000);

  test('every re-encoded stream has the right structure, satisfies the official client and equals the whole reply', async () => {
    setSystemTime(new Date('2026-03-01T12:00:00Z'));
    let read = 0;
    for (const row of streams) {
      const text = bodyOf(row);
      if (!isWhole(text)) continue;
      const request = conversation(requestOf(row));
      const events = decode(frames(text), request);
      const encoder = openaiResponses.encodeStream(client(request));
      const sse = events.map((event) => encoder.event(event)).join('');
      const last = checkSkeleton(sse, row.file);
      if (events.at(-1)?.type === 'error') {
        expect(last.status, row.file).toBe('failed');
        continue;
      }
      const accumulated = plain(await readBySdk(sse)) as JsonObject;
      const { output_text: _, output_parsed: __, output, ...sdk } = accumulated;
      const bare = (output as readonly JsonObject[]).map(withoutParsed);
      expect(plain({ ...sdk, output: bare }), row.file).toEqual(plain(last));

      const fold = new ReplyBuilder();
      for (const event of events) fold.push(event);
      const whole = openaiResponses.encodeReply(fold.reply, client(request));
      expect(meaning(whole), row.file).toEqual(meaning(last));
      const wholeText = openaiResponses.encodeReplyText(fold.reply, client(request));
      expect(wholeText, row.file).toBe(JSON.stringify(whole));
      read++;
    }
    expect(read).toBeGreaterThan(150);
  }, 60_000);

  test('the decoder never ends a cut stream', () => {
    for (const row of streams) {
      const text = bodyOf(row);
      if (!isWhole(text)) continue;
      const all = frames(text);
      const cut = all.slice(0, Math.floor(all.length / 2));
      const events = decode(cut, conversation(requestOf(row)));
      expect(
        events.map((event) => event.type),
        row.file,
      ).not.toContain('end');
      const opened = events.filter((event) => event.type === 'block-start').length;
      expect(events.filter((event) => event.type === 'block-stop').length, row.file).toBe(opened);
    }
  });
});

/** The SDK's helper adds `parsed` to what it returns. */
function withoutParsed(item: JsonObject): JsonObject {
  const { parsed: _, parsed_arguments: __, ...rest } = item;
  if (!Array.isArray(rest.content)) return rest;
  const content = (rest.content as readonly JsonObject[]).map(({ parsed: ___, ...part }) => part);
  return { ...rest, content };
}

/** Summary parts are joined when a stream is folded, and log-probabilities lose their part: both by design. */
function meaning(response: JsonObject): unknown {
  const output = (response.output as readonly JsonObject[]).map((item) => {
    if (item.type !== 'reasoning') return item;
    const parts = item.summary as readonly { text: string }[];
    return { ...item, summary: parts.map((part) => part.text).join('\n\n') };
  });
  return plain({ ...response, output });
}
