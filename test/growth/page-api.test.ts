/** The page's API on the largest bodies that it reads: other requests have their turn meanwhile. */

import { describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CODECS } from '../../src/app/codecs.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import type { Json } from '../../src/lib/json/json.ts';
import { jsonTextSteps } from '../../src/lib/json/write-steps.ts';
import { runAtOnce, runInSlices, type Steps } from '../../src/lib/loop/steps.ts';
import type { ReadingParts } from '../../src/samples/decode/decode-body.ts';
import { pricesOf } from '../../src/samples/replay/cost.ts';
import type { SampleMeta, SampleStore } from '../../src/samples/sample.ts';
import { exportSample } from '../../src/samples/store/export-import.ts';
import { openIndex } from '../../src/samples/store/index-store.ts';
import { openSampleStore } from '../../src/samples/store/sample-store.ts';
import { conversationOf, eventsView } from '../../src/ui/api/bodies/body-views.ts';
import { diffOf } from '../../src/ui/api/bodies/diff-view.ts';
import type { Recorded } from '../../src/ui/api/bodies/said.ts';
import { samplesPage } from '../../src/ui/api/list.ts';
import { textsOf } from '../../src/ui/api/search/text-search.ts';
import { statsFor } from '../../src/ui/api/stats.ts';
import { expectSlices } from '../support/longest-turn.ts';

const PARTS: ReadingParts = { protocols: CODECS, mend: (body) => body };

/** An agent's history of about six megabytes. @param changed every seventh message says something else */
function history(changed = false): Json {
  const messages: Json[] = [];
  for (let i = 0; messages.length < 6000; i++) {
    const id = `toolu_${i}`;
    const asked = changed && i % 7 === 0 ? 'Other words. ' : 'Some words. ';
    messages.push(
      { role: 'user', content: [{ type: 'text', text: `${i} ${asked.repeat(80)}` }] },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id, name: 'Read', input: { path: 'a/b '.repeat(250) } }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: id, content: 'line\n'.repeat(200) }],
      },
    );
  }
  return { model: 'm', max_tokens: 9, stream: true, messages };
}

/** One message that is long, as a file is that somebody attached. */
const longText = (changed = false): Json => ({
  model: 'm',
  max_tokens: 9,
  messages: [{ role: 'user', content: `${changed ? 'Other' : 'Some'} text.\n`.repeat(500_000) }],
});

