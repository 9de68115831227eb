/** The sentence that a Messages client reads of a full context: by one it asks for a shorter answer, by the other it compacts. */

import { expect, test } from 'bun:test';
import { overflowMessage } from '../../../../src/codecs/anthropic-messages/reply/errors.ts';

type Row = readonly [who: string, words: string, counts: readonly [number, number, number]];

/** The prompt fits, the answer that is asked for does not: prompt, `max_tokens`, window. */
const CAPS: readonly Row[] = [
  [
    'vLLM',
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 17459 input tokens (32000 > 32768 - 17459). (parameter=max_tokens, value=32000)",
    [17_459, 32_000, 32_768],
  ],
  [
    'vLLM, at least',
    "This model's maximum context length is 16384 tokens. However, you requested 2048 output tokens and your prompt contains at least 15000 input tokens, for a total of at least 17048 tokens.",
    [15_000, 2048, 16_384],
  ],
  [
    'DeepSeek',
    "This model's maximum context length is 102400 tokens. However, you requested 102772 tokens (70772 in the messages, 32000 in the completion).",
    [70_772, 32_000, 102_400],
  ],
  [
    'OpenAI completions',
    "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (1000 in your prompt; 4000 for the completion). Please reduce your prompt; or completion length.",
    [1000, 4000, 4097],
  ],
  [
    'OpenRouter',
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (100000 of text input, 8000 of tool input, 32000 in the output). Please reduce the length of either one.",
    [108_000, 32_000, 131_072],
  ],
  [
    'SGLang',
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 1000 tokens from the input messages and 8000 tokens for the completion.",
    [1000, 8000, 8192],
  ],
  [
    'TGI',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 4120 `inputs` tokens and 5000 `max_new_tokens`',
    [4120, 5000, 8193],
  ],
  [
    'TabbyAPI',
    'Request length 60000 + 8192 is greater than max_seq_len 65536',
    [60_000, 8192, 65_536],
  ],
];

test.each(CAPS)('%s: max_tokens is too much', (_, words, [prompt, asked, window]) => {
  expect(overflowMessage(words)).toBe(
    `input length and \`max_tokens\` exceed context limit: ${prompt} + ${asked} > ${window}, decrease input length or \`max_tokens\` and try again`,
  );
});

/** The prompt alone is too long. */
test.each([
  ['TabbyAPI', 'Request length 71599 + 2048 is greater than max_seq_len 65536', 71_599, 65_536],
  [
    'Cohere',
    'too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt',
    4292,
    4081,
  ],
  [
    'Bedrock Titan',
    '400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279',
    9279,
    8192,
  ],
  [
    'Kimi',
    'Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)',
    269_030,
    262_144,
  ],
  [
    'Gemini',
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    1_196_265,
    1_048_575,
  ],
  [
    'OpenAI',
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please reduce the length of the messages.',
    509_178,
    272_000,
  ],
  [
    'vLLM',
    "You passed 65537 input tokens and requested 0 output tokens. However, the model's context length is only 65536 tokens",
    65_537,
    65_536,
  ],
])('%s: the prompt is too long', (_, words, prompt, window) => {
  expect(overflowMessage(words)).toBe(`prompt is too long: ${prompt} tokens > ${window} maximum`);
});

test("Anthropic's own sentences, and words without counts, stay", () => {
  for (const words of [
    'prompt is too long: 213462 tokens > 200000 maximum',
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
  ]) {
    expect(overflowMessage(words)).toBe(words);
  }
  expect(overflowMessage('Prompt 超长')).toBe('prompt is too long: Prompt 超长');
});
