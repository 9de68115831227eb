/** Decoding of calls under the names that the client declared, and of the ends of a Responses stream. */

import { describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { conversation } from '../material.ts';
import { ASKED, added, completed, created, done, run, transcript } from '../transcript.ts';

describe('calls under the names that the client declared', () => {
  const sent = conversation({
    model: 'm',
    input: 'i',
    tools: [
      { type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'go' }] },
      { type: 'custom', name: 'apply_patch' },
      { type: 'tool_search', execution: 'client' },
    ],
  });
  const call = (name: string, more: JsonObject = {}) => ({
    id: 'fc_1',
    type: 'function_call',
    call_id: 'c1',
    name,
    arguments: '',
    ...more,
  });
  const args = (delta: string) => ({
    type: 'response.function_call_arguments.delta',
    output_index: 0,
    delta,
  });

  test('a flattened name gets its namespace back', () => {
    const stream = [
      created,
      added(0, call('ns__go')),
      args('{"a"'),
      args(':1}'),
      done(0, call('ns__go', { arguments: '{"a":1}' })),
      completed(),
    ];
    expect(transcript(run(stream, sent))).toBe(
      'start [0 call ns.go/function "{"a"" ":1}" ] finish:tool-calls end',
    );
  });

  test('a native namespace stays', () => {
    const item = call('go', { namespace: 'ns', arguments: '{}' });
    expect(transcript(run([created, added(0, item), done(0, item), completed()], sent))).toBe(
      'start [0 call ns.go/function "{}" ] finish:tool-calls end',
    );
  });

  test('a freeform tool that was bridged as a function is unwrapped', () => {
    const stream = [
      created,
      added(0, call('apply_patch')),
      args('{"input":"*** '),
      args('Begin"}'),
      done(0, call('apply_patch', { arguments: '{"input":"*** Begin"}' })),
      completed(),
    ];
    expect(transcript(run(stream, sent))).toBe(
      'start [0 call apply_patch/custom "*** Begin" ] finish:tool-calls end',
    );
  });

  test('a native freeform call streams its text', () => {
    const item = {
      id: 'ctc',
      type: 'custom_tool_call',
      call_id: 'c',
      name: 'apply_patch',
      input: '',
    };
    const stream = [
      created,
      added(0, item),
      { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: '*** ' },
      { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: 'x' },
      done(0, { ...item, input: '*** x' }),
      completed(),
    ];
    expect(transcript(run(stream, sent))).toBe(
      'start [0 call apply_patch/custom "*** " "x" ] finish:tool-calls end',
    );
  });

  test("a search that the client runs is a call; a vendor's search is not", () => {
    const item = {
      id: 't',
      type: 'tool_search_call',
      call_id: 'c',
      execution: 'client',
      arguments: { query: 'q' },
    };
    expect(
      transcript(
        run([created, added(0, { ...item, arguments: {} }), done(0, item), completed()], sent),
      ),
    ).toBe('start [0 call tool_search/tool-search "{"query":"q"}" ] finish:tool-calls end');
    const server = { ...item, execution: 'server', call_id: null };
    expect(transcript(run([created, added(0, server), done(0, server), completed()], sent))).toBe(
      'start [0 whole tool-call ] finish:stop end',
    );
  });
});

describe('endings', () => {
  const cases: readonly [string, JsonObject, string][] = [
    [
      'length',
      {
        type: 'response.incomplete',
        response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      },
      'finish:length end',
    ],
    [
      'filter',
      {
        type: 'response.incomplete',
        response: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
      },
      'finish:content-filter end',
    ],
    ['no status', { type: 'response.incomplete', response: {} }, 'finish:length end'],
    [
      'failed',
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'server_error', message: 'x' } },
      },
      'error:upstream',
    ],
    ['failed bare', { type: 'response.failed', response: {} }, 'error:upstream'],
    [
      'rate',
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'x' } },
      },
      'error:rate_limit',
    ],
    [
      'overflow',
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'context_length_exceeded', message: 'x' } },
      },
      'error:context_overflow',
    ],
    [
      'nested error',
      {
        type: 'error',
        error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'x' },
      },
      'error:quota',
    ],
    [
      'flat error',
      { type: 'error', code: 'server_error', message: 'x', param: null },
      'error:upstream',
    ],
    ['untyped error', { error: { message: 'boom', code: 500 } }, 'error:upstream'],
  ];
  for (const [name, event, expected] of cases) {
    test(name, () => {
      expect(transcript(run([created, event], ASKED, false))).toBe(`start ${expected}`);
    });
  }

  test('nothing follows an error event', () => {
    const error = { type: 'error', message: 'x' };
    const failed = { type: 'response.failed', response: { status: 'failed' } };
    expect(transcript(run([created, error, failed]))).toBe('start error:upstream');
  });

  test('usage is split into exclusive counts', () => {
    const usage = {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 20 },
      total_tokens: 150,
    };
    expect(run([created, completed([], { usage })])).toContainEqual({
      type: 'usage',
      usage: { input: 30, output: 30, cacheRead: 60, cacheWrite: 10, reasoning: 20 },
    });
  });

  test('unknown events pass as opaque', () => {
    const events = run([created, { type: 'codex.rate_limits', limits: 1 }, completed()]);
    expect(transcript(events)).toBe('start opaque finish:stop end');
  });
});
