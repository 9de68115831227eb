/** Laws over every recorded Messages stream and reply, checked with the official SDK. */

import { describe, expect, test } from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Reply, StreamEvent } from '../../../src/conversation/events.ts';
import { ReplyBuilder, replyEvents } from '../../../src/conversation/reply-builder.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../../src/lib/json/json.ts';
import { expectPlain } from '../../support/plain-reply.ts';
import { ABSENT, bytes, client, conversationOf, eventsOf, recorded, upstream } from './recorded.ts';

const suite = ABSENT === undefined ? describe : describe.skip;
const streams = recorded('sse');
const replies = recorded('json').filter(({ status }) => status < 400);

function encodeAll(events: Iterable<StreamEvent>, conversation?: Conversation): string {
  const encoder = anthropicMessages.encodeStream(client(conversation));
  let text = '';
  for (const event of events) text += encoder.event(event);
  return text;
}

function fold(events: Iterable<StreamEvent>): Reply {
  const folded = new ReplyBuilder();
  for (const event of events) folded.push(event);
  return folded.reply;
}

/** The message that the official SDK reads from a stream. */
async function accumulated(text: string): Promise<JsonObject> {
  const sdk = new Anthropic({
    apiKey: 'sk-test',
    baseURL: 'http://sdk.test',
    maxRetries: 0,
    fetch: async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const stream = sdk.beta.messages.stream({ model: 'm', max_tokens: 1, messages: [] });
  return JSON.parse(JSON.stringify(await stream.finalMessage())) as JsonObject;
}

/** Checks what the SDK does not: index numbers without gaps, and closed lists. */
function checkOrder(text: string, file: string): void {
  const parser = new SseParser();
  const types: string[] = [];
  let open = -1;
  let next = 0;
  for (const frame of parser.push(bytes(text))) {
    const event = JSON.parse(frame.data ?? 'null') as JsonObject;
    expect(String(event.type), file).toBe(frame.event);
    types.push(frame.event);
    if (frame.event === 'content_block_start') {
      expect(open, `${file}: a block opens inside another`).toBe(-1);
      expect(event.index, file).toBe(next);
      open = next++;
    } else if (frame.event === 'content_block_delta') {
      expect(event.index, file).toBe(open);
    } else if (frame.event === 'content_block_stop') {
      expect(event.index, file).toBe(open);
      open = -1;
    }
  }
  expect(parser.end(), file).toEqual([]);
  expect(types[0], file).toBe('message_start');
  expect(types.at(-1), file).toBe('message_stop');
  expect(types.at(-2), file).toBe('message_delta');
  for (const once of ['message_start', 'message_delta', 'message_stop']) {
    expect(types.filter((type) => type === once).length, `${file} ${once}`).toBe(1);
  }
}

suite(ABSENT ?? 'every recorded stream', () => {
  test('the expected number of streams is available', () => {
    expect(streams.length).toBeGreaterThan(140);
  });

  test('events keep their order, and the finish comes before the end', () => {
    for (const { file, text, anomalies } of streams) {
      const events = eventsOf([bytes(text)]);
      if (events.at(-1)?.type === 'error') continue;
      let open = false;
      let next = 0;
      for (const event of events) {
        if (event.type === 'block-start') {
          expect(open, file).toBe(false);
          expect(event.index, file).toBe(next++);
          open = true;
        } else if (event.type === 'block-stop') open = false;
        else if (event.type === 'delta') expect(event.index, file).toBe(next - 1);
      }
      expect(open, file).toBe(false);
      expect(events[0]?.type, file).toBe('start');
      const whole = text.includes('"message_stop"') || anomalies.length > 0;
      if (whole) expect(events.at(-1)?.type, file).toBe('end');
      const finish = events.findIndex((event) => event.type === 'finish');
      const end = events.findIndex((event) => event.type === 'end');
      if (end >= 0) expect(finish, file).toBeLessThan(end);
    }
  });

  test('every chunk split gives the same events', () => {
    for (const { file, text } of streams) {
      const raw = bytes(text);
      const expected = JSON.stringify(eventsOf([raw]));
      fc.assert(
        fc.property(fc.array(fc.nat(raw.length), { maxLength: 12 }), (cuts) => {
          const at = [0, ...cuts.sort((a, b) => a - b), raw.length];
          const chunks = at.slice(1).map((end, i) => raw.subarray(at[i], end));
          return JSON.stringify(eventsOf(chunks)) === expected;
        }),
        { numRuns: 4, seed: raw.length },
      );
      if (raw.length > 3000) continue;
      const single = Array.from(raw, (_, i) => raw.subarray(i, i + 1));
      expect(JSON.stringify(eventsOf(single)), file).toBe(expected);
    }
  });

  test('the SDK reads the re-encoded events as the decoded ones', async () => {
    let checked = 0;
    for (const { file, text, request } of streams) {
      const conversation = conversationOf(request);
      const events = eventsOf([bytes(text)], upstream(conversation));
      if (events.at(-1)?.type !== 'end') continue;
      if (isCut(fold(events))) continue;
      checked++;
      const again = encodeAll(events, conversation);
      checkOrder(again, file);
      const reply = fold(events);
      const whole = anthropicMessages.encodeReply(reply, client(conversation));
      const message = await accumulated(again);
      expect(message.content, file).toEqual(whole.content);
      for (const key of ['id', 'model', 'role', 'type', 'stop_reason', 'stop_sequence']) {
        // The SDK itself renames the model when a server-side fallback took over.
        if (key === 'model' && text.includes('"type":"fallback"')) continue;
        expect(message[key], `${file} ${key}`).toEqual(whole[key]);
      }
      expect(counts(message.usage), file).toEqual(counts(whole.usage));
    }
    expect(checked).toBeGreaterThan(140);
  });

  test('the SDK reads the re-encoded stream as the original', async () => {
    for (const { file, text, request, anomalies } of streams) {
      const original =
        anomalies.length > 0 ? undefined : await accumulated(text).catch(() => undefined);
      if (original === undefined) continue;
      const conversation = conversationOf(request);
      const events = eventsOf([bytes(text)], upstream(conversation));
      const message = await accumulated(encodeAll(events, conversation));
      expect(withoutEmpty(message.content), file).toEqual(withoutEmpty(original.content));
      for (const key of ['id', 'model', 'stop_reason', 'stop_sequence', 'container']) {
        expect(message[key] ?? null, `${file} ${key}`).toEqual(original[key] ?? null);
      }
      expect(counts(message.usage), file).toEqual(counts(original.usage));
    }
  });

  test('conversion to a reply and back to events changes nothing', async () => {
    for (const { file, text, request } of streams) {
      const conversation = conversationOf(request);
      const events = eventsOf([bytes(text)], upstream(conversation));
      if (events.at(-1)?.type !== 'end') continue;
      const reply = fold(events);
      if (isCut(reply)) continue;
      const again = encodeAll(replyEvents(reply), conversation);
      checkOrder(again, file);
      const whole = anthropicMessages.encodeReply(reply, client(conversation));
      expect((await accumulated(again)).content, file).toEqual(whole.content);
    }
  });

  test('the digest agrees with the events', () => {
    for (const { file, text, anomalies } of streams) {
      if (anomalies.length > 0) continue;
      const parser = new SseParser();
      const digest = anthropicMessages.digestStream([...parser.push(bytes(text)), ...parser.end()]);
      const events = eventsOf([bytes(text)]);
      const reply = fold(events);
      expect(digest.complete, file).toBe(text.includes('"message_stop"'));
      expect(digest.usage, file).toEqual(reply.usage);
      if (digest.complete) expect(digest.finish, file).toBe(reply.finish);
      expect(digest.semantic, file).toBe(reply.blocks.length > 0 && digest.semantic);
    }
  });
});

suite(ABSENT ?? 'every recorded reply', () => {
  test('the expected number of replies is available', () => {
    expect(replies.length).toBeGreaterThan(340);
  });

  test('a reply goes back unchanged', () => {
    for (const { file, text } of replies) {
      const body = JSON.parse(text) as JsonObject;
      const reply = anthropicMessages.decodeReply(body, upstream());
      expect(JSON.stringify(anthropicMessages.encodeReply(reply, client())), file).toBe(
        JSON.stringify(body),
      );
    }
  });

  test('a re-encoded reply has the same content', () => {
    for (const { file, text, request } of replies) {
      const body = JSON.parse(text) as JsonObject;
      const conversation = conversationOf(request);
      const { wire: _wire, ...reply } = anthropicMessages.decodeReply(body, upstream(conversation));
      const again = anthropicMessages.encodeReply(reply, client(conversation));
      for (const key of [
        'id',
        'type',
        'role',
        'model',
        'content',
        'stop_reason',
        'stop_sequence',
      ]) {
        if (key === 'stop_reason' && isSeveral(file)) continue;
        expect(again[key] ?? null, `${file} ${key}`).toEqual(body[key] ?? null);
      }
      expect(counts(again.usage), file).toEqual(counts(body.usage));
    }
  });

  test('a reply is equivalent when its blocks lose their wire', () => {
    for (const { file, text, request } of replies) {
      const body = JSON.parse(text) as JsonObject;
      const conversation = conversationOf(request);
      const reply = anthropicMessages.decodeReply(body, upstream(conversation));
      const bare: Reply = {
        ...reply,
        wire: undefined,
        blocks: reply.blocks.map((block) => {
          if (!['text', 'reasoning', 'tool-call'].includes(block.type)) return block;
          return { ...block, wire: undefined, residue: block.wire } as typeof block;
        }),
      };
      const again = anthropicMessages.encodeReply(bare, client(conversation));
      expect(withoutEmpty(again.content), file).toEqual(withoutEmpty(body.content));
    }
  });

  test('the digest agrees with the decoded reply', () => {
    for (const { file, text } of replies) {
      const body = JSON.parse(text) as JsonObject;
      const digest = anthropicMessages.digestReply(body);
      const reply = anthropicMessages.decodeReply(body, upstream());
      expect(digest.complete, file).toBe(true);
      expect(digest.usage, file).toEqual(reply.usage);
      expect(digest.finish, file).toBe(reply.finish);
      expectPlain(digest, reply, file);
    }
  });
});

/** A relay spliced another stream into a call's input: the SDK drops such input, a reply retains it. */
const isCut = (reply: Reply) =>
  reply.blocks.some(
    (block) =>
      block.type === 'tool-call' && block.input !== '' && tryParse(block.input) === undefined,
  );

/** Several answers recorded as one: its calls were answered in between, so the last reason counts. */
const isSeveral = (file: string) => file.includes('programmatic-tool-calling');

/** Content without empty text blocks and empty fields. */
function withoutEmpty(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content
    .filter((block) => !(isObject(block) && block.type === 'text' && block.text === ''))
    .map((block: JsonObject) => {
      const { citations, ...rest } = block;
      const none = citations === null || (Array.isArray(citations) && citations.length === 0);
      return none ? rest : block;
    });
}

/** Counts that both sides of a comparison have; 0 and absent are equal. */
function counts(usage: unknown): unknown {
  if (!isObject(usage)) return undefined;
  const { input_tokens, output_tokens, server_tool_use } = usage;
  const read = usage.cache_read_input_tokens ?? 0;
  const write = usage.cache_creation_input_tokens ?? 0;
  const hosted = Object.entries(isObject(server_tool_use) ? server_tool_use : {});
  return { input_tokens, output_tokens, read, write, hosted: hosted.filter(([, n]) => n !== 0) };
}
