/** The earlier response in a vendor's answer: written in its place, all else byte for byte, however it is cut. */

import { describe, expect, test } from 'bun:test';
import { withPreviousResponseId } from '../../../src/codecs/openai-responses/stream/previous-response-id.ts';
import { EditedInput } from '../../../src/gateway/stream/edited-frames.ts';
import type { StreamPipeline } from '../../../src/gateway/stream/pipeline.ts';
import { expectLinear } from '../../support/growth.ts';

describe('withPrevious', () => {
  const ID = 'resp_"é';
  test.each([
    ['answer', '{"id":"r","previous_response_id":null,"big":12345678901234567890}'],
    ['answer', ' { "output":[{"previous_response_id":null}] , "previous_response_id" : "x" }'],
    ['answer', '{"id":"ü","n":1.0}'],
    ['answer', '{}'],
    [
      'frame',
      '{"type":"response.created","response":{"previous_response_id":null,"id":"r"},"n":1}',
    ],
    ['frame', '{"response":{},"type":"response.completed"}'],
    ['frame', '{"response":{"metadata":{"previous_response_id":"mine"},"id":"r"}}'],
  ] as const)('%s %s', (of, json) => {
    const read = JSON.parse(json);
    const object = of === 'frame' ? read.response : read;
    object.previous_response_id = ID;
    const out = withPreviousResponseId(json, ID, of);
    expect(JSON.parse(out)).toEqual(read);
    for (const number of ['12345678901234567890', '1.0']) {
      expect(out.includes(number)).toBe(json.includes(number));
    }
  });

  test.each([
    '[DONE]',
    '',
    '7',
    '{"response":7}',
    '{"response":{',
    '{"delta":"\\"response\\""}',
    '[]',
  ])('leaves %p alone', (json) => expect(withPreviousResponseId(json, ID, 'frame')).toBe(json));

  test('a large object without the field takes linear time', async () => {
    await expectLinear({
      name: 'a response object of many members without the field',
      input: (size) => `{"response":{${'"a":[{}],'.repeat(size / 9)}"z":1}}`,
      run: (json) => withPreviousResponseId(json, 'resp_1', 'frame'),
    });
  });
});

test('frames of a stream arrive as they are but for response objects, cut anywhere', () => {
  const given =
    ': hello\n\n' +
    'event: response.created\ndata: {"type":"response.created","response":{"previous_response_id":null}}\n\n' +
    'event: x\nid: 7\ndata: {"delta":"é"}\n\n' +
    'data: {"type":"response.completed","response":{\ndata: "id":"r"}}\n\n' +
    'data: [DONE]\n\ndata: tail';
  const wanted =
    ': hello\n\n' +
    'event: response.created\ndata: {"type":"response.created","response":{"previous_response_id":"resp_1"}}\n\n' +
    'event: x\nid: 7\ndata: {"delta":"é"}\n\n' +
    'data: {"type":"response.completed","response":{"previous_response_id":"resp_1",\ndata: "id":"r"}}\n\n' +
    // A last frame without its blank line gets one.
    'data: [DONE]\n\ndata: tail\n\n';
  const bytes = Buffer.from(given);
  for (let cut = 1; cut < bytes.length; cut++) {
    const inner = { push: (chunk: Uint8Array) => Buffer.from(chunk), end: () => '' };
    const pipeline = new EditedInput(
      inner as unknown as StreamPipeline,
      { json: (json) => withPreviousResponseId(json, 'resp_1', 'frame') },
      { bytes: 1e6, error: () => new Error('long') },
    );
    const parts = [
      pipeline.push(bytes.subarray(0, cut)),
      pipeline.push(bytes.subarray(cut)),
      pipeline.end(),
    ];
    expect(Buffer.concat(parts.map((part) => Buffer.from(part))).toString()).toBe(wanted);
  }
});

test('an event without end is not waited for', () => {
  const pipeline = new EditedInput(
    { push: () => '', end: () => '' } as unknown as StreamPipeline,
    { json: (json) => json },
    {
      bytes: 100,
      error: () => new Error('long'),
    },
  );
  pipeline.push(Buffer.from(`data: ${'x'.repeat(200)}`));
  expect(pipeline.failure).toBeDefined();
});
