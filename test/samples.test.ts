/** The repository's samples played again on the gateway: requests and answers must equal the files. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { isObject, type Json, type JsonObject } from '../src/lib/json/json.ts';
import { CASES } from './samples/cases.ts';
import {
  allSamples,
  type Played,
  play,
  providerStages,
  recordedSteps,
  type Sample,
  type Stage,
  startStage,
  timeless,
} from './samples/sample-gateway.ts';
import { refuse, say } from './support/fake-upstream/index.ts';

setDefaultTimeout(60_000);

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
}, 120_000);
afterAll(async () => {
  await stage?.stop();
});

const SAMPLES = allSamples();
const named = (word: string): Sample => SAMPLES.find(({ id }) => id.endsWith(`_${word}`))!;
const again = (sample: Sample): Promise<Played> =>
  play(stage, sample.entry, sample.read('client-request') ?? '', recordedSteps(sample));
const json = (text: string | undefined) => JSON.parse(text ?? '') as JsonObject;
const list = (value: Json | undefined) => (Array.isArray(value) ? (value as readonly Json[]) : []);
const notes = ({ meta }: Sample) => meta.notes.map(({ name }) => name);

for (const sample of SAMPLES) {
  test(`${sample.id}: ${sample.meta.about}`, async () => {
    const { meta, read } = sample;
    const played = await again(sample);
    const whole = [...played.sent, played.text].join('\n');
    const reported = [...providerStages(sample, 'request'), read('client-response') ?? ''].join(
      '\n',
    );
    expect(timeless(whole)).toBe(timeless(reported));
    expect(played.status).toBe(meta.status!);
    expect(played.reset).toBe(meta.error !== undefined && meta.status === 200);
    // Everything that the recorder stores, except clocks.
    const storedFields = ({ meta: one }: Pick<Played, 'meta'>) => ({
      entry: one.entry,
      model: one.model,
      target: one.target,
      provider_protocol: one.provider_protocol,
      stream: one.stream,
      hops: one.hops,
      tries: one.tries,
      error: one.error,
      usage: one.usage,
      notes: one.notes,
      edges: one.edges.map(({ stage: edge, status, hop }) => [edge, status, hop]),
      tools: one.tools?.map(({ name, hop, arguments: query, result }) => [
        name,
        hop,
        query,
        result,
      ]),
    });
    expect(storedFields(played)).toEqual(storedFields(sample));
  });
}

describe('the content of the samples', () => {
  test('a search over three hops: the request of each hop, and one client stream without traces of the hops', () => {
    const sample = named('search');
    const { meta, read } = sample;
    expect(meta.hops).toBe(3);
    expect(meta.tools?.map(({ name, hop }) => [name, hop])).toEqual([
      ['web_search', 1],
      ['web_search', 2],
    ]);
    const [first, second, third] = providerStages(sample, 'request').map(
      (text) => list(json(text).messages).length,
    );
    expect([first, second, third]).toEqual([1, 3, 5]);
    // The vendor gets a function in place of the hosted tool, the client gets the hosted blocks.
    expect(list(json(read('provider-request')).tools)[0]).toMatchObject({ type: 'function' });
    const events = read('client-response')!;
    expect(events.match(/"type":"message_start"/g)).toHaveLength(1);
    expect(events.match(/"type":"message_stop"/g)).toHaveLength(1);
    expect(events.match(/"content_block":\{"type":"server_tool_use"/g)).toHaveLength(2);
    expect(events.match(/"content_block":\{"type":"web_search_tool_result"/g)).toHaveLength(2);
    expect(events).not.toContain('"type":"tool_use"');
    expect(events).toContain('"web_search_requests":2');
    expect(events.match(/"type":"web_search_result_location"/g)).toHaveLength(2);
  });

  test('a vendor’s failure: the client gets its status and message, and nothing invented', () => {
    const { meta, read } = named('glm500');
    expect(meta.status).toBe(500);
    expect(read('client-response')).toBe(read('provider-error')!);
    expect(json(read('client-response'))).toEqual({
      error: { code: '500', message: 'Operation failed' },
    });
    expect(meta.error).toMatchObject({
      kind: 'upstream',
      message: 'Operation failed',
      status: 500,
    });
    expect(read('provider-request')).toBe(read('client-request')!);
  });

  test('… which the glm profile prevents: the last result goes out short, the history stays', async () => {
    const body = json(named('glm500').read('client-request'));
    const requests = list(body.messages);
    const glm = (one: JsonObject) => {
      const last = list(one.messages).at(-1);
      const content = isObject(last) ? String(last.content) : '';
      return content.length > 2000 && content.includes('rcc.tool.v1');
    };
    expect(glm(body)).toBe(true);
    stage.upstream.clear();
    stage.upstream.answerWith(({ body: sent }) =>
      glm(sent)
        ? refuse(500, {}, { error: { code: '500', message: 'Operation failed' } })
        : say('Trees, all of them ripe.'),
    );
    const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, model: 'glm/glm-4.7' }),
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('Trees, all of them ripe.');
    const sent = list(stage.upstream.modelRequests.at(-1)?.body.messages);
    expect(sent.slice(0, -1)).toEqual(requests.slice(0, -1));
    const last = sent.at(-1) as JsonObject;
    expect(last).toMatchObject({ role: 'tool', tool_call_id: 'call_2' });
    expect(String(last.content)).toContain('\norchard/row-0/tree-0.txt  ripe\n');
    expect(String(last.content)).not.toMatch(/rcc\.tool|exit_code/);
  });

  test('misordered results: every result follows its call, in order, before the user’s text', () => {
    const sample = named('order');
    const messages = list(json(sample.read('provider-request')).messages);
    expect(messages.map((message) => (message as JsonObject).role)).toEqual([
      'user',
      'assistant',
      'user',
    ]);
    const blocks = list((messages.at(-1) as JsonObject).content) as readonly JsonObject[];
    expect(blocks.map(({ type, tool_use_id }) => tool_use_id ?? type)).toEqual([
      'toolu_a',
      'toolu_b',
      'toolu_c',
      'text',
    ]);
    expect(blocks.map(({ content, is_error }) => [content, is_error])).toEqual([
      ['apples', undefined],
      ['pears', undefined],
      [expect.any(String), true],
      [undefined, undefined],
    ]);
    expect(notes(sample)).toEqual([
      'misplaced_tool_result_relocated',
      'misplaced_tool_result_relocated',
      'orphaned_tool_use_repaired',
    ]);
  });

  test('a leaked call: the client reads a call with typed arguments, and no markup', () => {
    const sample = named('dsml');
    expect(sample.read('provider-response')).toContain('DSML');
    const chunks = sample
      .read('client-response')!
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {'))
      .map((frame) => json(frame.slice('data: '.length)));
    const deltas = chunks.flatMap(({ choices }) =>
      list(choices).map((choice) => (choice as JsonObject).delta as JsonObject),
    );
    const text = deltas.map(({ content }) => content ?? '').join('');
    expect(text).toBe('I will look.');
    const calls = deltas.flatMap(({ tool_calls: parts }) => list(parts)) as readonly JsonObject[];
    const functions = calls.map((part) => part.function as JsonObject);
    expect(functions[0]?.name).toBe('read_file');
    const query = functions.map((part) => part.arguments ?? '').join('');
    expect(JSON.parse(query)).toEqual({ path: 'notes.txt', lines: 20 });
    expect(JSON.stringify(chunks)).toContain('"finish_reason":"tool_calls"');
    expect(sample.read('client-response')).not.toMatch(/DSML|<|invoke/);
    expect(notes(sample)).toEqual(['leaked_call_recovered']);
  });

  test('a cut stream: the client gets the text so far and an error, never an end', () => {
    const { meta, read } = named('cutoff');
    const text = read('client-response')!;
    expect(text).toContain('event: error');
    expect(text).not.toContain('message_stop');
    expect(text).not.toContain('stop_reason":"end_turn"');
    expect(meta.error).toMatchObject({ kind: 'upstream' });
  });

  test('the same protocol on both sides: unchanged bytes, both ways', () => {
    const { read } = named('direct');
    expect(read('provider-request')).toBe(read('client-request')!);
    expect(read('client-response')).toBe(read('provider-response')!);
  });
});

describe('the sample files', () => {
  test('files match their cases, and contain no secret, name or address of a machine', () => {
    for (const made of CASES) {
      expect(SAMPLES.find(({ id }) => id === made.id)?.read('client-request')).toBe(made.body);
    }
    for (const { meta, read } of SAMPLES) {
      const texts = [JSON.stringify(meta), ...meta.edges.map((edge) => read(edge.stage) ?? '')];
      for (const text of texts) {
        expect(text).not.toMatch(/sk-|Bearer|127\.0\.0\.1|localhost|\/home\/|\/tmp\//);
        expect(text.length).toBeLessThan(24_000);
      }
      for (const edge of meta.edges) expect(read(edge.stage)).toBeDefined();
    }
  });
});
