/** Where cache marks stand, and where none may stand. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { environmentFrom } from '../../../src/config/environment.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import type { Target } from '../../../src/conversation/target.ts';
import { PromptCache, RequestTails } from '../../../src/features/prompt-cache/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { targetOf } from '../../../src/routing/targets.ts';
import { words } from '../../support/prompt-caches/sessions.ts';

function target(yaml: string, model: string): Target {
  const loaded = parseConfig(
    `providers: { v: { keys: k, ${yaml} } }`,
    'places.yaml',
    environmentFrom({}, '/nowhere'),
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return targetOf(loaded.config.providers.v!, model).target;
}

const SONNET = target('preset: anthropic', 'claude-sonnet-4-5');

interface Sent {
  // biome-ignore lint/suspicious/noExplicitAny: bodies of several protocols
  readonly body: any;
  readonly notes: readonly string[];
}

function sent(
  client: ProtocolName,
  body: JsonObject,
  to: Target = SONNET,
  { hop = 1, sessionId = '', owner = 'me' } = {},
): Sent {
  const notes = new Notes();
  const feature = new PromptCache({ owner, sessionId }, new RequestTails());
  const decoded = CODECS[client].decodeRequest({ model: 'm', ...body });
  const context = { target: to, client, notes, hop };
  const bytes = Buffer.from(JSON.stringify({ model: 'm', ...body }));
  const applies = hop > 1 || feature.mayApply!(bytes, context);
  const passed = applies ? feature.request!(decoded, context) : decoded;
  const encoded = CODECS[to.protocol].encodeRequest({ ...passed, model: to.model }, to, notes);
  return { body: encoded, notes: notes.all.map(({ name }) => name) };
}

/** The texts (or ids) of the marked blocks, in order. */
function marked({ tools = [], system = [], messages = [] }: JsonObject): readonly unknown[] {
  const out: unknown[] = [];
  const look = (blocks: unknown) => {
    if (!Array.isArray(blocks)) return;
    for (const block of blocks) {
      if (block.cache_control !== undefined) {
        out.push(block.name ?? block.tool_use_id ?? block.text?.slice(0, 8));
      }
    }
  };
  look(tools);
  look(system);
  for (const message of messages as readonly JsonObject[]) look(message.content);
  return out;
}

const TOOL = {
  type: 'function',
  function: {
    name: 'read',
    description: words('read', 1100),
    parameters: { type: 'object', properties: {} },
  },
};
const SYSTEM = { role: 'system', content: words('rules', 1100) };
const call = (id: string) => ({
  role: 'assistant',
  content: 'hm',
  tool_calls: [{ id, type: 'function', function: { name: 'read', arguments: '{}' } }],
});
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: `of ${id}` });

describe('the places', () => {
  test('last tool, last instruction, the end of the request before, the end of this one', () => {
    const { body, notes } = sent('openai-chat', {
      tools: [TOOL],
      messages: [
        SYSTEM,
        { role: 'user', content: 'question' },
        call('a'),
        result('a'),
        call('b'),
        call('b2'),
        result('b'),
        result('b2'),
      ],
    });
    expect(marked(body)).toEqual(['read', 'rules-0 ', 'a', 'b2']);
    expect(notes).toContain('cache_marks_added');
  });

  test('never on thinking or empty text, never on a result that is left out', () => {
    const { body } = sent('openai-chat', {
      tools: [TOOL],
      messages: [
        SYSTEM,
        {
          role: 'user',
          content: [
            { type: 'text', text: 'q' },
            { type: 'text', text: ' ' },
          ],
        },
      ],
    });
    expect(marked(body)).toEqual(['read', 'rules-0 ', 'q']);
  });

  test('never more than four with those that are there, and none beside a client’s own', () => {
    const mark = { type: 'ephemeral' };
    const own = sent('openai-chat', {
      tools: [TOOL],
      messages: [
        { ...SYSTEM, cache_control: mark },
        { role: 'user', content: 'q' },
      ],
    });
    expect(marked(own.body)).toEqual(['rules-0 ']);
    expect(own.notes).not.toContain('cache_marks_added');
  });
});

