/** Every recorded Chat stream decodes in order at every split, and the official SDK accepts its re-encoding. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import type { Reply } from '../../../src/conversation/events.ts';
import { totalInput, totalOutput } from '../../../src/conversation/usage.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { fixtureBytes, haveFixtures } from '../../support/fixtures.ts';
import { NOTHING_SENT, rows } from './recorded.ts';
import { accumulate, decodeAll, disorder, encodeAll, fold } from './streams.ts';

const streams = rows.filter((row) => row.kind === 'sse');
/** Streams in which the vendor reports a failure. */
const FAILED = /tool_use_failed_error_streaming(_with_text)?\.0\.sse/;

const contentOf = (reply: Reply, type: 'text' | 'reasoning' | 'refusal') =>
  reply.blocks.map((block) => (block.type === type ? block.text : '')).join('');

/** Text, reasoning and arguments counted from the raw bytes, without the decoder's code. */
function rawly(bytes: Uint8Array) {
  const out = { text: '', reasoning: '', args: '', names: [] as string[] };
  for (const line of new TextDecoder().decode(bytes).split('\n')) {
    if (!line.startsWith('data:') || line.includes('[DONE]')) continue;
    const choice = JSON.parse(line.slice(5)).choices?.[0];
    if (choice === undefined || choice.index !== 0) continue;
    const delta = choice.delta ?? {};
    if (Array.isArray(delta.content)) {
      for (const part of delta.content) {
        out.text += part.text ?? '';
        for (const t of part.thinking ?? []) out.reasoning += t.text;
      }
    } else out.text += delta.content ?? '';
    out.reasoning +=
      delta.reasoning_content ||
      delta.reasoning ||
      (delta.reasoning_details ?? []).map((d: { text?: string }) => d.text ?? '').join('');
    for (const call of delta.tool_calls ?? []) {
      out.args += call.function?.arguments ?? '';
      if (call.function?.name) out.names.push(call.function.name);
    }
  }
  return out;
}

