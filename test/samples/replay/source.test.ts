/** What is sent again: requests of samples, and what is known of how they were answered. */

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

test('the half of an answer that is still coming is not taken for the failure to look for', () => {
  expect(fromSample(book, meta('open')).answer).toBeUndefined();
  expect(fromSample(book, meta('done')).answer?.status).toBe(500);
});