describe('what nobody would read is not written', () => {
  test('a single shot has no mark; with tools, or from its second turn on, it has', () => {
    const question = [SYSTEM, { role: 'user', content: 'q' }];
    const second = [
      ...question,
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'r' },
    ];
    expect(marked(sent('openai-chat', { messages: question }).body)).toEqual([]);
    expect(marked(sent('openai-chat', { messages: second }).body)).toEqual(['rules-0 ', 'q', 'r']);
    expect(marked(sent('openai-chat', { messages: question, tools: [TOOL] }).body)).toHaveLength(3);
  });

  test('a prompt shorter than the model keeps has no mark up to there', () => {
    const short = { ...TOOL, function: { ...TOOL.function, description: 'short' } };
    const asked = { tools: [short], messages: [{ role: 'user', content: words('q', 600) }] };
    expect(marked(sent('openai-chat', asked).body)).toEqual([]);
    const opus = target('preset: anthropic', 'claude-opus-5-5');
    expect(marked(sent('openai-chat', asked, opus).body)).toEqual(['q-0 of t']);
  });
});

describe('every client that cannot mark', () => {
  const bodies: Partial<Record<ProtocolName, JsonObject>> = {
    'openai-chat': { tools: [TOOL], messages: [SYSTEM, { role: 'user', content: 'q' }] },
    'openai-responses': {
      instructions: SYSTEM.content,
      tools: [
        { type: 'function', ...TOOL.function },
        { type: 'custom', name: 'patch' },
      ],
      input: 'q',
    },
    'google-gemini': {
      systemInstruction: { parts: [{ text: SYSTEM.content }] },
      tools: [{ functionDeclarations: [TOOL.function] }],
      contents: [{ role: 'user', parts: [{ text: 'q' }] }],
    },
  };
  const places: Record<string, Target> = {
    anthropic: SONNET,
    vertex: target(
      'platform: vertex, project: p, protocol: anthropic-messages, location: global',
      'claude-sonnet-4-5@20250929',
    ),
    bedrock: target('platform: bedrock, region: us-east-1', 'eu.anthropic.claude-sonnet-4-5-v1:0'),
    'a relay by profile': target(
      'base_url: "https://relay.test", protocol: anthropic-messages, profile: anthropic',
      'claude-sonnet-4-5',
    ),
  };
  for (const [client, body] of Object.entries(bodies)) {
    for (const [place, to] of Object.entries(places)) {
      test(`${client}, ${place}`, () => {
        expect(marked(sent(client as ProtocolName, body, to).body)).toEqual([
          'read',
          'rules-0 ',
          'q',
        ]);
      });
    }
  }

  test('OpenRouter gets marks on parts, and only for Claude', () => {
    const asked = bodies['openai-chat']!;
    const claude = target('preset: openrouter', 'anthropic/claude-sonnet-4.5');
    const { messages, tools } = sent('openai-chat', asked, claude).body;
    const mark = { type: 'ephemeral' };
    expect(tools).toEqual([TOOL]);
    expect(messages[0].content).toEqual([
      { type: 'text', text: SYSTEM.content, cache_control: mark },
    ]);
    expect(messages[1].content).toEqual([{ type: 'text', text: 'q', cache_control: mark }]);
    const other = target('preset: openrouter', 'openai/gpt-5.1');
    expect(JSON.stringify(sent('openai-chat', asked, other).body)).not.toContain('cache_control');
  });

  test('a relay of which nothing is known gets no marks', () => {
    const relay = target(
      'base_url: "https://relay.test", protocol: anthropic-messages',
      'claude-sonnet-4-5',
    );
    expect(marked(sent('openai-chat', bodies['openai-chat']!, relay).body)).toEqual([]);
  });
});

describe('prompt_cache', () => {
  const asked = { tools: [TOOL], messages: [SYSTEM, { role: 'user', content: 'q' }] };

  test('off: no mark; 1h: marks for an hour; a model’s own word counts before the provider’s', () => {
    const off = target('preset: anthropic, prompt_cache: off', 'claude-sonnet-4-5');
    expect(marked(sent('openai-chat', asked, off).body)).toEqual([]);
    const hour = target(
      'preset: anthropic, prompt_cache: off, models: [{ name: claude-sonnet-4-5, prompt_cache: 1h }]',
      'claude-sonnet-4-5',
    );
    const { body } = sent('openai-chat', asked, hour);
    const globs = target(
      'preset: anthropic, models: [{ name: "claude-*", prompt_cache: off }, { name: claude-haiku-4-5, prompt_cache: 1h }]',
      'claude-haiku-4-5',
    );
    expect(globs.promptCache).toBe('1h');
    const other = target(
      'preset: anthropic, models: [{ name: "claude-*", prompt_cache: off }]',
      'claude-sonnet-4-5',
    );
    expect(other.promptCache).toBe('off');
    expect(body.tools[0].cache_control).toEqual({ type: 'ephemeral', ttl: '1h' });
    expect(marked(body)).toHaveLength(3);
  });

  test('another value is refused by name', () => {
    expect(() => target('preset: anthropic, prompt_cache: 2h', 'm')).toThrow('prompt_cache');
  });

  test('off: no key and no breakpoint', () => {
    const off = target('preset: openai, prompt_cache: off', 'gpt-6-sol');
    const { body } = sent('openai-chat', asked, off);
    expect(body.prompt_cache_key).toBeUndefined();
    expect(body.instructions).toBe(SYSTEM.content);
  });
});