function stream(): string {
  const event = (data: Json & { type: string }) =>
    `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const index = 0;
  return [
    event({ type: 'message_start', message: { id: 'a', model: 'm', usage: { input_tokens: 1 } } }),
    event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }),
    event({
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text: 'Some words. ' },
    }).repeat(40_000),
    event({ type: 'content_block_stop', index }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { output_tokens: 1 },
    }),
    event({ type: 'message_stop' }),
  ].join('');
}

/** A store of one exchange with these bodies. */
function storeOf(bodies: Readonly<Record<string, string>>): Recorded {
  const files = new Map(Object.entries(bodies).map(([name, text]) => [name, Buffer.from(text)]));
  const nameOf = (stage: string) =>
    `x_${stage}.${bodies[stage]!.startsWith('event:') ? 'sse' : 'json'}`;
  const edges = [...files].map(([stage, { length: bytes }]) => ({
    stage,
    file: nameOf(stage),
    bytes,
  }));
  const meta = {
    id: 'req_1_a',
    entry: 'anthropic-messages',
    notes: Array.from({ length: 300 }, (_, i) => ({ name: 'mended', where: `/messages/${i}` })),
    edges,
  } as unknown as SampleMeta;
  const read = (_: SampleMeta, stage: string) => files.get(stage);
  const path = (_: SampleMeta, stage: string) => nameOf(stage);
  return { meta, store: { read, path } as unknown as SampleStore, parts: PARTS };
}

/** As the route answers. */
async function answered(steps: Steps<object>): Promise<readonly string[]> {
  return runInSlices(jsonTextSteps((await runInSlices(steps)) as Json));
}

const request = (body: Json) => ({ 'client-request': JSON.stringify(body) });
const changedRequest = (make: (changed?: boolean) => Json) =>
  storeOf({
    'client-request': JSON.stringify(make()),
    'provider-request': JSON.stringify(make(true)),
  });
const ANSWERED = { ...request({ model: 'm', max_tokens: 9, messages: [] }), 'client-response': '' };

describe('no turn of the event loop takes most of the work', () => {
  const conversation = { text: 20_000 };
  const agent = storeOf(request(history()));
  const streamed = storeOf({ ...ANSWERED, 'client-response': stream() });
  const diff = (recorded: Recorded) => diffOf(recorded, {});
  const blanked = ({ store, meta }: ReturnType<typeof storeOf>) =>
    exportSample(meta, (stage) => store.read(meta, stage), true);
  const CASES: Readonly<Record<string, () => Steps<object>>> = {
    'the diff of two long histories': () => diff(changedRequest(history)),
    'the diff of two long texts': () => diff(changedRequest(longText)),
    'the redacted export of a long history': () => blanked(agent),
    'the redacted export of a stream': () => blanked(streamed),
    'a long history as a conversation': () => conversationOf(agent, 'client-request', conversation),
    'a long stream as a conversation': () =>
      conversationOf(streamed, 'client-response', conversation),
    'the events of a long stream': () => eventsView(streamed, 'client-response', { limit: 40_000 }),
    'the texts of a long history for the search': () => textsOf(agent),
  };
  for (const [name, work] of Object.entries(CASES)) {
    let steps: Steps<object>;
    test(
      name,
      () =>
        expectSlices(
          name,
          () => answered(steps),
          () => {
            steps = work();
          },
        ),
      60_000,
    );
  }
});

test('neither the list nor the figures compare all names with a pattern in one go', async () => {
  const root = mkdtempSync(join(tmpdir(), 'hopgate-patterns-'));
  const index = openIndex(root);
  const name = 'a'.repeat(500);
  index.put(
    Array.from({ length: 10_000 }, (_, i) => ({
      ...ROW,
      id: `req_${i}_a`,
      time: NOW + i,
      model: `${name}${i}`,
      target: `p/${name}${i}`,
    })),
  );
  index.close();
  const book = openSampleStore(root, true);
  try {
    const query = {
      model: `*${'a'.repeat(90)}b*`,
      since: String(NOW),
      until: String(NOW + 10_000),
    };
    const viewer = { principal: WITHOUT_KEY, key: '', owner: undefined };
    const prices = pricesOf({ providers: {} });
    const list = () => samplesPage(book, { ...query, limit: 100 }, viewer, prices);
    await expectSlices('the list', list);
    await expectSlices('the figures', () =>
      statsFor(book, { ...query, buckets: 60 }, viewer, prices),
    );
    expect((await list()).rows).toEqual([]);
    const fitting = { ...query, model: `*${'a'.repeat(90)}*7`, buckets: 60 };
    expect((await statsFor(book, fitting, viewer, prices)).all.requests).toBe(1000);
  } finally {
    book.close();
    rmSync(root, { recursive: true, force: true });
  }
}, 60_000);

const NOW = 1_800_000_000_000;

const ROW = {
  entry: 'openai-chat',
  state: 'done',
  status: 200,
  error: '',
  failed: false,
  stream: false,
  tries: 1,
  hops: 1,
  notes: '',
  input_tokens: null,
  output_tokens: null,
  cached_tokens: null,
  cache_write_tokens: null,
  cache_write_1h_tokens: null,
  reasoning_tokens: null,
  first_byte_ms: 1,
  total_ms: 2,
  session: '',
  owner: '',
  client: '',
  made_by: '',
  memory_space: '',
  bytes: 10,
} as const;

test('JSON that is written in steps is what JSON.stringify writes', () => {
  const long = `${'a😀"\\\n\u2028'.repeat(30_000)}\ud83d`;
  const value = {
    long,
    list: [1, null, true, [], {}, [long.slice(1)], 'x'],
    [long.slice(0, 100)]: { left: undefined, '': -0.5, __proto__: 1 },
  } as unknown as Json;
  const pieces = runAtOnce(jsonTextSteps(value));
  expect(pieces.join('')).toBe(JSON.stringify(value));
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(500_000);
});
