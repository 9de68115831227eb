/** Requests to send again: requests of samples, with their recorded answers. */

import { expect, test } from 'bun:test';
import { fromSample } from '../../../src/samples/replay/source.ts';
import type { SampleMeta, SampleState } from '../../../src/samples/sample.ts';

const FILES: Readonly<Record<string, string>> = {
  'client-request': '{"model":"m","messages":[]}',
  'client-response': '{"error":{"mess',
};

const book = { read: (_: SampleMeta, stage: string) => Buffer.from(FILES[stage] ?? '') };

const meta = (state: SampleState): SampleMeta => ({
  id: 'req_1_a',
  entry: 'openai-chat',
  state,
  time: 1,
  model: 'm',
  status: 500,
  stream: false,
  notes: [],
  masked: 0,
  edges: [
    { stage: 'client-request', file: 'req_1_a_client-request.json', bytes: 27 },
    { stage: 'client-response', file: 'req_1_a_client-response.json', bytes: 15, status: 500 },
  ],
});

test('a partial answer of a running exchange is not taken for the failure to reproduce', () => {
  expect(fromSample(book, meta('open')).answer).toBeUndefined();
  expect(fromSample(book, meta('done')).answer?.status).toBe(500);
});
