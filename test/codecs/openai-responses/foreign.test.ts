/** Generated conversations of other protocols become requests that the API accepts. */

import { describe, expect, test } from 'bun:test';
import * as fc from 'fast-check';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import type {
  Block,
  Conversation,
  MediaBlock,
  Settings,
  Tool,
  ToolKind,
  Turn,
} from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { checkResponses } from '../../support/fake-upstream/check-responses.ts';
import { conversation, plain, requests, target } from './material.ts';

const anyText = fc.string({ maxLength: 12 });
const name = fc.oneof(
  fc.constantFrom('read', 'exec_command', 'mcp__very_long__'.padEnd(90, 'x'), 'with.dots:and/é'),
  fc.string({ minLength: 1, maxLength: 8 }),
);

const media: fc.Arbitrary<MediaBlock> = fc.record({
  type: fc.constant('media' as const),
  media: fc.constantFrom('image' as const, 'document' as const, 'audio' as const),
  source: fc.oneof(
    fc.constant({ type: 'base64' as const, mediaType: 'image/png', data: 'aGk=' }),
    fc.constant({ type: 'url' as const, url: 'https://example.com/a.png' }),
    fc.constant({ type: 'file-id' as const, id: 'file_1' }),
    fc.constant({ type: 'text' as const, mediaType: 'text/plain', text: 'plain' }),
  ),
  title: fc.option(anyText, { nil: undefined }),
  detail: fc.option(fc.constantFrom('low', 'high'), { nil: undefined }),
});

const opaque: fc.Arbitrary<Block> = fc.record({
  type: fc.constant('opaque' as const),
  name: fc.constant('search_result'),
  text: fc.option(anyText, { nil: undefined }),
  wire: fc.constant({ protocol: 'anthropic-messages' as const, value: { type: 'search_result' } }),
});

const textBlock: fc.Arbitrary<Block> = anyText.map((text) => ({ type: 'text', text }));

const reasoning: fc.Arbitrary<Block> = fc.record({
  type: fc.constant('reasoning' as const),
  text: anyText,
  summary: fc.option(fc.boolean(), { nil: undefined }),
  sealed: fc.option(
    fc.record({
      protocol: fc.constantFrom('anthropic-messages' as const, 'openai-responses' as const),
      provider: fc.option(fc.constantFrom('vendor', 'other'), { nil: undefined }),
      kind: fc.constantFrom('signature' as const, 'encrypted' as const, 'redacted' as const),
      value: anyText,
    }),
    { nil: undefined },
  ),
});

interface Call {
  readonly name: string;
  readonly kind: ToolKind;
  readonly input: string;
  readonly isError: boolean;
  readonly content: readonly Block[];
}

const call: fc.Arbitrary<Call> = fc.record({
  name,
  kind: fc.constantFrom('function' as const, 'custom' as const),
  input: fc.constantFrom('', '{}', '{"a":1}', '{"broken":'),
  isError: fc.boolean(),
  content: fc.array(fc.oneof(textBlock, media, opaque), { maxLength: 3 }),
});

/** A round: the user's text, the assistant's text and calls, and every call's result. */
const round = fc.record({
  system: fc.option(anyText, { nil: undefined }),
  user: fc.array(fc.oneof(textBlock, media, opaque), { minLength: 1, maxLength: 3 }),
  assistant: fc.array(fc.oneof(textBlock, reasoning, opaque), { maxLength: 4 }),
  calls: fc.array(call, { maxLength: 3 }),
  hosted: fc.boolean(),
  mixed: fc.boolean(),
  longIds: fc.boolean(),
});

