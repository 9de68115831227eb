/** The last item of an answer that ended early. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import type { BlockHead, StreamEvent } from '../../../src/conversation/events.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { block, finish, PLAIN, start, write } from './builders.ts';
import { client, conversation } from './material.ts';
import { readBySdk } from './sdk.ts';
import { checkSkeleton } from './skeleton.ts';

const TEXT: BlockHead = { type: 'text' };
const call = (kind: 'function' | 'custom' | 'tool-search'): BlockHead => ({
  type: 'tool-call',
  id: 'call_1',
  name: 'go',
  kind,
  by: 'client',
});

/** The items of a stream, which must equal those of the whole reply and the official client. */
async function items(events: readonly StreamEvent[]): Promise<readonly JsonObject[]> {
  const sse = write(events);
  const output = checkSkeleton(sse).output as readonly JsonObject[];
  const fold = new ReplyBuilder();
  for (const event of events) fold.push(event);
  const whole = openaiResponses.encodeReply(fold.reply, client(conversation(PLAIN)));
  expect(whole.output as unknown).toEqual(output);
  expect((await readBySdk(sse)).output as unknown).toMatchObject(output as object[]);
  return output;
}

describe('an answer that ends incomplete', () => {
  test('a cut call is not complete', async () => {
    for (const kind of ['function', 'custom', 'tool-search'] as const) {
      const events = [
        start,
        ...block(0, TEXT, 'I go.'),
        ...block(1, call(kind), '{"path":"/tm'),
        ...finish('length'),
      ];
      const [message, cut] = await items(events);
      expect(message!.status).toBe('completed');
      expect(cut!.status).toBe('incomplete');
    }
  });

  test('a call that was cut before its arguments gets no made-up ones', async () => {
    const events = [start, ...block(0, call('function')), ...finish('length')];
    const [cut] = await items(events);
    expect(cut).toMatchObject({ arguments: '', status: 'incomplete' });
  });

  test('cut text is not complete', async () => {
    for (const reason of ['length', 'content-filter'] as const) {
      const [message] = await items([start, ...block(0, TEXT, 'Once upon'), ...finish(reason)]);
      expect(message!.status).toBe('incomplete');
    }
  });

  test('all items of a complete answer are complete', async () => {
    const [message] = await items([start, ...block(0, TEXT, 'Done.'), ...finish('stop')]);
    expect(message!.status).toBe('completed');
    const [whole] = await items([start, ...block(0, call('function')), ...finish('tool-calls')]);
    expect(whole).toMatchObject({ arguments: '{}', status: 'completed' });
  });
});
