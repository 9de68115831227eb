/** The text of a freeform tool, however a model wraps it in the arguments of the function that stands for it. */

import { expect, test } from 'bun:test';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { ReplyBuilder } from '../../src/conversation/reply-builder.ts';
import { unwrapFreeform, wrapFreeform } from '../../src/conversation/tools/tool-names.ts';
import { SseParser } from '../../src/lib/bytes/sse.ts';
import { STREAMED, targetWith } from '../features/leaked-calls/transcript.ts';

const PATCH = '*** Begin Patch\n*** Add File: "a"\n*** End Patch';
const WRAPPED = [
  wrapFreeform(PATCH),
  JSON.stringify({ patch: PATCH }),
  JSON.stringify({ input: PATCH, explanation: 'why' }),
  JSON.stringify(PATCH),
  JSON.stringify(wrapFreeform(PATCH)),
  wrapFreeform(PATCH).repeat(2),
  PATCH,
];

test.each(WRAPPED)('%j is the text itself', (args) => {
  expect(unwrapFreeform(args)).toBe(PATCH);
});

test('other arguments stay as they are', () => {
  for (const args of ['{"a":"x","b":"y"}', '{"a":{"b":"x"}}', '["x"]', '{"a":', '7', '']) {
    expect(unwrapFreeform(args)).toBe(args);
  }
});

test.each(WRAPPED)('%j of a Chat vendor, streamed in any two pieces', (args) => {
  const context = {
    sent: { ...STREAMED, tools: [{ type: 'custom', name: 'apply_patch' } as const] },
    target: targetWith(),
    notes: new Notes(),
  };
  for (let at = 1; at < args.length; at++) {
    const decoder = openaiChat.decodeStream(context);
    const fold = new ReplyBuilder();
    const chunk = (delta: object, finish_reason: string | null) => {
      const data = JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] });
      for (const frame of new SseParser().push(Buffer.from(`data: ${data}\n\n`))) {
        for (const event of decoder.push(frame)) fold.push(event);
      }
    };
    const named = { index: 0, id: 'c1', type: 'function' };
    const fn = { name: 'apply_patch', arguments: args.slice(0, at) };
    chunk({ tool_calls: [{ ...named, function: fn }] }, null);
    chunk({ tool_calls: [{ index: 0, function: { arguments: args.slice(at) } }] }, null);
    chunk({}, 'tool_calls');
    for (const event of decoder.end()) fold.push(event);
    expect(fold.reply.blocks).toMatchObject([{ kind: 'custom', input: PATCH }]);
  }
});
