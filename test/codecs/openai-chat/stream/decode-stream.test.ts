/** Decoding of Chat streams with the known deviations of vendors. */

import { describe, expect, test } from 'bun:test';
import { GatewayError } from '../../../../src/conversation/errors.ts';
import { chunk, decodeAll, fold, sse } from '../streams.ts';
import { call, calls, lines, role, transcript } from '../transcript.ts';

describe('reasoning', () => {
  test('reasoning is read from either field, both, or details alone', () => {
    const expected = [
      'start',
      '+0 reasoning',
      '0 hm',
      '-0',
      '+1 text',
      '1 ok',
      '-1',
      'finish stop',
      'end',
    ];
    const end = [chunk({ content: 'ok' }), chunk({}, 'stop'), '[DONE]'];
    for (const delta of [
      { reasoning_content: 'hm' },
      { reasoning: 'hm', content: '' },
      // Copilot
      { reasoning_text: 'hm' },
      { reasoning_content: null, reasoning: 'hm' },
      { reasoning: 'hm', reasoning_content: 'hm' },
      { reasoning: 'hm', reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] },
      { reasoning_details: [{ type: 'reasoning.text', text: 'hm' }] },
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] },
      { content: [{ type: 'thinking', thinking: 'hm' }] },
      // Databricks: github.com/posit-dev/chatlas/pull/397.
      { content: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] }] },
      { content: [{ type: 'reasoning', text: 'hm' }] },
    ]) {
      expect(transcript([chunk(delta), ...end])).toEqual(expected);
    }
  });

  test('a signature seals the whole joined list of details', () => {
    const detail = (more: object) =>
      chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...more }] });
    const { blocks } = fold(
      decodeAll(
        sse(
          detail({ text: 'a' }),
          detail({ text: 'b' }),
          detail({ signature: 'S' }),
          chunk({ content: 'x' }, 'stop'),
          '[DONE]',
        ),
      ),
    );
    expect(blocks[0]).toEqual({
      type: 'reasoning',
      text: 'ab',
      sealed: {
        protocol: 'openai-chat',
        provider: 'vendor',
        kind: 'signature',
        value: JSON.stringify([{ type: 'reasoning.text', index: 0, text: 'ab', signature: 'S' }]),
      },
    });
  });

  test('encrypted details after the answer become a separate block', () => {
    expect(
      transcript([
        chunk({ content: 'x' }),
        chunk(
          { content: '', reasoning_details: [{ type: 'reasoning.encrypted', data: 'E' }] },
          'stop',
        ),
        '[DONE]',
      ]),
    ).toEqual([
      'start',
      '+0 text',
      '0 x',
      '-0',
      '+1 reasoning',
      '1 sealed encrypted',
      '-1',
      'finish stop',
      'end',
    ]);
  });

  test('think tags stay in the text', () => {
    expect(transcript([chunk({ content: '<think>a</think>b' }, 'stop'), '[DONE]'])[2]).toBe(
      '0 <think>a</think>b',
    );
  });
});