describe('a mark at the top of a Chat client’s body', () => {
  const asked = {
    cache_control: { type: 'ephemeral', ttl: '1h' },
    messages: [SYSTEM, { role: 'user', content: 'q' }],
  };

  test('arrives at the top where it is taken', () => {
    const { body } = sent('openai-chat', asked);
    expect([body.cache_control, marked(body)]).toEqual([asked.cache_control, []]);
  });

  test('becomes marks on blocks where the top is refused, by the cloud or as it was learnt', () => {
    const bedrock = target(
      'platform: bedrock, region: us-east-1',
      'anthropic.claude-sonnet-4-5-v1:0',
    );
    for (const to of [bedrock, { ...SONNET, refusedFields: [['cache_control']] }]) {
      const { body } = sent('openai-chat', asked, to);
      expect(body.cache_control).toBeUndefined();
      expect(marked(body)).toEqual(['rules-0 ', 'q']);
      expect(body.system[0].cache_control).toEqual(asked.cache_control);
    }
  });
});

describe('hops of server tools', () => {
  const rounds = (mark: JsonObject) => ({
    max_tokens: 99,
    system: [{ type: 'text', text: SYSTEM.content, ...mark }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'q', ...mark }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'search', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'found' }] },
    ],
  });

  test('the end of a hop is marked behind a client’s own marks, with their lifetime', () => {
    const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
    const { body } = sent('anthropic-messages', rounds(mark), SONNET, { hop: 2 });
    expect(marked(body)).toEqual(['rules-0 ', 'q', 't1']);
    expect(body.messages[2].content[0].cache_control.ttl).toBe('1h');
  });

  test('a client of Messages that sets no marks gets none', () => {
    expect(marked(sent('anthropic-messages', rounds({}), SONNET, { hop: 2 }).body)).toEqual([]);
  });

  test('a single question that a server tool has run for is marked from the second hop on', () => {
    const asked = { messages: [SYSTEM, { role: 'user', content: 'q' }, call('a'), result('a')] };
    expect(marked(sent('openai-chat', asked, SONNET, { hop: 2 }).body)).toEqual([
      'rules-0 ',
      'q',
      'a',
    ]);
  });
});

