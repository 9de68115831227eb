/** A tool schema with a union at its root becomes a plain object, with a note, for vendors that refuse unions. */

import { describe, expect, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../src/conversation/profile-facts.ts';
import type { Conversation } from '../../src/conversation/types.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { PROFILES } from '../../src/vendors/index.ts';
import { PROTOCOLS } from '../features/tool-pairing/support.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const branch = (name: string): JsonObject => ({
  type: 'object',
  properties: { [name]: { type: 'string' }, both: { type: 'string' } },
  required: [name, 'both'],
});
const UNIONS: Readonly<Record<string, JsonObject>> = {
  anyOf: { anyOf: [branch('a'), branch('b')] },
  oneOf: { oneOf: [branch('a'), branch('b')], properties: { c: {} } },
  allOf: { allOf: [branch('a'), branch('b')] },
  not: { type: 'object', properties: {}, not: { required: ['a'] } },
  enum: { type: 'object', properties: {}, enum: [{ a: 1 }] },
};

function schemaOf(
  to: ProtocolName,
  schema: JsonObject,
  profile: Profile,
): [JsonObject, readonly string[]] {
  const notes = new Notes();
  // As an MCP server's tool joins a conversation: without a wire.
  const request: Conversation = {
    model: 'm',
    system: [],
    turns: [{ role: 'user', blocks: [{ type: 'text', text: 'a' }] }],
    tools: [{ type: 'function', name: 'f', schema }],
    settings: { stream: false, maxTokens: 32 },
  };
  const target = { provider: 'p', model: 'm', protocol: to, profile };
  const body = PROTOCOLS[to].encodeRequest(request, target, notes);
  const tool = (body.tools as JsonObject[])[0]!;
  const found = (tool.input_schema ??
    (tool.function as JsonObject)?.parameters ??
    tool.parameters) as JsonObject;
  return [found, notes.all.map(({ name }) => name)];
}

describe.each([
  ['openai-chat', PROFILES.openai!],
  ['openai-responses', PROFILES.openai!],
  ['openai-chat', PROFILES.azure!],
  ['anthropic-messages', PROFILES.anthropic!],
] as const)('%s', (to, profile) => {
  for (const [what, schema] of Object.entries(UNIONS)) {
    if (to === 'anthropic-messages' && (what === 'not' || what === 'enum')) continue;
    test(what, () => {
      const [sent, notes] = schemaOf(to, schema, profile as Profile);
      expect(sent.type).toBe('object');
      for (const key of Object.keys(UNIONS)) expect(sent[key]).toBeUndefined();
      expect(notes).toEqual(['schema_simplified']);
      if (what === 'anyOf') {
        expect(Object.keys(sent.properties as JsonObject).sort()).toEqual(['a', 'b', 'both']);
        expect(sent.required).toEqual(['both']);
      }
      if (what === 'allOf') expect(sent.required).toEqual(['a', 'both', 'b']);
    });
  }
});

test('other servers get the whole schema', () => {
  for (const to of ['openai-chat', 'openai-responses'] as const) {
    const [sent, notes] = schemaOf(to, UNIONS.anyOf!, NO_PROFILE);
    expect(sent.anyOf).toEqual(UNIONS.anyOf!.anyOf);
    expect(notes).toEqual([]);
  }
});
