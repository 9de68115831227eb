/** Generated conversations of other protocols become messages that Chat vendors accept. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type {
  Block,
  Conversation,
  MediaBlock,
  ProtocolName,
  Settings,
  Tool,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { target } from './recorded.ts';

const word = fc.stringMatching(/^[a-zA-Z0-9 .:/_\n-]{0,24}$/);
const toolName = fc.oneof(
  fc.constantFrom(
    'read',
    'mcp__server__do',
    'apply_patch',
    'functions.x',
    'naïve tool',
    'DeferredToolPlaceholder',
  ),
  fc.stringMatching(/^[a-z_.:]{1,90}$/),
);
const foreign = fc.constantFrom<ProtocolName>('anthropic-messages', 'openai-responses');
const cache = fc.option(fc.constant({ ttl: '5m' }), { nil: undefined });

const textBlock: fc.Arbitrary<Block> = fc.record({
  type: fc.constant('text' as const),
  text: word,
  cache,
});
const media: fc.Arbitrary<MediaBlock> = fc.record({
  type: fc.constant('media' as const),
  media: fc.constantFrom('image' as const, 'document' as const, 'audio' as const),
  source: fc.oneof(
    fc.record({
      type: fc.constant('base64' as const),
      mediaType: fc.constant('image/png'),
      data: fc.constant('aGk='),
    }),
    fc.record({ type: fc.constant('url' as const), url: fc.constant('https://example.com/a.png') }),
    fc.record({ type: fc.constant('file-id' as const), id: fc.constant('file_1') }),
    fc.record({
      type: fc.constant('text' as const),
      mediaType: fc.constant('text/plain'),
      text: word,
    }),
  ),
});
const opaque: fc.Arbitrary<Block> = fc.record({
  type: fc.constant('opaque' as const),
  name: fc.constantFrom('tool_reference', 'compaction', 'billing_header', 'search_result'),
  text: fc.option(word, { nil: undefined }),
  wire: fc.record({
    protocol: foreign,
    value: fc.constantFrom({}, { tool_name: 'read' }, 'x', null),
  }),
});
const reasoning: fc.Arbitrary<Block> = fc.record({
  type: fc.constant('reasoning' as const),
  text: word,
  summary: fc.option(fc.boolean(), { nil: undefined }),
  sealed: fc.option(
    fc.record({
      protocol: fc.constantFrom<ProtocolName>(
        'anthropic-messages',
        'openai-responses',
        'openai-chat',
      ),
      kind: fc.constantFrom('signature' as const, 'encrypted' as const, 'redacted' as const),
      value: fc.constantFrom('', 'sig', '[{"type":"reasoning.encrypted","data":"x"}]'),
    }),
    { nil: undefined },
  ),
});
const hosted: fc.Arbitrary<Block> = fc.oneof(
  fc.record({
    type: fc.constant('tool-call' as const),
    id: fc.constant('srvtoolu_1'),
    name: fc.constant('web_search'),
    kind: fc.constant('function' as const),
    input: fc.constant('{"query":"x"}'),
    by: fc.constant('provider' as const),
  }),
  fc.record({
    type: fc.constant('tool-result' as const),
    callId: fc.constant('srvtoolu_1'),
    kind: fc.constant('function' as const),
    content: fc.array(fc.oneof(textBlock, opaque), { maxLength: 2 }),
    isError: fc.boolean(),
    by: fc.constant('provider' as const),
  }),
);

interface Round {
  readonly before: readonly Block[];
  readonly calls: readonly {
    readonly name: string;
    readonly custom: boolean;
    readonly input: string;
  }[];
  readonly results: readonly { readonly content: readonly Block[]; readonly isError: boolean }[];
  readonly after: readonly Block[];
  readonly split: boolean;
  readonly order: number;
}

const round: fc.Arbitrary<Round> = fc.record({
  before: fc.array(
    fc.oneof(
      reasoning,
      textBlock,
      hosted,
      fc.record({ type: fc.constant('refusal' as const), text: word }),
    ),
    { maxLength: 3 },
  ),
  calls: fc.array(
    fc.record({
      name: toolName,
      custom: fc.boolean(),
      input: fc.constantFrom('', '{}', '{"a":1}', '{"a":', '*** Begin'),
    }),
    { maxLength: 3 },
  ),
  results: fc.array(
    fc.record({
      content: fc.array(fc.oneof(textBlock, media, opaque), { maxLength: 3 }),
      isError: fc.boolean(),
    }),
    { minLength: 3, maxLength: 3 },
  ),
  after: fc.array(fc.oneof(textBlock, media, opaque), { maxLength: 3 }),
  split: fc.boolean(),
  order: fc.nat(),
});

/** Turns of one round: as Messages has them (one turn per side), or as Responses' items (one block per turn). */
function turnsOf({ before, calls, results, after, split, order }: Round, n: number): Turn[] {
  const called = calls.map(
    ({ name, custom, input }, i): ToolCallBlock => ({
      type: 'tool-call',
      id: `call_${n}_${i}`,
      name,
      kind: custom ? 'custom' : 'function',
      input,
      by: 'client',
    }),
  );
  const answered = called.map(
    (call, i): ToolResultBlock => ({
      type: 'tool-result',
      callId: call.id,
      kind: call.kind,
      content: results[i]!.content,
      isError: results[i]!.isError,
      by: 'client',
    }),
  );
  const messages = [...before, ...called];
  // Text may come before, after or between the results.
  const at = answered.length === 0 ? 0 : order % (answered.length + 1);
  const replies: Block[] = [...answered.slice(0, at), ...after, ...answered.slice(at)];
  const turns = (role: 'assistant' | 'user', blocks: readonly Block[]): Turn[] => {
    if (blocks.length === 0) return [];
    return split ? blocks.map((block) => ({ role, blocks: [block] })) : [{ role, blocks }];
  };
  // A user turn without expressible content is dropped; two adjacent answers are then acceptable.
  if (answered.length === 0) replies.push({ type: 'text', text: 'go on' });
  return [...turns('assistant', messages), ...turns('user', replies)];
}