if (!haveFixtures) test.skip('SKIPPED: recorded streams are not available', () => {});
else {
  describe('recorded streams', () => {
    test('many recorded streams are available', () => {
      expect(streams.length).toBeGreaterThan(200);
    });

    test('events keep their order, and no content is lost', () => {
      for (const { file } of streams) {
        const bytes = fixtureBytes(file);
        const events = decodeAll(bytes);
        expect({ file, wrong: disorder(events) }).toEqual({ file, wrong: [] });
        const reply = fold(events);
        const raw = rawly(bytes);
        const calls = reply.blocks.filter((block) => block.type === 'tool-call');
        expect({
          file,
          text: contentOf(reply, 'text'),
          reasoning: contentOf(reply, 'reasoning'),
          names: calls.map((call) => call.name),
          args: calls.map((call) => call.input.length).reduce((a, b) => a + b, 0),
        }).toEqual({
          file,
          text: raw.text,
          reasoning: raw.reasoning,
          names: raw.names,
          args: raw.args.length,
        });
        for (const call of calls) {
          if (call.input !== '') expect(() => JSON.parse(call.input)).not.toThrow();
        }
      }
    });

    test('every stream is complete, or names the failure that ended it', () => {
      for (const { file } of streams) {
        const events = decodeAll(fixtureBytes(file));
        const failed = events.some((event) => event.type === 'error');
        expect({ file, failed }).toEqual({ file, failed: FAILED.test(file) });
        expect({ file, complete: fold(events).complete }).toEqual({ file, complete: !failed });
      }
    });

    test('the same events come out at any split of the bytes', () => {
      const at = fc.integer({ min: 0, max: streams.length - 1 });
      fc.assert(
        fc.property(
          at,
          fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 }),
          (i, shares) => {
            const bytes = fixtureBytes(streams[i]!.file);
            const cuts = shares.map((s) => Math.floor(s * bytes.length)).sort((a, b) => a - b);
            expect(decodeAll(bytes, cuts)).toEqual(decodeAll(bytes));
          },
        ),
        { numRuns: 150 },
      );
    });

    test('the same events come out byte by byte', () => {
      const small = streams.filter(({ file }) => fixtureBytes(file).length < 6000);
      expect(small.length).toBeGreaterThan(20);
      for (const { file } of small.slice(0, 60)) {
        const bytes = fixtureBytes(file);
        const cuts = Array.from({ length: bytes.length }, (_, i) => i + 1);
        expect({ file, events: decodeAll(bytes, cuts) }).toEqual({
          file,
          events: decodeAll(bytes),
        });
      }
    });

    test('a stream cut before its last finish never ends', () => {
      for (const { file } of streams.filter((_, i) => i % 7 === 0)) {
        const bytes = fixtureBytes(file);
        const text = new TextDecoder().decode(bytes);
        const finish = text.search(/"finish_reason":\s*"/);
        const cut = finish < 0 ? text.indexOf('data: [DONE]') : text.lastIndexOf('data:', finish);
        if (cut <= 0) continue;
        const events = decodeAll(new TextEncoder().encode(text.slice(0, cut)));
        expect({ file, wrong: disorder(events) }).toEqual({ file, wrong: [] });
        expect({ file, complete: fold(events).complete }).toEqual({ file, complete: false });
      }
    });

    test('the official SDK reads the re-encoded stream as the original', async () => {
      const request = { ...NOTHING_SENT, settings: { stream: true, streamUsage: true } };
      for (const { file } of streams) {
        if (FAILED.test(file)) continue;
        const events = decodeAll(fixtureBytes(file));
        const reply = fold(events);
        const completion = await accumulate(encodeAll(events, request));
        const { message, finish_reason } = completion.choices[0]!;
        expect({ file, text: message.content ?? '' }).toEqual({
          file,
          text: contentOf(reply, 'text'),
        });
        expect(message.role).toBe('assistant');
        expect(message.refusal ?? '').toBe(contentOf(reply, 'refusal'));
        expect((message as { reasoning_content?: string }).reasoning_content === undefined).toBe(
          contentOf(reply, 'reasoning') === '',
        );
        const calls = reply.blocks.filter((block) => block.type === 'tool-call');
        expect(
          (message.tool_calls ?? []).map((call) =>
            call.type === 'function' ? [call.id, call.function.name, call.function.arguments] : [],
          ),
        ).toEqual(calls.map((call) => [call.id, call.name, call.input || '{}']));
        expect({ file, reason: String(finish_reason) }).toEqual({
          file,
          reason: { 'tool-calls': 'tool_calls', length: 'length', stop: 'stop', refusal: 'stop' }[
            reply.finish as 'stop'
          ],
        });
        if (reply.usage !== undefined) {
          expect(completion.usage?.prompt_tokens).toBe(totalInput(reply.usage));
          expect(completion.usage?.completion_tokens).toBe(totalOutput(reply.usage));
        }
      }
    });

    test('encoding and decoding again gives the same content', () => {
      for (const { file } of streams) {
        if (FAILED.test(file)) continue;
        const request = { ...NOTHING_SENT, settings: { stream: true, streamUsage: true } };
        const first = fold(decodeAll(fixtureBytes(file)));
        const again = fold(
          decodeAll(new TextEncoder().encode(encodeAll(decodeAll(fixtureBytes(file)), request))),
        );
        const textOf = (reply: Reply) =>
          reply.blocks.map((b) =>
            b.type === 'tool-call'
              ? { ...b, input: b.input || '{}' }
              : 'text' in b
                ? [b.type, b.text]
                : b,
          );
        expect({ file, blocks: textOf(again) }).toEqual({ file, blocks: textOf(first) });
        expect({ file, finish: again.finish }).toEqual({ file, finish: first.finish });
      }
    });

    test('the digest of the frames agrees with the decoded stream', () => {
      for (const { file } of streams) {
        const parser = new SseParser();
        const frames = [...parser.push(fixtureBytes(file)), ...parser.end()];
        const digest = openaiChat.digestStream(frames);
        const events = decodeAll(fixtureBytes(file));
        const reply = fold(events);
        const failed = events.some((event) => event.type === 'error');
        expect({ file, complete: digest.complete }).toEqual({ file, complete: !failed });
        expect(digest.error !== undefined).toBe(failed);
        expect({ file, semantic: digest.semantic }).toEqual({
          file,
          semantic: reply.blocks.length > 0,
        });
        expect(digest.usage).toEqual(reply.usage);
        if (!failed)
          expect({ file, finish: digest.finish }).toEqual({ file, finish: reply.finish });
      }
    });

    test('every chunk of an encoded stream has the same id, time and model', () => {
      for (const { file } of streams.slice(0, 80)) {
        const heads = new Set(
          encodeAll(decodeAll(fixtureBytes(file)))
            .split('\n\n')
            .filter((frame) => frame.startsWith('data: {') && !frame.includes('"error"'))
            .map((frame) => {
              const { id, object, created, model } = JSON.parse(frame.slice(6));
              return JSON.stringify([id, object, created, model]);
            }),
        );
        expect({ file, heads: heads.size }).toEqual({ file, heads: 1 });
      }
    });
  });
}
