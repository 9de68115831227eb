/** The usage that endpoints' answers report, wherever it stands in them. */

import { expect, test } from 'bun:test';
import { UsageScan } from '../../src/endpoints/usage.ts';
import { bytewise, random, whole } from '../support/chunkings.ts';

const EMBEDDINGS = { usage: { prompt_tokens: 8, total_tokens: 8 } };
const VECTOR = { data: [{ embedding: Array.from({ length: 20_000 }, (_, i) => i / 7) }] };

test.each<[string, string, unknown]>([
  ['behind the data', JSON.stringify({ ...VECTOR, ...EMBEDDINGS }), { input: 8, output: 0 }],
  ['before the data', JSON.stringify({ ...EMBEDDINGS, ...VECTOR }), { input: 8, output: 0 }],
  [
    'of images',
    JSON.stringify({
      usage: {
        input_tokens: 50,
        output_tokens: 4160,
        total_tokens: 4210,
        input_tokens_details: { text_tokens: 10, image_tokens: 40, cached_tokens: 20 },
      },
    }),
    { input: 30, output: 4160, cacheRead: 20, parts: { inputText: 10 } },
  ],
  [
    'in the last frame but one of a stream',
    'data: {"choices":[],"usage":null}\n\ndata: {"usage": {"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}\n\ndata: [DONE]\n\n',
    { input: 3, output: 4 },
  ],
  [
    'of rerank',
    '{"results":[],"usage":{"total_tokens":150}}',
    { input: 150, output: 0, unknown: 'output' },
  ],
  [
    'of a duration',
    '{"text":"x","usage":{"type":"duration","seconds":9}}',
    { input: 0, output: 0, unknown: 'output', seconds: 9 },
  ],
  ['of no sense', '{"usage":{"prompt_tokens":-1},"usage":"x"}', undefined],
  ['of none', '{"text":"x"}', undefined],
])('%s', (_where, text, usage) => {
  for (const { cut } of [whole, bytewise, random(5)]) {
    const scan = new UsageScan();
    for (const chunk of cut(Buffer.from(text))) scan.push(chunk);
    expect(scan.found).toEqual(usage as never);
  }
});

/** Where the vendor reports no usage: Groq (pydantic/logfire#2224), whisper servers, and formats that are no JSON. */
const CUES = (text: string) => ({ input: 0, output: 0, unknown: 'output', seconds: Number(text) });
test.each<[string, string, unknown]>([
  [
    'verbose_json',
    '{"task":"transcribe","language":"English","duration":8.47,"text":"a","segments":[{"end":7}],"x_groq":{"id":"r"}}',
    CUES('8.47'),
  ],
  [
    'verbose_json with digits',
    '{"text":"a","duration" : "8.470000286102295"}',
    CUES('8.470000286102295'),
  ],
  [
    'verbose_json with a usage',
    '{"duration":8.47,"text":"a","usage":{"type":"duration","seconds":9}}',
    CUES('9'),
  ],
  ['a text that names a duration', '{"text":"\\"duration\\": 7"}', undefined],
  [
    'srt',
    '1\n00:00:00,000 --> 00:00:02,500\na\n\n2\n00:00:02,500 --> 01:02:03,250\nb --\n\n',
    CUES('3723.25'),
  ],
  ['vtt', 'WEBVTT\n\n00:00.000 --> 00:04.000\na\n\n', CUES('4')],
  [
    'a long srt',
    `${'1\n00:00:00,000 --> 00:00:01,000\na\n\n'.repeat(9000)}2\n00:00:01,000 --> 00:59:59,500\nb\n`,
    CUES('3599.5'),
  ],
  ['an arrow', 'he said a --> b', undefined],
  ['words', 'hello', undefined],
])('the length of %s', (_what, text, usage) => {
  for (const { cut } of [whole, random(5)]) {
    const [plain, transcript] = [new UsageScan(), new UsageScan(true)];
    for (const chunk of cut(Buffer.from(text))) {
      plain.push(chunk);
      transcript.push(chunk);
    }
    expect(transcript.found).toEqual(usage as never);
    if (!text.includes('"usage"')) expect(plain.found).toBeUndefined();
  }
});
