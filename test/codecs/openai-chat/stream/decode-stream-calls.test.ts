/** Decoding of tool calls in Chat streams with the known deviations of vendors. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import type { Tool } from '../../../../src/conversation/types.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { NOTHING_SENT, upstream } from '../recorded.ts';
import { chunk, decodeAll, fold, sse } from '../streams.ts';
import { call, calls, lines, role, transcript } from '../transcript.ts';

describe('calls', () => {
  test('interleaved arguments of parallel calls come out one call after another', () => {
    expect(
      transcript([
        role,
        calls(call(0, 'a', 'f', '')),
        calls(call(1, 'b', 'g', '')),
        calls(call(0, undefined, undefined, '{"x"'), call(1, undefined, undefined, '{"y":')),
        calls(call(0, undefined, undefined, ':1}')),
        calls(call(1, undefined, undefined, '2}')),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ]),
    ).toEqual([
      'start',
      '+0 tool-call a f',
      '0 {"x"',
      '0 :1}',
      '-0',
      '+1 tool-call b g',
      '1 {"y":',
      '1 2}',
      '-1',
      'finish tool-calls',
      'end',
    ]);
  });

  test('the open call streams without waiting', () => {
    const decoder = openaiChat.decodeStream(upstream());
    const push = (value: unknown) =>
      lines(
        decoder.push({
          event: '',
          data: JSON.stringify(value),
          bytes: new Uint8Array(),
          from: 0,
          to: 0,
        }),
      );
    push(role);
    expect(push(calls(call(0, 'a', 'f', '{"a"')))).toEqual(['+0 tool-call a f', '0 {"a"']);
    expect(push(calls(call(0, undefined, undefined, ':1}')))).toEqual(['0 :1}']);
    expect(push(calls(call(1, 'b', 'g', '{')))).toEqual(['-0', '+1 tool-call b g', '1 {']);
  });

  test('a name that comes after the id, or after the first arguments, is that of the call', () => {
    const end = [chunk({}, 'tool_calls'), '[DONE]'];
    const expected = ['start', '+0 tool-call a f', '0 {"x":1}', '-0', 'finish tool-calls', 'end'];
    for (const [first, second] of [
      [call(0, 'a', '', ''), call(0, 'a', 'f', '{"x":1}')],
      [call(0, 'a', undefined, ''), call(0, undefined, 'f', '{"x":1}')],
      [call(undefined, 'a', '', ''), call(undefined, 'a', 'f', '{"x":1}')],
      [call(0, undefined, '', '{"x":1}'), call(0, 'a', 'f', '')],
    ]) {
      expect(transcript([role, calls(first!), calls(second!), ...end])).toEqual(expected);
    }
  });

  test('a piece without a name that comes behind a whole call is a call of its own', () => {
    const first = call(0, 'a', 'f', '{"x":1}');
    const second = [call(1, 'b', '', '{"y"'), call(1, undefined, 'g', ':2}')];
    const data = [
      role,
      calls(first),
      ...second.map((each) => calls(each)),
      chunk({}, 'tool_calls'),
    ];
    expect(transcript([...data, '[DONE]'])).toEqual([
      ...['start', '+0 tool-call a f', '0 {"x":1}', '-0'],
      ...['+1 tool-call b g', '1 {"y"', '1 :2}', '-1', 'finish tool-calls', 'end'],
    ]);
  });

  test('a call that never gets a name is not lost, and lends nothing to one with another id', () => {
    const end = [chunk({}, 'tool_calls'), '[DONE]'];
    const events = transcript([
      role,
      calls(call(0, 'a', '', '{"x":1}')),
      calls(call(0, 'b', 'g', '{}')),
      ...end,
    ]);
    expect(events.filter((line) => /^[+0-9]/.test(line))).toEqual([
      '+0 tool-call b g',
      '0 {}',
      '+1 tool-call a ',
      '1 {"x":1}',
    ]);
  });

  test('a second call with the id of another one gets an id of its own, streamed or whole', () => {
    const both = [call(0, 'a', 'f', '{}'), call(1, 'a', 'g', '{}')];
    const chunks = [role, ...both.map((one) => calls(one)), chunk({}, 'tool_calls'), '[DONE]'];
    const streamed = fold(decodeAll(sse(...chunks))).blocks;
    const message = { role: 'assistant', content: null, tool_calls: both };
    const whole = openaiChat.decodeReply(
      { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] } as never,
      upstream(),
    ).blocks;
    for (const blocks of [streamed, whole]) {
      const ids = blocks.flatMap((block) => (block.type === 'tool-call' ? [block.id] : []));
      expect(ids).toHaveLength(2);
      expect(ids[0]).toBe('a');
      expect(ids[1]).toMatch(/^call_/);
    }
  });

  test('indices that start at 1, are missing, or are all 0 make separate calls', () => {
    const expected = [
      'start',
      '+0 tool-call a f',
      '0 {}',
      '-0',
      '+1 tool-call b g',
      '1 {}',
      '-1',
      'finish tool-calls',
      'end',
    ];
    const end = [chunk({}, 'stop'), '[DONE]'];
    expect(
      transcript([role, calls(call(1, 'a', 'f', '{}')), calls(call(2, 'b', 'g', '{}')), ...end]),
    ).toEqual(expected);
    expect(
      transcript([
        role,
        calls(call(undefined, 'a', 'f', '{}'), call(undefined, 'b', 'g', '{}')),
        ...end,
      ]),
    ).toEqual(expected);
    expect(
      transcript([role, calls(call(0, 'a', 'f', '{}')), calls(call(0, 'b', 'g', '{}')), ...end]),
    ).toEqual(expected);
  });

  test('an id or name repeated on every fragment stays one call', () => {
    expect(
      transcript([
        role,
        calls(call(0, 'a', 'f', '{"x')),
        calls(call(0, 'a', 'f', '":1}')),
        calls(call(0, '', undefined, '')),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ]),
    ).toEqual(['start', '+0 tool-call a f', '0 {"x', '0 ":1}', '-0', 'finish tool-calls', 'end']);
  });

  test('fragments without index or id continue the last call', () => {
    expect(
      transcript([
        role,
        calls(call(undefined, 'a', 'f', '{')),
        calls(call(undefined, undefined, undefined, '}')),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ]),
    ).toEqual(['start', '+0 tool-call a f', '0 {', '0 }', '-0', 'finish tool-calls', 'end']);
  });

  test('text after a finished call is a separate block; text inside an unfinished one waits', () => {
    expect(
      transcript([
        chunk({ content: 'A' }),
        calls(call(0, 'a', 'f', '{"x":')),
        chunk({ content: 'B' }),
        calls(call(0, undefined, undefined, '1}')),
        chunk({ content: 'C' }, 'tool_calls'),
        '[DONE]',
      ]),
    ).toEqual([
      'start',
      '+0 text',
      '0 A',
      '-0',
      '+1 tool-call a f',
      '1 {"x":',
      '1 1}',
      '-1',
      '+2 text',
      '2 B',
      '2 C',
      '-2',
      'finish tool-calls',
      'end',
    ]);
  });

  test('a finish chunk may still hold a whole call', () => {
    expect(
      transcript([
        chunk({ tool_calls: [call(undefined, 'a', 'f', '{}')] }, 'tool_calls'),
        '[DONE]',
      ]),
    ).toEqual(['start', '+0 tool-call a f', '0 {}', '-0', 'finish tool-calls', 'end']);
  });

  test('arguments as an object become text; a missing id is made up', () => {
    const events = decodeAll(
      sse(
        chunk(
          { tool_calls: [{ index: 0, id: '', function: { name: 'f', arguments: { a: 1 } } }] },
          'stop',
        ),
        '[DONE]',
      ),
    );
    const block = fold(events).blocks[0]!;
    expect(block).toMatchObject({ type: 'tool-call', name: 'f', input: '{"a":1}' });
    expect((block as { id: string }).id).toMatch(/^call_[0-9a-f]{24}$/);
  });

  test("names and kinds are restored to the client's declaration", () => {
    const tools: Tool[] = [
      { type: 'function', name: 'do', namespace: 'mcp' },
      { type: 'custom', name: 'apply_patch' },
    ];
    const sent = { ...NOTHING_SENT, tools };
    const bytes = sse(
      role,
      calls(call(0, 'a', 'mcp__do', '{}')),
      calls(call(1, 'b', 'apply_patch', '{"inp')),
      calls(call(1, undefined, undefined, 'ut":"*** Begin\\n"}')),
      chunk({}, 'tool_calls'),
      '[DONE]',
    );
    const { blocks } = fold(decodeAll(bytes, [], sent));
    expect(blocks).toEqual([
      {
        type: 'tool-call',
        id: 'a',
        name: 'do',
        namespace: 'mcp',
        kind: 'function',
        by: 'client',
        input: '{}',
      },
      {
        type: 'tool-call',
        id: 'b',
        name: 'apply_patch',
        namespace: undefined,
        kind: 'custom',
        by: 'client',
        input: '*** Begin\n',
      },
    ]);
  });

  test('the legacy function_call is a call with its own id', () => {
    const { blocks, finish } = fold(
      decodeAll(
        sse(
          chunk({ role: 'assistant', function_call: { name: 'f', arguments: '' } }),
          chunk({ function_call: { arguments: '{"a":1}' } }),
          chunk({}, 'function_call'),
          '[DONE]',
        ),
      ),
    );
    expect(finish).toBe('tool-calls');
    expect(blocks).toMatchObject([{ type: 'tool-call', name: 'f', input: '{"a":1}' }]);
  });

  test('freeform calls of this protocol keep their text', () => {
    const custom = (input: string, more: object = {}) =>
      calls({ index: 0, ...more, custom: { ...more, input } });
    const { blocks } = fold(
      decodeAll(
        sse(
          role,
          custom('', { id: 'a', type: 'custom', name: 'p' }),
          custom('x = '),
          custom('{"input":1}'),
          chunk({}, 'tool_calls'),
          '[DONE]',
        ),
      ),
    );
    expect(blocks).toMatchObject([
      { id: 'a', name: 'p', kind: 'custom', input: 'x = {"input":1}' },
    ]);
  });

  test("Gemini's thought signature is sealed to its call", () => {
    const { blocks } = fold(
      decodeAll(
        sse(
          chunk(
            {
              tool_calls: [
                {
                  ...call(0, 'a', 'f', '{}'),
                  extra_content: { google: { thought_signature: 'S' } },
                },
              ],
            },
            'stop',
          ),
          '[DONE]',
        ),
      ),
    );
    expect(blocks).toMatchObject([
      { sealed: { protocol: 'openai-chat', provider: 'vendor', kind: 'signature', value: 'S' } },
    ]);
  });

  const signed = (value: string) => ({ extra_content: { google: { thought_signature: value } } });
  test.each<[where: string, fragments: readonly JsonObject[]]>([
    ['behind its call', [call(0, 'a', 'f', '{}'), { index: 0, ...signed('QUJDREVG') }]],
    ['behind it, without an index', [call(0, 'a', 'f', '{}'), signed('QUJDREVG')]],
    [
      'in pieces',
      [
        { ...call(0, 'a', 'f', '{'), ...signed('QUJD') },
        { index: 0, function: { arguments: '}' }, ...signed('REVG') },
      ],
    ],
    [
      'again in each fragment',
      [
        { ...call(0, 'a', 'f', '{'), ...signed('QUJDREVG') },
        { index: 0, function: { arguments: '}' }, ...signed('QUJDREVG') },
      ],
    ],
    [
      'longer each time',
      [
        { ...call(0, 'a', 'f', '{'), ...signed('QUJD') },
        { index: 0, function: { arguments: '}' }, ...signed('QUJDREVG') },
      ],
    ],
    [
      'before the name',
      [
        { index: 0, id: 'a', type: 'function', ...signed('QUJDREVG') },
        { index: 0, function: { name: 'f', arguments: '{}' } },
      ],
    ],
    [
      'in pieces around the name',
      [
        { index: 0, id: 'a', type: 'function', ...signed('QUJD') },
        { index: 0, function: { name: 'f', arguments: '{}' }, ...signed('REVG') },
      ],
    ],
  ])('the signature of a call is whole where it comes %s', (_, fragments) => {
    const frames = fragments.map((one) => chunk({ tool_calls: [one] }));
    const { blocks } = fold(decodeAll(sse(...frames, chunk({}, 'tool_calls'), '[DONE]')));
    expect(blocks).toMatchObject([
      { name: 'f', input: '{}', sealed: { kind: 'signature', value: 'QUJDREVG' } },
    ]);
  });
});
