/** The comparison by meaning, over what a real gateway recorded: another protocol alone is no change, a real change is one. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import type { Note } from '../../../src/conversation/notes.ts';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import type { Json } from '../../../src/lib/json/json.ts';
import { pointersIn } from '../../../src/lib/json/pointer.ts';
import { runAtOnce } from '../../../src/lib/loop/steps.ts';
import { compareMeaning, type Side } from '../../../src/samples/compare/meaning.ts';
import type { MeaningDiff } from '../../../src/samples/compare/types.ts';
import type { SampleRow } from '../../../src/samples/sample.ts';
import type { DiffView } from '../../../src/ui/api/api.ts';
import { threeProviders } from '../../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { until } from '../../support/until.ts';

const TOOLS = Array.from({ length: 28 }, (_, i) => ({
  name: `Tool${i}`,
  description: `Does thing ${i}.`,
  input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
}));

const AGENT = {
  model: 'via-chat',
  max_tokens: 900,
  system: [
    { type: 'text', text: 'You are an agent.' },
    { type: 'text', text: 'Answer in one line.\n\nUse tools.' },
  ],
  tools: TOOLS,
  messages: [
    { role: 'user', content: 'Read a.txt' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I read it.' },
        { type: 'tool_use', id: 'toolu_1', name: 'Tool1', input: { path: 'a.txt' } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'alpha' }] },
        { type: 'text', text: 'What is in it?' },
      ],
    },
  ],
};

const titles = ({ parts }: MeaningDiff) => parts.map(({ title }) => title);
const changes = ({ parts }: MeaningDiff) =>
  parts.flatMap((part) => part.changes.map(({ kind, what, rules }) => [kind, what, [...rules]]));

describe('what a gateway recorded', () => {
  let upstream: FakeUpstream;
  let gateway: InProcess;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    gateway = await startInProcess(threeProviders(upstream, { samples: { mode: 'all' } }));
  });
  afterAll(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  async function meaningOf(path: string, body: object, query = ''): Promise<MeaningDiff> {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify(body),
    });
    await response.text();
    const id = response.headers.get('x-hopgate-request-id');
    const sample = `${gateway.url}/ui/api/samples/${id}`;
    // The recorder writes a moment later.
    await until(async () => {
      const found = await fetch(sample);
      return found.ok && ((await found.json()) as { row: SampleRow }).row.state === 'done';
    });
    const { meaning } = (await (await fetch(`${sample}/diff${query}`)).json()) as DiffView;
    return meaning!;
  }

  test('an agent’s request in another protocol is the same but for its model', async () => {
    upstream.enqueue(say('alpha'));
    const meaning = await meaningOf('/v1/messages', AGENT);
    expect(meaning.translated).toBe(true);
    expect(titles(meaning)).toEqual([
      expect.stringMatching(/^Model: via-chat → /),
      'System prompt: the same, in another form',
      '28 tools: the same, in another form',
      expect.stringMatching(/^[34] messages: the same, in another form$/),
      expect.stringMatching(/settings: (the same|\d the same; 1 added)/),
    ]);
    const real = changes(meaning).filter(([, what]) => what !== 'model');
    // Usage at the end of a stream is asked for, whether it streams or not.
    for (const [, what] of real) expect(what).toBe('stream_options');
  });

  test('a parameter that the vendor’s protocol lacks is a change, named with its rule', async () => {
    upstream.enqueue(say('alpha'));
    const meaning = await meaningOf('/v1/messages', { ...AGENT, top_k: 5 });
    expect(changes(meaning)).toContainEqual(['removed', 'top_k', ['parameter_dropped']]);
  });

  test('an answer in another protocol says the same', async () => {
    upstream.enqueue(say('Alpha it is.'));
    const query = '?a=provider-response&b=client-response';
    const meaning = await meaningOf('/v1/messages', AGENT, query);
    expect(titles(meaning)).toContain('Answer, 1 part: the same, in another form');
  });
});

function side(protocol: ProtocolName, value: Json): Side {
  const conversation = CODECS[protocol].decodeRequest(value);
  return { protocol, conversation, places: runAtOnce(pointersIn(value, 12)) };
}

const compare = (a: object, b: object, ...notes: Note[]) =>
  runAtOnce(
    compareMeaning(side('anthropic-messages', a as Json), side('openai-chat', b as Json), notes),
  );

const MESSAGES = {
  model: 'm',
  max_tokens: 5,
  messages: [{ role: 'user', content: 'one two three' }],
};
const CHAT = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'one two three' }] };

describe('a change is not taken for another form', () => {
  test('another word in a message is a change of that message', () => {
    const changed = { ...CHAT, messages: [{ role: 'user', content: 'one 2 three' }] };
    const meaning = compare(MESSAGES, changed);
    const [change] = meaning.parts.flatMap((part) => part.changes);
    expect(change).toMatchObject({
      kind: 'changed',
      what: 'message 1 (user), text',
      before: 'one two three',
      after: 'one 2 three',
    });
  });

  test('white space that was changed inside a text is a change', () => {
    const changed = { ...CHAT, messages: [{ role: 'user', content: 'one two  three' }] };
    expect(changes(compare(MESSAGES, changed))).toEqual([
      ['changed', 'message 1 (user), text', []],
    ]);
  });

  test('a removed message is one change, and the ones behind it are the same', () => {
    const talk = ['a', 'b', 'c', 'd', 'e', 'f'].map((content, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content,
    }));
    const meaning = compare(
      { ...MESSAGES, messages: talk },
      { ...CHAT, messages: talk.filter(({ content }) => content !== 'b') },
    );
    expect(changes(meaning)).toContainEqual(['removed', 'message 2 (assistant), text', []]);
    expect(changes(meaning).some(([, what]) => String(what).startsWith('message 5'))).toBe(false);
  });

  test('a tool with another schema and an added tool are told by name, with the rule that names the tool', () => {
    const tool = (name: string, type: string) => ({
      type: 'function',
      function: { name, parameters: { type: 'object', properties: { path: { type } } } },
    });
    const own = (name: string) => ({
      name,
      input_schema: { type: 'object', properties: { path: { type: 'string' } } },
    });
    const meaning = compare(
      { ...MESSAGES, tools: [own('Read'), own('Write')] },
      {
        ...CHAT,
        tools: [tool('Write', 'string'), tool('Read', 'number'), tool('web_search', 'string')],
      },
      { name: 'server_tool_offered', where: '/tools', what: 'web_search' },
      { name: 'schema_cleaned', where: '/tools/Read' },
    );
    expect(changes(meaning)).toEqual([
      ['changed', 'tool Read', ['schema_cleaned']],
      ['added', 'tool web_search', ['server_tool_offered']],
    ]);
    expect(meaning.otherRules).toEqual([]);
  });

  test('a rule about cache marks or reasoning is not blamed for a changed text', () => {
    const changed = { ...CHAT, messages: [{ role: 'user', content: 'one 2 three' }] };
    const meaning = compare(
      MESSAGES,
      changed,
      { name: 'cache_control_dropped', where: '/messages' },
      { name: 'reasoning_seal_dropped', where: '/messages' },
      { name: 'content_bridged', where: '/messages' },
    );
    expect(changes(meaning)).toEqual([['changed', 'message 1 (user), text', ['content_bridged']]]);
    expect(meaning.otherRules).toEqual(['cache_control_dropped', 'reasoning_seal_dropped']);
  });

  test('another answer to a call is a change, another id is none', () => {
    const history = (id: string, result: string) => ({
      ...MESSAGES,
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [{ type: 'tool_use', id, name: 'T', input: { a: 1 } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: result }] },
      ],
    });
    const chat = (id: string, result: string) => ({
      ...CHAT,
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id, type: 'function', function: { name: 'T', arguments: '{ "a": 1 }' } }],
        },
        { role: 'tool', tool_call_id: id, content: result },
      ],
    });
    expect(changes(compare(history('toolu_1', 'ok'), chat('call_9', 'ok')))).toEqual([]);
    expect(changes(compare(history('toolu_1', 'ok'), chat('call_9', 'no')))).toEqual([
      ['changed', 'message 3 (user), result of T', []],
    ]);
  });
});

test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'])(
  'a member of the name %s is compared like any other',
  (name) => {
    const text = (value: number) =>
      `{"model":"m","messages":[{"role":"user","content":"Hi."}],"${name}":${value}}`;
    const codec = CODECS['openai-chat'];
    const side = (value: number) =>
      ({
        protocol: codec.name,
        places: new Map(),
        conversation: codec.decodeRequest(JSON.parse(text(value))),
      }) as unknown as Side;
    expect(() => runAtOnce(compareMeaning(side(1), side(2), []))).not.toThrow();
  },
);
