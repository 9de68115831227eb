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

const CODE = '*** Begin Patch\n+\tre = /\\d+\\.\\w*/; // "a"\n*** End Patch';
const inJson = JSON.stringify(CODE).slice(1, -1);
/** The same text in JSON that is broken, but has only one meaning. */
const BROKEN: readonly (readonly [why: string, args: string])[] = [
  ['backslashes are not escaped', `{"input":"${inJson.replaceAll('\\\\', '\\')}"}`],
  ['nor under another name', `{"patch": "${inJson.replaceAll('\\\\', '\\')}"}`],
  ['line breaks are not escaped', `{"input":"${inJson.replaceAll('\\n', '\n')}"}`],
  ['neither, nor tabs', `{\n "input":"${CODE.replaceAll('"', '\\"')}"\n}`],
  ['the last bracket is missing', `{"input":"${inJson}"`],
];

test.each(BROKEN)('%s: %j is the text itself', (_, args) => {
  expect(unwrapFreeform(args)).toBe(CODE);
});

test('a backslash that may be two things, and a text that breaks off, stay as they are', () => {
  for (const args of [
    '{"input":"cd C:\\new and match \\d"}',
    '{"input":"*** Begin Patch\\n+\\d',
    '{"input":"a \\d "quoted" word"}',
  ]) {
    expect(unwrapFreeform(args)).toBe(args);
  }
});

test('other arguments stay as they are', () => {
  for (const args of ['{"a":"x","b":"y"}', '{"a":{"b":"x"}}', '["x"]', '{"a":', '7', '']) {
    expect(unwrapFreeform(args)).toBe(args);
  }
});

test.each([
  ...WRAPPED.map((args) => [args, PATCH] as const),
  ...BROKEN.map(([, args]) => [args, CODE] as const),
])('%j of a Chat vendor, streamed in any two pieces', (args, text) => {
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
    expect(fold.reply.blocks).toMatchObject([{ kind: 'custom', input: text }]);
  }
});
