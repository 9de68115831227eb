/** Hosted calls in a history whose results are part of the same item. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { editNode } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { conversation, upstream } from './material.ts';

const MCP = { type: 'mcp_call', id: 'mcp_1', server_label: 's', name: 'q', arguments: '{}' };
const CODE = { type: 'code_interpreter_call', id: 'ci_1', code: '1+1', container_id: 'c' };
const SEARCH = { type: 'file_search_call', id: 'fs_1', queries: ['x'], status: 'completed' };
const body = (item: JsonObject) => ({
  model: 'm',
  input: [
    { role: 'user', content: 'x' },
    item,
    { role: 'assistant', content: 'done' },
    { role: 'user', content: 'y' },
  ],
});
const to = (protocol: ProtocolName) => ({
  provider: 'vendor',
  model: 'm',
  protocol,
  profile: NO_PROFILE,
});

describe('towards Chat', () => {
  test.each<[string, JsonObject, string]>([
    ['the output of an MCP call', { ...MCP, output: 'OUT' }, 'OUT'],
    ['the error of an MCP call', { ...MCP, output: null, error: 'no server' }, 'no server'],
    [
      'what code printed',
      {
        ...CODE,
        outputs: [
          { type: 'logs', logs: '2' },
          { type: 'image', url: 'data:,' },
        ],
      },
      '2\n[image]',
    ],
    [
      'what a search found',
      {
        ...SEARCH,
        results: [
          { filename: 'a.md', text: 'A' },
          { filename: 'b.md', text: 'B' },
        ],
      },
      'a.md\nA\n\nb.md\nB',
    ],
  ])('the result of %s is not lost with its call', (_, item, message) => {
    const notes = new Notes();
    const { messages } = openaiChat.encodeRequest(
      conversation(body(item)),
      to('openai-chat'),
      notes,
    );
    expect(messages as Json).toEqual([
      { role: 'user', content: 'x' },
      { role: 'assistant', content: `${message}\n\ndone` },
      { role: 'user', content: 'y' },
    ]);
    expect(notes.summary()).toBe('provider_call_dropped,content_bridged');
  });

  test.each([
    { ...MCP, output: null, error: null },
    { ...CODE, outputs: [] },
    { ...SEARCH, results: null },
  ])('a call without a result adds no text', (item) => {
    const [, turn] = conversation(body(item)).turns;
    expect(turn!.blocks.map((block) => block.type)).toEqual(['tool-call']);
  });
});

describe('towards Responses', () => {
  const request = conversation(body({ ...MCP, output: 'OUT' }));
  const sent = (turns: typeof request.turns) => {
    const notes = new Notes();
    const target = to('openai-responses');
    const { input } = openaiResponses.encodeRequest({ ...request, turns }, target, notes);
    return { input: input as Json, notes: notes.summary() };
  };
  const expected = { input: body({ ...MCP, output: 'OUT' }).input as Json, notes: '' };

  test('the item goes out once, unchanged', () => {
    expect(sent(request.turns)).toEqual(expected);
  });

  test('an edited turn sends the item once, too, and reports nothing as dropped', () => {
    const turns = request.turns.map((turn, i) =>
      i === 1 ? editNode(turn, { blocks: [...turn.blocks] }) : turn,
    );
    expect(sent(turns)).toEqual(expected);
  });

  test('an answer sends call and result to the client as one item', () => {
    const { blocks } = openaiResponses.decodeReply(
      {
        id: 'resp_1',
        object: 'response',
        created_at: 1,
        status: 'completed',
        model: 'm',
        output: [{ ...MCP, output: 'OUT' }],
      },
      upstream(request),
    );
    expect(blocks.map((block) => block.type)).toEqual(['tool-call']);
  });
});

describe('outputs of tools that the client runs and other vendors do not know', () => {
  test.each<[string, JsonObject, string]>([
    ['local shell', { type: 'local_shell_call_output', call_id: 'c', output: 'a.txt' }, 'a.txt'],
    [
      'shell',
      {
        type: 'shell_call_output',
        call_id: 'c',
        output: [{ stdout: 'b.txt', stderr: 'warn', outcome: { type: 'exit', exit_code: 0 } }],
      },
      'b.txt\nwarn',
    ],
    ['patch', { type: 'apply_patch_call_output', call_id: 'c', output: 'patched' }, 'patched'],
  ])('%s', (_, item, said) => {
    const asked = openaiResponses.decodeRequest(body(item));
    const notes = new Notes();
    const { messages } = openaiChat.encodeRequest(asked, to('openai-chat'), notes) as unknown as {
      messages: readonly JsonObject[];
    };
    const content = `Result of an earlier tool call: ${said}`;
    expect(messages).toContainEqual({ role: 'user', content });
    expect(notes.summary()).toContain('content_bridged');
    const same = openaiResponses.encodeRequest(asked, to('openai-responses'), new Notes());
    expect((same as JsonObject).input).toContainEqual(item);
  });
});