const tool: fc.Arbitrary<Tool> = fc.oneof(
  fc.record({
    type: fc.constant('function' as const),
    name: toolName,
    namespace: fc.option(fc.constant('ns'), { nil: undefined }),
    description: fc.option(word, { nil: undefined }),
    schema: fc.option(
      fc.constantFrom<JsonObject>(
        {},
        { type: 'object' },
        { anyOf: [] },
        { type: 'object', properties: { a: {} } },
      ),
      { nil: undefined },
    ),
    strict: fc.option(fc.boolean(), { nil: undefined }),
    deferred: fc.option(fc.boolean(), { nil: undefined }),
    cache,
  }),
  fc.record({
    type: fc.constant('custom' as const),
    name: toolName,
    format: fc.option(fc.constant({ type: 'grammar', syntax: 'lark', definition: 'start: "x"' }), {
      nil: undefined,
    }),
  }),
  fc.record({
    type: fc.constant('hosted' as const),
    name: fc.constantFrom('web_search', 'code_execution', 'tool_search'),
    kind: fc.constant('web_search_20250305'),
    options: fc.constantFrom<JsonObject>(
      {},
      { parameters: { type: 'object', properties: {} }, execution: 'client' },
    ),
  }),
);

const settings = fc.record(
  {
    stream: fc.boolean(),
    maxTokens: fc.nat(),
    topK: fc.nat(),
    stop: fc.array(word, { maxLength: 2 }),
    parallelTools: fc.boolean(),
    toolChoice: fc.oneof(
      fc.record({ type: fc.constantFrom('auto' as const, 'none' as const, 'required' as const) }),
      fc.record({
        type: fc.constant('tool' as const),
        name: toolName,
        kind: fc.constantFrom('function' as const, 'custom' as const, 'hosted' as const),
      }),
      fc.record({
        type: fc.constant('allowed' as const),
        mode: fc.constant('auto' as const),
        names: fc.array(toolName, { maxLength: 2 }),
      }),
    ),
    reasoning: fc.record(
      {
        enabled: fc.boolean(),
        budget: fc.nat(40000),
        effort: fc.constantFrom('none', 'low', 'max'),
        adaptive: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    metadata: fc.constant({ a: 'b' }),
    include: fc.constant(['reasoning.encrypted_content']),
    rest: fc.constant({ truncation: 'auto' }),
    previousResponseId: fc.constant('resp_1'),
  },
  { requiredKeys: ['stream'] },
) as fc.Arbitrary<Settings>;

const profile: fc.Arbitrary<Partial<Profile>> = fc.record(
  {
    images: fc.boolean(),
    imagesInResults: fc.boolean(),
    documents: fc.boolean(),
    developerRole: fc.boolean(),
    strictTools: fc.boolean(),
    jsonSchema: fc.boolean(),
    streamUsage: fc.boolean(),
    parallelToolsParam: fc.boolean(),
    reasoningField: fc.constantFrom(
      'reasoning_content' as const,
      'reasoning' as const,
      'none' as const,
    ),
    reasoningParam: fc.constantFrom(
      'reasoning_effort' as const,
      'thinking' as const,
      'enable_thinking' as const,
      'reasoning' as const,
      'none' as const,
    ),
    toolChoices: fc.constantFrom(
      ['auto'] as const,
      ['auto', 'none'] as const,
      ['auto', 'none', 'required', 'tool'] as const,
    ),
    hostedTools: fc.constantFrom([], ['web_search']),
    dropParams: fc.constantFrom([], ['parallel_tool_calls', 'metadata']),
  },
  { requiredKeys: [] },
);

const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    protocol: foreign,
    system: fc.array(fc.oneof(textBlock, opaque), { maxLength: 2 }),
    leads: fc.array(fc.constantFrom('system' as const, 'developer' as const), { maxLength: 2 }),
    first: fc.array(fc.oneof(textBlock, media), { minLength: 1, maxLength: 2 }),
    rounds: fc.array(round, { maxLength: 4 }),
    late: fc.option(fc.constantFrom('system' as const, 'developer' as const), { nil: undefined }),
    tools: fc.array(tool, { maxLength: 4 }),
    settings,
  })
  .map(({ protocol, system, leads, first, rounds, late, tools, settings: set }) => {
    const turns: Turn[] = [
      ...leads.map((role): Turn => ({ role, blocks: [{ type: 'text', text: `as ${role}` }] })),
      { role: 'user', blocks: [{ type: 'text', text: 'hi' }, ...first] },
      ...rounds.flatMap(turnsOf),
      ...(late === undefined
        ? []
        : [{ role: late, blocks: [{ type: 'text' as const, text: 'late' }] }]),
    ];
    const parts = { model: 'asked', system, turns, tools, settings: set };
    return { ...parts, origin: { protocol, value: {}, parts } };
  });

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const PARTS: Readonly<Record<string, readonly string[]>> = {
  system: ['text'],
  developer: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text', 'image_url'],
};