describe('first and last messages', () => {
  test('a first chunk without choices or id starts nothing; filter results are not an answer', () => {
    const azure = {
      id: '',
      model: '',
      object: '',
      created: 0,
      choices: [],
      prompt_filter_results: [{}],
    };
    expect(transcript([azure, chunk({ content: 'x' }), chunk({}, 'stop'), '[DONE]'])).toEqual([
      'start',
      '+0 text',
      '0 x',
      '-0',
      'finish stop',
      'end',
    ]);
  });

  test('a finish without [DONE] is complete, [DONE] without a finish too', () => {
    expect(transcript([chunk({ content: 'x' }, 'stop')]).slice(-2)).toEqual(['finish stop', 'end']);
    expect(transcript([chunk({ content: 'x' }), '[DONE]']).slice(-2)).toEqual([
      'finish stop',
      'end',
    ]);
  });

  test('a stream that just stops closes its block and never ends', () => {
    expect(transcript([chunk({ content: 'x' })])).toEqual(['start', '+0 text', '0 x', '-0']);
    expect(transcript([role, calls(call(0, 'a', 'f', '{"x'), call(1, 'b', 'g', ''))])).toEqual([
      'start',
      '+0 tool-call a f',
      '0 {"x',
      '-0',
      '+1 tool-call b g',
      '-1',
    ]);
  });

  test('[DONE] alone is not an answer', () => {
    expect(transcript(['[DONE]'])).toEqual([]);
    expect(transcript([])).toEqual([]);
  });

  test('two finish chunks are one finish', () => {
    expect(
      transcript([chunk({ content: 'x' }, 'stop'), chunk({ content: '' }, 'stop'), '[DONE]']),
    ).toEqual(['start', '+0 text', '0 x', '-0', 'finish stop', 'end']);
  });

  test("vendors' finish reasons are decoded", () => {
    for (const [reason, meaning] of [
      ['stop', 'stop'],
      ['length', 'length'],
      ['model_length', 'length'],
      ['MAX_TOKENS', 'length'],
      ['content_filter', 'content-filter'],
      ['sensitive', 'content-filter'],
      ['model_context_window_exceeded', 'context-overflow'],
      ['eos', 'stop'],
      ['tool_calls', 'stop'],
      ['', 'stop'],
    ]) {
      expect(transcript([chunk({ content: 'x' }), chunk({}, reason), '[DONE]']).at(-2)).toBe(
        `finish ${meaning}`,
      );
    }
  });

  test('finish reasons that mean a failure are errors', () => {
    for (const reason of ['error', 'network_error', 'insufficient_system_resource']) {
      expect(transcript([chunk({ content: 'x' }), chunk({}, reason), '[DONE]']).slice(-2)).toEqual([
        '-0',
        'error',
      ]);
    }
  });

  test('a refusal with text is a refusal', () => {
    expect(transcript([chunk({ refusal: 'no' }), chunk({}, 'stop'), '[DONE]'])).toEqual([
      'start',
      '+0 refusal',
      '0 no',
      '-0',
      'finish refusal',
      'end',
    ]);
  });

  // https://github.com/abundantbeing/hermes-browser-extension/issues/11
  test('a whole message behind its pieces is not read a second time', () => {
    const said = { role: 'assistant', content: 'hi', tool_calls: [call(0, 'a', 'f', '{}')] };
    const last = {
      id: 'c',
      object: 'chat.completion',
      choices: [{ message: said, finish_reason: 'tool_calls' }],
    };
    const first = [
      chunk({ content: 'h' }),
      chunk({ content: 'i' }),
      calls(call(0, 'a', 'f', '{}')),
    ];
    expect(transcript([...first, last, '[DONE]'])).toEqual([
      ...['start', '+0 text', '0 h', '0 i', '-0'],
      ...['+1 tool-call a f', '1 {}', '-1', 'finish tool-calls', 'end'],
    ]);
  });

  test('a whole reply inside a stream is read too', () => {
    const whole = {
      id: 'x',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    };
    expect(transcript([whole, '[DONE]'])).toEqual([
      'start',
      '+0 text',
      '0 hi',
      '-0',
      'finish stop',
      'end',
    ]);
  });
});

describe('usage', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const counted = { input: 10, output: 5 };
  const usageOf = (...data: readonly unknown[]) => fold(decodeAll(sse(...data, '[DONE]'))).usage;

  test('usage is read from its own chunk, the finish chunk, the choice, or every chunk', () => {
    const text = chunk({ content: 'x' });
    const end = chunk({}, 'stop');
    expect(usageOf(text, end, { ...chunk({}), choices: [], usage })).toEqual(counted);
    expect(usageOf(text, chunk({}, 'stop', { usage }))).toEqual(counted);
    expect(usageOf(text, { ...end, choices: [{ ...end.choices[0], usage }] })).toEqual(counted);
    expect(
      usageOf(
        chunk({ content: 'x' }, null, { usage: { ...usage, completion_tokens: 1 } }),
        chunk({}, 'stop', { usage }),
      ),
    ).toEqual(counted);
    expect(usageOf(text, chunk({}, 'stop', { x_groq: { usage } }))).toEqual(counted);
    expect(usageOf(chunk({ content: 'x' }, null, { usage: null }), end)).toBeUndefined();
  });

  test('cached and written tokens are read under every name', () => {
    const with_ = (more: object) =>
      usageOf(chunk({ content: 'x' }, 'stop', { usage: { ...usage, ...more } }));
    const cached = { input: 6, output: 5, cacheRead: 4 };
    expect(with_({ prompt_tokens_details: { cached_tokens: 4 } })).toEqual(cached);
    expect(with_({ prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 })).toEqual(cached);
    // LiteLLM, BerriAI/litellm#11789
    expect(
      with_({ prompt_tokens_details: { cached_tokens: 0 }, cache_read_input_tokens: 4 }),
    ).toEqual(cached);
    expect(with_({ cached_tokens: 4 })).toEqual(cached);
    expect(with_({ prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 } })).toEqual({
      input: 3,
      output: 5,
      cacheRead: 4,
      cacheWrite: 3,
    });
    expect(with_({ completion_tokens_details: { reasoning_tokens: 2 } })).toEqual({
      input: 10,
      output: 3,
      reasoning: 2,
    });
    expect(with_({ completion_tokens_details: { reasoning_tokens: 9 } })).toEqual({
      input: 10,
      output: 5,
      reasoning: 9,
    });
  });
});

