/** Decoding of unusual Responses streams that real servers send. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../../src/conversation/errors.ts';
import { upstream } from '../material.ts';
import {
  ASKED,
  added,
  completed,
  created,
  done,
  message,
  run,
  said,
  text,
  transcript,
} from '../transcript.ts';

describe('streams with less than the specification requires', () => {
  const answer = { ...message, content: said('Hi') };

  test('an item that appears only in the last event is not lost', () => {
    expect(transcript(run([created, completed([answer])]))).toBe(
      'start [0 text "Hi" ] finish:stop end',
    );
  });

  test('done events without added events and ids decode, as Codex accepts them', () => {
    const item = { type: 'message', role: 'assistant', content: said('Hi') };
    const stream = [{ type: 'response.output_item.done', item }, completed()];
    expect(transcript(run(stream))).toBe('start [0 text "Hi" ] finish:stop end');
    expect(transcript(run(stream, ASKED, false))).toBe('start [0 text "Hi" ] finish:stop end');
  });

  test('deltas without content_part.added and without output_index decode', () => {
    const stream = [
      created,
      { type: 'response.output_item.added', item: message },
      { type: 'response.output_text.delta', delta: 'H' },
      { type: 'response.output_text.delta', delta: 'i' },
      { type: 'response.output_item.done', item: answer },
      completed([answer]),
    ];
    expect(transcript(run(stream))).toBe('start [0 text "H" "i" ] finish:stop end');
  });

  test('a done event with more text than the deltas adds the rest once', () => {
    const stream = [
      created,
      added(0, message),
      text(0, 'Hel'),
      { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'Hello' },
      done(0, { ...message, content: said('Hello') }),
      completed(),
    ];
    expect(transcript(run(stream))).toBe('start [0 text "Hel" "lo" ] finish:stop end');
  });

  test('a missing output_item.done before the last event does no harm', () => {
    const stream = [created, added(0, message), text(0, 'Hi'), completed([answer])];
    expect(transcript(run(stream))).toBe('start [0 text "Hi" ] finish:stop end');
  });

  test('item ids may change during the stream (GitHub Copilot)', () => {
    const stream = [
      created,
      added(0, { ...message, id: 'a' }),
      { ...text(0, 'Hi'), item_id: 'b' },
      done(0, { ...answer, id: 'c' }),
      completed([{ ...answer, id: 'd' }]),
    ];
    expect(transcript(run(stream))).toBe('start [0 text "Hi" ] finish:stop end');
  });

  test('[DONE] after the end is ignored; without an end it completes a stream with no open item', () => {
    const stream = [created, added(0, message), text(0, 'Hi'), done(0, answer)];
    const decoder = openaiResponses.decodeStream(upstream(ASKED));
    const none = { bytes: new Uint8Array(), from: 0, to: 0 };
    for (const data of stream) decoder.push({ event: '', data: JSON.stringify(data), ...none });
    expect(decoder.push({ event: '', data: '[DONE]', ...none })).toEqual([]);
    expect(transcript(decoder.end())).toBe('finish:stop end');
    expect(transcript(run([...stream, completed([answer])]))).toEndWith('] finish:stop end');
  });

  test('a cut stream closes its block and has no end', () => {
    expect(transcript(run([created, added(0, message), text(0, 'Hi')]))).toBe(
      'start [0 text "Hi" ]',
    );
    expect(transcript(run([]))).toBe('');
  });

  test('a frame that is not a JSON object is an upstream error', () => {
    for (const data of ['{"type":', '7', '[]']) {
      const decoder = openaiResponses.decodeStream(upstream(ASKED));
      expect(() =>
        decoder.push({ event: '', data, bytes: new Uint8Array(), from: 0, to: 0 }),
      ).toThrow(GatewayError);
    }
  });

  test('comments and empty data give no events', () => {
    const decoder = openaiResponses.decodeStream(upstream(ASKED));
    expect(
      decoder.push({ event: '', data: undefined, bytes: new Uint8Array(), from: 0, to: 0 }),
    ).toEqual([]);
    expect(decoder.push({ event: '', data: '', bytes: new Uint8Array(), from: 0, to: 0 })).toEqual(
      [],
    );
  });
});

describe('items', () => {
  test('interleaved items come out one after the other, in output order', () => {
    const search = {
      id: 'ws_1',
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'q' },
    };
    const stream = [
      created,
      added(0, { id: 'ws_1', type: 'web_search_call', status: 'in_progress' }),
      added(1, message),
      text(1, 'A'),
      { type: 'response.web_search_call.searching', output_index: 0, item_id: 'ws_1' },
      done(0, search),
      text(1, 'B'),
      done(1, { ...message, content: said('AB') }),
      completed(),
    ];
    const events = run(stream);
    expect(transcript(events)).toBe('start [0 whole tool-call ] [1 text "A" "B" ] finish:stop end');
    const head = events.find((event) => event.type === 'block-start')?.head;
    expect(head?.type === 'whole' ? head.block : undefined).toEqual({
      type: 'tool-call',
      id: 'ws_1',
      name: 'web_search',
      kind: 'function',
      input: '{"type":"search","query":"q"}',
      by: 'provider',
      wire: { protocol: 'openai-responses', value: search },
    });
  });

  test('an item that ends while it is held is emitted whole afterwards', () => {
    const call = { id: 'fc_1', type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
    const stream = [
      created,
      added(0, message),
      added(1, { ...call, arguments: '' }),
      text(0, 'A'),
      done(1, call),
      done(0, { ...message, content: said('A') }),
      completed(),
    ];
    expect(transcript(run(stream))).toBe(
      'start [0 text "A" ] [1 call f/function "{}" ] finish:tool-calls end',
    );
  });

  test('summary parts come first, then the payload of done', () => {
    const part = (summary_index: number) => ({
      type: 'response.reasoning_summary_part.added',
      output_index: 0,
      summary_index,
    });
    const delta = (summary_index: number, value: string) => ({
      type: 'response.reasoning_summary_text.delta',
      output_index: 0,
      summary_index,
      delta: value,
    });
    const item = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'early' };
    const summary = ['ab', 'c'].map((value) => ({ type: 'summary_text', text: value }));
    const stream = [
      created,
      added(0, item),
      part(0),
      delta(0, 'a'),
      delta(0, 'b'),
      part(1),
      delta(1, 'c'),
      done(0, { ...item, summary, encrypted_content: 'late' }),
      completed(),
    ];
    expect(transcript(run(stream))).toBe(
      'start [0 reasoning "a" "b" +"c" sealed:late ] finish:stop end',
    );
  });

  test('reasoning with only a payload is a block; empty reasoning is none', () => {
    const item = { id: 'rs_1', type: 'reasoning', summary: [] };
    const sealed = { ...item, encrypted_content: 'x' };
    expect(transcript(run([created, added(0, item), done(0, sealed), completed()]))).toBe(
      'start [0 reasoning sealed:x ] finish:stop end',
    );
    expect(transcript(run([created, added(0, item), done(0, item), completed()]))).toBe(
      'start finish:stop end',
    );
  });

  test('raw reasoning text (DeepSeek, LM Studio) is not a summary', () => {
    const stream = [
      created,
      added(0, { id: 'r', type: 'reasoning', summary: [], content: [] }),
      {
        type: 'response.content_part.added',
        output_index: 0,
        part: { type: 'reasoning_text', text: '' },
      },
      { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'think' },
      done(0, {
        id: 'r',
        type: 'reasoning',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'think' }],
      }),
      completed(),
    ];
    const events = run(stream);
    expect(transcript(events)).toBe('start [0 reasoning "think" ] finish:stop end');
    expect(events[1]).toMatchObject({ head: { type: 'reasoning' } });
    expect(JSON.stringify(events[1])).not.toContain('summary');
  });

  test('a refusal is a separate block with its own finish', () => {
    const stream = [
      created,
      added(0, message),
      {
        type: 'response.content_part.added',
        output_index: 0,
        content_index: 0,
        part: { type: 'refusal', refusal: '' },
      },
      { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'No.' },
      { type: 'response.refusal.done', output_index: 0, content_index: 0, refusal: 'No.' },
      done(0, { ...message, content: [{ type: 'refusal', refusal: 'No.' }] }),
      completed(),
    ];
    expect(transcript(run(stream))).toBe('start [0 refusal "No." ] finish:refusal end');
  });

  test('citations keep their offsets, also those that only the done part lists', () => {
    const annotation = { type: 'url_citation', start_index: 0, end_index: 1, url: 'u', title: 't' };
    const part = { type: 'output_text', text: 'A', annotations: [annotation] };
    const stream = [
      created,
      added(0, message),
      text(0, 'A'),
      { type: 'response.content_part.done', output_index: 0, content_index: 0, part },
      done(0, { ...message, content: [part] }),
      completed(),
    ];
    expect(transcript(run(stream))).toBe('start [0 text "A" cite:u@0-1 ] finish:stop end');
  });

  test('several parts of one message are several blocks', () => {
    const stream = [
      created,
      added(0, message),
      text(0, 'A', 0),
      text(0, 'B', 1),
      done(0, { ...message, content: [...said('A'), ...said('B'), ...said('C')] }),
      completed(),
    ];
    expect(transcript(run(stream))).toBe(
      'start [0 text "A" ] [1 text "B" ] [2 text "C" ] finish:stop end',
    );
  });
});