/** The errors that a strict vendor would report for a request body. */
function faults(body: JsonObject, facts: Partial<Profile>): string[] {
  const wrong: string[] = [];
  const messages = body.messages as readonly JsonObject[];
  let open: string[] = [];
  messages.forEach((message, i) => {
    const role = message.role as string;
    if (PARTS[role] === undefined) wrong.push(`${i}: role ${role}`);
    if (role !== 'tool' && open.length > 0)
      wrong.push(`${i}: ${role} before the results of ${open}`);
    if (role !== 'tool') open = [];
    if (role === 'tool') {
      const id = message.tool_call_id as string;
      if (!open.includes(id)) wrong.push(`${i}: result of ${id}, which no call waits for`);
      open = open.filter((other) => other !== id);
    }
    const { content } = message;
    if (Array.isArray(content)) {
      if (content.length === 0) wrong.push(`${i}: no parts`);
      for (const part of content as readonly JsonObject[]) {
        const type = part.type as string;
        if (!PARTS[role]?.includes(type)) wrong.push(`${i}: ${type} in ${role}`);
        if (type === 'image_url' && role === 'tool' && !facts.imagesInResults)
          wrong.push(`${i}: image in a result`);
        if (type === 'image_url' && facts.images === false) wrong.push(`${i}: image`);
        if (type === 'file' && facts.documents === false) wrong.push(`${i}: file`);
        if (part.cache_control !== undefined) wrong.push(`${i}: cache_control`);
      }
    } else if (content === null) {
      if (role !== 'assistant' || message.tool_calls === undefined)
        wrong.push(`${i}: null content`);
    } else if (typeof content !== 'string') wrong.push(`${i}: content ${typeof content}`);
    if (role === 'developer' && !facts.developerRole) wrong.push(`${i}: developer`);
    if (role === 'assistant') {
      const calls = (message.tool_calls ?? []) as readonly JsonObject[];
      if (message.tool_calls !== undefined && calls.length === 0)
        wrong.push(`${i}: empty tool_calls`);
      for (const call of calls) {
        const fn = call.function as JsonObject;
        if (call.type !== 'function') wrong.push(`${i}: call of type ${call.type}`);
        else if (!NAME.test(fn.name as string)) wrong.push(`${i}: name ${fn.name}`);
        if (typeof fn?.arguments !== 'string' || fn.arguments === '') wrong.push(`${i}: arguments`);
        open.push(call.id as string);
      }
      if (i > 0 && messages[i - 1]!.role === 'assistant')
        wrong.push(`${i}: two assistants in a row`);
    }
    const keys = [
      'role',
      'content',
      'tool_calls',
      'tool_call_id',
      'reasoning_content',
      'reasoning',
      'reasoning_details',
    ];
    for (const key of Object.keys(message)) if (!keys.includes(key)) wrong.push(`${i}: key ${key}`);
  });
  if (open.length > 0) wrong.push(`never answered: ${open}`);
  const tools = (body.tools ?? []) as readonly JsonObject[];
  if (body.tools !== undefined && tools.length === 0) wrong.push('empty tools');
  const names = new Set<string>();
  for (const declared of tools) {
    if (declared.type === 'web_search') continue;
    const fn = declared.function as JsonObject;
    const parameters = fn.parameters as JsonObject;
    if (declared.type !== 'function' || !NAME.test(fn.name as string))
      wrong.push(`tool ${fn?.name}`);
    if (parameters?.type !== 'object' || parameters.properties === undefined)
      wrong.push(`schema of ${fn.name}`);
    if (fn.strict !== undefined && facts.strictTools === false) wrong.push('strict');
    names.add(fn.name as string);
  }
  const choice = body.tool_choice as JsonObject | string | undefined;
  if (choice !== undefined) {
    if (tools.length === 0) wrong.push('choice without tools');
    const kind = typeof choice === 'string' ? choice : 'tool';
    if (facts.toolChoices !== undefined && !facts.toolChoices.includes(kind as 'auto'))
      wrong.push(`choice ${kind}`);
    if (typeof choice === 'object' && !names.has((choice.function as JsonObject).name as string)) {
      wrong.push('choice of a tool that is not declared');
    }
  }
  const known = [
    'model',
    'messages',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'stream',
    'stream_options',
    'max_tokens',
    'stop',
    'metadata',
    'reasoning_effort',
    'thinking',
    'enable_thinking',
    'thinking_budget',
    'reasoning',
  ];
  for (const key of Object.keys(body)) if (!known.includes(key)) wrong.push(`key ${key}`);
  for (const key of facts.dropParams ?? []) if (body[key] !== undefined) wrong.push(`key ${key}`);
  return wrong;
}