describe('failures inside a stream', () => {
  const errorOf = (bytes: Uint8Array) => {
    const last = decodeAll(bytes).at(-1)!;
    expect(last.type).toBe('error');
    return (last as { error: GatewayError }).error;
  };

  test('error chunks, error events and errors in a choice are failures', () => {
    const groq = new TextEncoder().encode(
      'event: error\ndata: {"error":{"message":"Tool call validation failed","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"{}","status_code":400}}\n\n',
    );
    const error = errorOf(groq);
    expect(error).toMatchObject({
      message: 'Tool call validation failed',
      code: 'tool_use_failed',
      status: 400,
      fromUpstream: true,
    });
    expect(error.details).toMatchObject({ failed_generation: '{}' });
    expect(
      errorOf(sse(chunk({ content: 'x' }), { error: { code: 429, message: 'slow' } }, '[DONE]'))
        .kind,
    ).toBe('rate_limit');
    expect(
      errorOf(
        sse(
          chunk({ content: 'x' }),
          { ...chunk({}, 'error'), error: { code: 502, message: 'gone' } },
          '[DONE]',
        ),
      ).message,
    ).toBe('gone');
    expect(
      errorOf(sse({ choices: [{ error: { code: 503, message: 'busy' }, delta: {} }] })).kind,
    ).toBe('overloaded');
    expect(errorOf(sse({ error: 'plain words' })).message).toBe('plain words');
  });

  test('nothing follows an error', () => {
    const events = decodeAll(
      sse(chunk({ content: 'x' }), { error: { message: 'a' } }, chunk({ content: 'y' }), '[DONE]'),
    );
    expect(lines(events)).toEqual(['start', '+0 text', '0 x', '-0', 'error']);
  });

  test('a chunk that is not JSON throws an upstream error', () => {
    expect(() => decodeAll(sse('{"choices":['))).toThrow(GatewayError);
  });

  test('error: null beside an answer is no error', () => {
    expect(transcript([{ ...chunk({ content: 'x' }, 'stop'), error: null }, '[DONE]']).at(-1)).toBe(
      'end',
    );
  });
});

describe('data beside the answer', () => {
  test('further choices and audio pass whole and separate', () => {
    const second = {
      ...chunk({ content: 'other' }),
      choices: [{ index: 1, delta: { content: 'other' } }],
    };
    const audio = chunk({ audio: { data: 'AA' } });
    expect(
      transcript([chunk({ content: 'x' }), second, audio, chunk({}, 'stop'), '[DONE]']),
    ).toEqual(['start', '+0 text', '0 x', 'opaque', 'opaque', '-0', 'finish stop', 'end']);
  });

  test('annotations cite the open text; sources beside choices cite it at its end', () => {
    const annotations = [
      {
        type: 'url_citation',
        url_citation: { url: 'https://a', title: 'A', start_index: 0, end_index: 1 },
      },
    ];
    expect(
      transcript([chunk({ content: 'x' }), chunk({ annotations }), chunk({}, 'stop'), '[DONE]']),
    ).toContain('0 cites https://a');
    expect(
      transcript([
        chunk({ content: 'x' }, null, { citations: ['https://p'] }),
        chunk({}, 'stop'),
        '[DONE]',
      ]),
    ).toContain('0 cites https://p');
    expect(
      transcript([
        chunk({ content: 'x' }),
        chunk({}, 'stop', { web_search: [{ link: 'https://g', title: 'G' }] }),
        '[DONE]',
      ]),
    ).toEqual(['start', '+0 text', '0 x', '0 cites https://g', '-0', 'finish stop', 'end']);
  });

  test('log-probabilities follow their delta', () => {
    const events = decodeAll(
      sse(
        {
          ...chunk({}),
          choices: [
            {
              index: 0,
              delta: { content: 'x' },
              logprobs: { content: [{ token: 'x', logprob: -1 }] },
            },
          ],
        },
        chunk({}, 'stop'),
        '[DONE]',
      ),
    );
    expect(events.map((event) => event.type)).toEqual([
      'start',
      'block-start',
      'delta',
      'logprobs',
      'block-stop',
      'finish',
      'end',
    ]);
  });
});