describe('OpenAI’s own address from GPT-5.6 on', () => {
  const OWN = target('preset: openai', 'gpt-5.6');
  const asked = {
    tools: [TOOL],
    messages: [SYSTEM, { role: 'user', content: 'q' }],
  };

  test('the instructions lead as a developer message with a breakpoint, and the session is the key', () => {
    const { body, notes } = sent('openai-chat', asked, OWN);
    expect(body.instructions).toBeUndefined();
    expect(body.input[0]).toEqual({
      type: 'message',
      role: 'developer',
      content: [
        {
          type: 'input_text',
          text: SYSTEM.content,
          prompt_cache_breakpoint: { mode: 'explicit' },
        },
      ],
    });
    expect(body.prompt_cache_key).toMatch(/^[0-9a-f]{32}$/);
    expect(notes).toContain('prompt_cache_key_added');
  });

  test('the same on Chat, for a client of Messages', () => {
    const chat = target('preset: openai-chat', 'gpt-6-luna');
    const { body } = sent(
      'anthropic-messages',
      { max_tokens: 9, system: 'be brief', messages: [{ role: 'user', content: 'q' }] },
      chat,
    );
    expect(body.messages[0]).toEqual({
      role: 'developer',
      content: [{ type: 'text', text: 'be brief', prompt_cache_breakpoint: { mode: 'explicit' } }],
    });
    expect(body.prompt_cache_key).toMatch(/^[0-9a-f]{32}$/);
  });

  test('marks of a client of Messages are breakpoints; those on tools and results are a note', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const body = {
      max_tokens: 9,
      tools: [{ name: 'f', input_schema: { type: 'object' }, ...mark }],
      system: [
        { type: 'text', text: 'always', ...mark },
        { type: 'text', text: 'today' },
      ],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'q', ...mark }] }],
    };
    for (const to of [OWN, target('preset: openai-chat', 'gpt-6-luna')]) {
      const { body: out, notes } = sent('anthropic-messages', body, to);
      const [lead, question] = out.input ?? out.messages;
      expect(lead.role).toBe('developer');
      expect(
        lead.content.map(({ text, prompt_cache_breakpoint: point }: JsonObject) => [
          text,
          point !== undefined,
        ]),
      ).toEqual([
        ['always', true],
        ['today', false],
      ]);
      expect(question.content[0].prompt_cache_breakpoint).toEqual({ mode: 'explicit' });
      expect(JSON.stringify(out)).not.toContain('cache_control');
      expect(notes).toContain('cache_control_dropped');
    }
  });

  test('the key is the same in a session, another in another, and tells nobody whose it is', () => {
    const keyOf = (sessionId: string, owner = 'me', body: JsonObject = asked) =>
      sent('openai-chat', body, OWN, { sessionId, owner }).body.prompt_cache_key;
    const ids = [
      'a',
      'jane.doe@example.com',
      '会话-一',
      'ß'.repeat(100),
      'x'.repeat(10_000),
      '\u0000"',
    ];
    const keys = ids.map((id) => keyOf(id));
    expect(new Set(keys).size).toBe(ids.length);
    for (const [i, key] of keys.entries()) {
      expect(key).toMatch(/^[0-9a-f]{1,64}$/);
      expect(key).toBe(keyOf(ids[i]!));
    }
    expect(keyOf('a')).not.toBe(keyOf('a', 'other'));
    const later = {
      ...asked,
      messages: [
        ...asked.messages,
        { role: 'assistant', content: 'a' },
        { role: 'user', content: 'r' },
      ],
    };
    expect(keyOf('', 'me', later)).toBe(keyOf(''));
    const another = { ...asked, messages: [SYSTEM, { role: 'user', content: 'another' }] };
    expect(keyOf('', 'me', another)).not.toBe(keyOf(''));
  });

  test('a client’s own key stays', () => {
    const { body } = sent('openai-chat', { ...asked, prompt_cache_key: 'mine' }, OWN);
    expect(body.prompt_cache_key).toBe('mine');
  });

  test('never to another address, never to an earlier model, never for a client of the same protocol', () => {
    const elsewhere = [
      target('preset: openai, base_url: "https://relay.test/v1"', 'gpt-5.6'),
      target('preset: openai, base_url: "https://api.openai.com.evil.test/v1"', 'gpt-5.6'),
      target(
        'base_url: "https://x.openai.azure.com/openai/v1", protocol: openai-responses, profile: azure',
        'gpt-5.6',
      ),
      target('preset: openai', 'gpt-5.5'),
      target('preset: openai', 'gpt-4.1'),
    ];
    for (const to of elsewhere) {
      const { body } = sent('openai-chat', asked, to);
      expect(body.prompt_cache_key).toBeUndefined();
      expect(JSON.stringify(body)).not.toContain('prompt_cache_breakpoint');
      expect(body.instructions).toBe(SYSTEM.content);
    }
    const own = { instructions: 'i', input: 'q' };
    expect(sent('openai-responses', own, OWN).body).toEqual({ ...own, model: 'gpt-5.6' });
    const region = target('preset: openai, base_url: "https://eu.api.openai.com/v1"', 'gpt-5.6');
    expect(sent('openai-chat', asked, region).body.prompt_cache_key).toBeDefined();
  });
});

describe('marks of clients of Messages towards other vendors', () => {
  const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
  const body = {
    max_tokens: 9,
    system: [{ type: 'text', text: 'rules', ...mark }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'q', ...mark }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'a', ...mark },
          { type: 'tool_use', id: 't1', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r', ...mark }],
      },
    ],
  };

  test('arrive at a relay that takes them on Chat', () => {
    const to = target('preset: openrouter', 'anthropic/claude-opus-4.6');
    const { messages } = sent('anthropic-messages', body, to).body;
    for (const message of messages) expect(message.content.at(-1)).toMatchObject(mark);
  });

  test('are a note where there is no place for them', () => {
    for (const yaml of ['preset: deepseek', 'preset: gemini']) {
      const { body: out, notes } = sent('anthropic-messages', body, target(yaml, 'some-model'));
      expect(JSON.stringify(out)).not.toContain('cache_control');
      expect(notes).toContain('cache_control_dropped');
    }
  });
});