describe('conversations of other protocols', () => {
  test('a strict vendor accepts the request for any conversation', () => {
    fc.assert(
      fc.property(conversation, profile, (made, facts) => {
        const body = openaiChat.encodeRequest(made, target(facts), new Notes());
        expect(faults(JSON.parse(JSON.stringify(body)), facts)).toEqual([]);
      }),
      { numRuns: 1500 },
    );
  });

  test('encoding is pure: the same conversation gives the same body', () => {
    fc.assert(
      fc.property(conversation, profile, (made, facts) => {
        const encode = () => openaiChat.encodeRequest(made, target(facts), new Notes());
        expect(encode()).toEqual(encode());
      }),
      { numRuns: 100 },
    );
  });

  test('another round only appends messages', () => {
    fc.assert(
      fc.property(conversation, round, (made, more) => {
        // A late system turn comes after the last round; further rounds follow it.
        const turns = [
          ...made.turns,
          ...turnsOf({ ...more, before: [{ type: 'text', text: 'ok' }] }, 99),
        ];
        const encode = (c: Conversation) =>
          openaiChat.encodeRequest(c, target(), new Notes()).messages as readonly JsonObject[];
        const before = encode(made);
        const after = encode({ ...made, turns });
        expect(after.slice(0, before.length)).toEqual([...before]);
      }),
      { numRuns: 300 },
    );
  });

  test('the body decodes again, with every call and result', () => {
    fc.assert(
      fc.property(conversation, (made) => {
        const body = openaiChat.encodeRequest(made, target(), new Notes());
        const again = openaiChat.decodeRequest(JSON.parse(JSON.stringify(body)));
        const ids = (c: Conversation, type: 'tool-call' | 'tool-result') =>
          c.turns
            .flatMap((turn) => turn.blocks)
            .flatMap((b) =>
              b.type === type && (b as ToolCallBlock).by !== 'provider'
                ? [b.type === 'tool-call' ? b.id : (b as ToolResultBlock).callId]
                : [],
            );
        expect(ids(again, 'tool-call')).toEqual(ids(made, 'tool-call'));
        expect(ids(again, 'tool-result')).toEqual(ids(made, 'tool-result'));
      }),
      { numRuns: 300 },
    );
  });
});
