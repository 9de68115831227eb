/** Request fields without an equivalent in the target's protocol get a note; fields with one are sent. */

import { describe, expect, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../src/conversation/profile-facts.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { PROFILES } from '../../src/vendors/index.ts';
import { PROTOCOLS } from '../features/tool-pairing/support.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const ASKED: Readonly<Record<ProtocolName, JsonObject>> = {
  'anthropic-messages': { max_tokens: 99, messages: [{ role: 'user', content: 'a' }] },
  'openai-chat': { messages: [{ role: 'user', content: 'a' }] },
  'openai-responses': { input: 'a' },
};

function sent(
  from: ProtocolName,
  to: ProtocolName,
  more: JsonObject,
  profile: Profile = NO_PROFILE,
): { readonly body: JsonObject; readonly text: string; readonly notes: readonly string[] } {
  const notes = new Notes();
  const request = PROTOCOLS[from].decodeRequest({ model: 'm', ...ASKED[from], ...more });
  const target = { provider: 'p', model: 'm', protocol: to, profile };
  const body = PROTOCOLS[to].encodeRequest(request, target, notes);
  const reported = notes.all.map(({ name, where }) => `${name} ${where}`);
  return { body, text: JSON.stringify(body), notes: reported };
}

describe('tools', () => {
  const schema = { type: 'object', properties: {} };
  const lost = { input_examples: [{}], allowed_callers: ['direct'], defer_loading: true };

  for (const to of ['openai-chat', 'openai-responses'] as const) {
    test(`fields of Messages towards ${to}`, () => {
      const { text, notes } = sent('anthropic-messages', to, {
        tools: [{ name: 'f', input_schema: schema, ...lost }],
      });
      for (const key of Object.keys(lost)) {
        expect(text).not.toContain(key);
        const named = (note: string) => /^parameter_dropped .*f\//.test(note) && note.endsWith(key);
        expect(notes.filter(named)).toHaveLength(1);
      }
      const bare = { tools: [{ name: 'f', input_schema: schema, input_examples: null }] };
      expect(sent('anthropic-messages', to, bare).notes).toEqual([]);
    });

    test(`the size of the screen towards ${to}`, () => {
      for (const type of ['computer_20250124', 'computer_20251124']) {
        const size = { display_width_px: 1283, display_height_px: 769 };
        const { text } = sent('anthropic-messages', to, {
          tools: [{ type, name: 'computer', ...size }],
        });
        expect(text).toContain('1283');
        expect(text).toContain('769');
      }
    });
  }

  test('a deferred tool of Responses', () => {
    const tools = [{ type: 'function', name: 'f', parameters: schema, defer_loading: true }];
    for (const to of ['openai-chat', 'anthropic-messages'] as const) {
      const { notes } = sent('openai-responses', to, { tools });
      expect(notes).toContainEqual(expect.stringMatching(/^parameter_dropped .*defer_loading$/));
    }
  });

  // https://github.com/QuantumNous/new-api/issues/1305
  test('a tool that runs code gets the container that Responses demands', () => {
    const tools = [{ type: 'code_execution_20250825', name: 'code_execution' }];
    const { body } = sent('anthropic-messages', 'openai-responses', { tools }, PROFILES.openai!);
    expect(body.tools).toEqual([{ type: 'code_interpreter', container: { type: 'auto' } }]);
  });

  test('a search of tools does not go to Responses: no tool of the request waits for one', () => {
    const search = { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' };
    const tools = [search, { name: 'f', input_schema: schema, defer_loading: true }];
    const { body, notes } = sent(
      'anthropic-messages',
      'openai-responses',
      { tools },
      PROFILES.openai!,
    );
    expect((body.tools as JsonObject[]).map(({ type }) => type)).toEqual(['function']);
    expect(notes).toContain(`hosted_tool_dropped tools.${search.type}`);
  });

  test('stay as they are in their own protocol', () => {
    const tools = [{ name: 'f', input_schema: schema, ...lost }];
    const { body, notes } = sent('anthropic-messages', 'anthropic-messages', { tools });
    expect([body.tools, notes]).toEqual([tools, []]);
  });
});

test('the name of a speaker', () => {
  for (const role of ['system', 'developer', 'user', 'assistant']) {
    const named = { role, content: 'b', name: 'Ann' };
    const messages = [named, { role: 'user', content: 'a' }];
    for (const to of NAMES) {
      const { text, notes } = sent('openai-chat', to, { messages });
      if (to === 'openai-chat') expect(text).toContain('"name":"Ann"');
      else
        expect([role, notes]).toEqual([
          role,
          expect.arrayContaining([expect.stringMatching(/^parameter_dropped .*name$/)]),
        ]);
    }
  }
});

describe("settings with another name in the target's protocol", () => {
  test('Chat and Responses share settings under other names', () => {
    const rest = { prompt_cache_retention: '24h', safety_identifier: 'who' };
    for (const [from, to] of [
      ['openai-responses', 'openai-chat'],
      ['openai-chat', 'openai-responses'],
    ] as const) {
      const { body, notes } = sent(from, to, rest);
      expect(body).toMatchObject(rest);
      expect(notes).toEqual([]);
    }
    const refusing = sent('openai-responses', 'openai-chat', rest, PROFILES.mistral!);
    expect(refusing.text).not.toContain('24h');
    expect(refusing.notes).toContain('parameter_dropped prompt_cache_retention');
  });

  test('the user id towards Messages', () => {
    for (const from of ['openai-chat', 'openai-responses'] as const) {
      const alone = sent(from, 'anthropic-messages', { safety_identifier: 'who' });
      expect(alone.body.metadata).toEqual({ user_id: 'who' });
      expect(alone.notes).toContain('parameter_mapped safety_identifier');
      const both = sent(from, 'anthropic-messages', { safety_identifier: 'who', user: 'me' });
      expect(both.body.metadata).toEqual({ user_id: 'me' });
      expect(both.notes).toContain('parameter_dropped safety_identifier');
    }
  });
});

test('reasoning that a client of Messages switches off is off at models of Responses that can', () => {
  const thinking = { type: 'disabled' };
  const can = { ...NO_PROFILE, efforts: ['none', 'low', 'high'] as const };
  const { body, notes } = sent('anthropic-messages', 'openai-responses', { thinking }, can);
  expect([body.reasoning, notes]).toEqual([{ effort: 'none' }, []]);
  const cannot = { ...NO_PROFILE, efforts: ['low', 'high'] as const };
  for (const profile of [NO_PROFILE, cannot]) {
    const left = sent('anthropic-messages', 'openai-responses', { thinking }, profile);
    expect([left.body.reasoning, left.notes]).toEqual([undefined, ['parameter_dropped thinking']]);
  }
});

test('a file that Responses references by its id', () => {
  const content = [
    { type: 'input_text', text: 'a' },
    { type: 'input_file', file_id: 'file-1' },
  ];
  const input = [{ role: 'user', content }];
  for (const name of ['openai', 'openai-chat']) {
    const { body, notes } = sent('openai-responses', 'openai-chat', { input }, PROFILES[name]!);
    const part = { type: 'file', file: { file_id: 'file-1' } };
    expect((body.messages as JsonObject[])[0]!.content).toContainEqual(part);
    expect(notes).toEqual([]);
  }
  for (const profile of [NO_PROFILE, PROFILES.azure!, PROFILES.mistral!]) {
    const { text, notes } = sent('openai-responses', 'openai-chat', { input }, profile);
    expect(text).not.toContain('file-1');
    expect(notes).toContain('content_bridged /messages');
  }
});