const settings: fc.Arbitrary<Settings> = fc.record(
  {
    stream: fc.boolean(),
    maxTokens: fc.integer({ min: 1, max: 64_000 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topK: fc.integer({ min: 1, max: 50 }),
    stop: fc.array(anyText, { maxLength: 3 }),
    seed: fc.integer(),
    n: fc.constantFrom(1, 2),
    logitBias: fc.constant({ '1': 2 }),
    logprobs: fc.constant({ top: 3 }),
    presencePenalty: fc.constant(0.5),
    toolChoice: fc.oneof(
      fc.constantFrom(
        { type: 'auto' as const },
        { type: 'none' as const },
        { type: 'required' as const },
      ),
      fc.record({
        type: fc.constant('tool' as const),
        name,
        kind: fc.constant('function' as const),
      }),
    ),
    parallelTools: fc.boolean(),
    reasoning: fc.record(
      {
        enabled: fc.boolean(),
        effort: fc.constantFrom('none', 'low', 'high', 'max'),
        budget: fc.integer({ min: 1024, max: 60_000 }),
        adaptive: fc.boolean(),
        display: fc.constantFrom('summarized', 'omitted', 'updates'),
      },
      { requiredKeys: [] },
    ),
    format: fc.constantFrom(
      { type: 'text' as const },
      { type: 'json' as const },
      { type: 'schema' as const, name: 'not a legal name!', schema: { type: 'object' } },
    ),
    verbosity: fc.constantFrom('low', 'high'),
    metadata: fc.constant({ user_id: 'u' }),
    user: fc.constantFrom('someone', 'x'.repeat(200)),
    serviceTier: fc.constantFrom('auto', 'standard_only'),
    cacheKey: fc.constantFrom('key', 'k'.repeat(100)),
    rest: fc.constant({ context_management: { edits: [] }, safety_identifier: 'who' }),
  },
  { requiredKeys: ['stream'] },
);

const tool: fc.Arbitrary<Tool> = fc.oneof(
  fc.record({
    type: fc.constant('function' as const),
    name,
    namespace: fc.option(fc.constantFrom('ns', 'clock'), { nil: undefined }),
    description: fc.option(anyText, { nil: undefined }),
    schema: fc.option(fc.constantFrom<JsonObject>({}, { type: 'object' }), { nil: undefined }),
    deferred: fc.option(fc.constant(true), { nil: undefined }),
  }),
  fc.record({
    type: fc.constant('custom' as const),
    name,
    format: fc.option(
      fc.constant({ type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } }),
      { nil: undefined },
    ),
  }),
  fc.constant({
    type: 'hosted' as const,
    name: 'web_search',
    kind: 'web_search_20250305',
    options: {
      max_uses: 3,
      allowed_domains: ['a.com'],
      user_location: { type: 'approximate', city: 'X' },
    },
  }),
);

const profile: fc.Arbitrary<Profile> = fc.record(
  {
    name: fc.constant('p'),
    images: fc.boolean(),
    imagesInResults: fc.boolean(),
    documents: fc.boolean(),
    strictTools: fc.boolean(),
    jsonSchema: fc.boolean(),
    parallelToolsParam: fc.boolean(),
    hostedTools: fc.constantFrom(['web_search'], []),
    toolChoices: fc.constantFrom(['auto' as const], ['auto' as const, 'none' as const]),
    dropParams: fc.constantFrom(['temperature', 'input'], []),
  },
  { requiredKeys: ['name'] },
);

type Round = typeof round extends fc.Arbitrary<infer T> ? T : never;

function turnsOf(rounds: readonly Round[]): readonly Turn[] {
  return rounds.flatMap((r, i) => {
    const ids = r.calls.map((_, k) =>
      r.longIds ? `toolu_${'9'.repeat(80)}_${i}_${k}` : `c.${i}:${k}`,
    );
    const calls: Block[] = r.calls.map((c, k) => ({
      type: 'tool-call',
      id: ids[k]!,
      name: c.name,
      kind: c.kind,
      input: c.input,
      by: 'client',
    }));
    const hosted: Block[] = r.hosted
      ? [
          {
            type: 'tool-call',
            id: `s${i}`,
            name: 'web_search',
            kind: 'function',
            input: '{}',
            by: 'provider',
          },
          {
            type: 'tool-result',
            callId: `s${i}`,
            kind: 'function',
            content: [],
            isError: false,
            by: 'provider',
          },
        ]
      : [];
    const results: Block[] = r.calls.map((c, k) => ({
      type: 'tool-result',
      callId: ids[k]!,
      kind: c.kind,
      content: c.content,
      isError: c.isError,
      by: 'client',
    }));
    const messages = r.mixed ? [...calls, ...r.assistant] : [...r.assistant, ...calls];
    const turns: Turn[] = [{ role: 'user', blocks: r.user }];
    if (r.system !== undefined) {
      turns.push({
        role: i % 2 ? 'system' : 'developer',
        blocks: [{ type: 'text', text: r.system }],
      });
    }
    turns.push({ role: 'assistant', blocks: [...hosted, ...messages] });
    // Messages puts results and the next text into one turn; text may even come first.
    if (results.length > 0)
      turns.push({ role: 'user', blocks: [{ type: 'text', text: 'now' }, ...results] });
    return turns;
  });
}

const foreign: fc.Arbitrary<Conversation> = fc
  .record({
    system: fc.array(textBlock, { maxLength: 2 }),
    leading: fc.boolean(),
    rounds: fc.array(round, { minLength: 1, maxLength: 3 }),
    tools: fc.array(tool, { maxLength: 4 }),
    settings,
    protocol: fc.constantFrom('openai-chat' as const, 'anthropic-messages' as const),
  })
  .map(({ system, leading, rounds, tools, settings: set, protocol }) => {
    const first: Turn[] = leading
      ? [{ role: 'system', blocks: [{ type: 'text', text: 'Be brief.' }] }]
      : [];
    const parts = {
      model: 'asked',
      system,
      turns: [...first, ...turnsOf(rounds)],
      tools,
      settings: set,
    };
    return { ...parts, origin: { protocol, value: { model: 'asked' }, parts } };
  });

/** Checks what the API's own rules do not cover: this codec's further promises. */
function checkPromises(body: JsonObject): void {
  const items = body.input as readonly JsonObject[];
  for (const item of items) expect(item.id, 'item ids are omitted, not invented').toBeUndefined();
  let calling = false;
  for (const item of items) {
    const isCall = item.type === 'function_call' || item.type === 'custom_tool_call';
    if (item.type === 'message' && item.role === 'assistant') {
      expect(calling, 'a message of the assistant between its calls and their outputs').toBe(false);
    }
    if (isCall) calling = true;
    if (`${item.type}`.endsWith('_output')) calling = false;
    if (item.type === 'function_call') expect(item.arguments).not.toBe('');
    if (item.type === 'reasoning') expect(item.encrypted_content).toBeString();
  }
  for (const one of (body.tools ?? []) as readonly JsonObject[]) {
    if (one.type === 'function') expect((one.parameters as JsonObject).type).toBe('object');
  }
  const names = ((body.tools ?? []) as readonly JsonObject[]).flatMap((t) =>
    t.name ? [t.name] : [],
  );
  const declared = names.filter((n, i) => names.indexOf(n) === i);
  expect(declared.length).toBeLessThanOrEqual(names.length);
}

describe('conversations of other protocols', () => {
  test("every conversation becomes a request that passes the vendor's checks, and nothing throws", () => {
    void fc.assert(
      fc.property(foreign, profile, (request, facts) => {
        const notes = new Notes();
        const body = openaiResponses.encodeRequest(
          request,
          target('gpt-5', { ...facts, leastMaxTokens: 16 }),
          notes,
        );
        expect(plain(body)).toEqual(body);
        checkResponses(body, {}, { anySeal: true });
        checkPromises(body);
        expect(body.store).toBe(false);
      }),
      { numRuns: 400 },
    );
  }, 60_000);

  test('the same conversation gives the same bytes, and a longer one extends it', () => {
    void fc.assert(
      fc.property(foreign, textBlock, (request, more) => {
        const encode = (c: Conversation) =>
          openaiResponses.encodeRequest(c, target('gpt-5'), new Notes())
            .input as readonly JsonObject[];
        const once = encode(request);
        expect(encode(request)).toEqual(once);
        const longer = encode({
          ...request,
          turns: [...request.turns, { role: 'user', blocks: [more] }],
        });
        // Reasoning at the very end waits for its successor, so the last turn may lose it.
        expect(longer.slice(0, once.length)).toEqual([...once]);
      }),
      { numRuns: 150 },
    );
  }, 60_000);

  test('a field that Responses lacks is noted by its name', () => {
    const notes = new Notes();
    const parts = {
      model: 'm',
      system: [],
      turns: [{ role: 'user' as const, blocks: [{ type: 'text' as const, text: 'hi' }] }],
      tools: [],
      settings: {
        stream: false,
        stop: ['x'],
        seed: 1,
        n: 2,
        topK: 3,
        presencePenalty: 1,
        frequencyPenalty: 1,
        logitBias: {},
        rest: { some_field: 1 },
      },
    };
    const body = openaiResponses.encodeRequest(parts, target('m'), notes);
    expect(Object.keys(body).sort()).toEqual(['input', 'model', 'store']);
    expect(notes.all.map((note) => `${note.name} ${note.where}`).sort()).toEqual(
      [
        'stop',
        'seed',
        'n',
        'top_k',
        'presence_penalty',
        'frequency_penalty',
        'logit_bias',
        'some_field',
      ]
        .map((field) => `parameter_dropped ${field}`)
        .sort(),
    );
  });
});

describe('recorded requests as requests of another protocol', () => {
  const all = requests();
  test.skipIf(all.length === 0)(
    "requests pass the vendor's checks if their pairing is complete",
    () => {
      let passed = 0;
      for (const { name: file, body } of all) {
        const bare = stripped(conversation(body));
        const encoded = openaiResponses.encodeRequest(
          bare,
          target('gpt-5', { ...NO_PROFILE, hostedTools: ['web_search'] }),
          new Notes(),
        );
        expect(plain(encoded), file).toEqual(encoded);
        // The vendor refused some recorded requests: -1 as temperature, a result without a call.
        if (!takes(body)) continue;
        checkResponses(encoded, {}, { anySeal: true });
        passed++;
      }
      expect(passed).toBeGreaterThan(600);
    },
  );
});

function takes(body: JsonObject): boolean {
  try {
    checkResponses(body, {}, { anySeal: true, lenientFields: true });
    return body.previous_response_id === undefined && body.conversation === undefined;
  } catch {
    return false;
  }
}

/** Without any wire, as if decoded from another protocol. */
function stripped(request: Conversation): Conversation {
  const bare = <T extends { wire?: unknown; residue?: unknown }>(node: T): T => {
    const { wire: _, residue: __, ...rest } = node;
    return rest as T;
  };
  const block = (b: Block): Block => {
    if (b.type === 'opaque') return { ...b, wire: { protocol: 'openai-chat', value: null } };
    if (b.type === 'tool-result') return bare({ ...b, content: b.content.map(block) });
    return bare(b);
  };
  const parts = {
    ...request,
    turns: request.turns.map((turn) => bare({ ...turn, blocks: turn.blocks.map(block) })),
    tools: request.tools.map(bare),
  };
  return { ...parts, origin: { protocol: 'openai-chat', value: {}, parts } };
}
