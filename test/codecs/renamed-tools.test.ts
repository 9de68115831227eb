/** A tool whose name a target refuses goes out under another one, with a note that tells both. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { Target } from '../../src/conversation/target.ts';
import type { Json } from '../../src/lib/json/json.ts';

const NAMES = Object.keys(CODECS) as ProtocolName[];
const LONG = `mcp__${'a_server_with_a_long_name_'.repeat(5)}__create-issue`;
const DOTTED = 'github.create/issue';
const PLAIN = 'mcp__github__create-issue';

const schema = { type: 'object', properties: { title: { type: 'string' } } };
const BODIES: Readonly<Record<ProtocolName, (tools: readonly string[]) => unknown>> = {
  'openai-chat': (tools) => ({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    tools: tools.map((name) => ({ type: 'function', function: { name, parameters: schema } })),
  }),
  'openai-responses': (tools) => ({
    model: 'm',
    input: 'hi',
    tools: tools.map((name) => ({ type: 'function', name, parameters: schema, strict: false })),
  }),
  'anthropic-messages': (tools) => ({
    model: 'm',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
    tools: tools.map((name) => ({ name, input_schema: schema })),
  }),
  'google-gemini': (tools) => ({
    model: 'm',
    stream: false,
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    tools: [
      { functionDeclarations: tools.map((name) => ({ name, parametersJsonSchema: schema })) },
    ],
  }),
};

function sent(
  client: ProtocolName,
  protocol: ProtocolName,
  tools: readonly string[] = [PLAIN, LONG, DOTTED],
) {
  const notes = new Notes();
  const target: Target = { provider: 'up', model: 'm', protocol, profile: { name: 'none' } };
  const asked = CODECS[client].decodeRequest(BODIES[client](tools) as Json);
  const text = JSON.stringify(CODECS[protocol].encodeRequest(asked, target, notes));
  const renamed = notes.all.filter(({ name }) => name === 'tool_renamed');
  return { text, notes: notes.all, told: renamed.map(({ what }) => what ?? '') };
}

describe.each(NAMES)('a client of %s', (client) => {
  test.each(NAMES.filter((name) => name !== client))('onto %s', (protocol) => {
    const { text, told } = sent(client, protocol);
    for (const name of [LONG, DOTTED]) {
      expect(text).not.toContain(`"${name}"`);
      const [, other] = told.find((what) => what.startsWith(name))!.split(' as ');
      expect(text).toContain(`"${other}"`);
    }
    expect(text).toContain(`"${PLAIN}"`);
    expect(told).toHaveLength(2);
  });

  test('onto its own protocol keeps every name, and says nothing', () => {
    const { text, told } = sent(client, client);
    for (const name of [PLAIN, LONG, DOTTED]) expect(text).toContain(`"${name}"`);
    expect(told).toEqual([]);
  });
});

describe('a tool that is declared twice', () => {
  const pairs = NAMES.flatMap((client) => NAMES.map((protocol) => [client, protocol] as const));

  test.each(pairs.filter(([client, protocol]) => client !== protocol))(
    'from %s goes out once onto %s, whose vendors refuse the second one',
    (client, protocol) => {
      const { text, notes } = sent(client, protocol, [PLAIN, 'other', PLAIN, PLAIN]);
      expect(text.split(`"${PLAIN}"`)).toHaveLength(2);
      expect(text).toContain('"other"');
      const told = notes.filter(({ name }) => name === 'tool_dropped');
      expect(told.map(({ what }) => what)).toEqual(Array(2).fill(`${PLAIN} is declared twice`));
    },
  );

  test.each(NAMES.filter((name) => name !== 'anthropic-messages'))(
    'stays as it is within %s',
    (protocol) => {
      const { text, notes } = sent(protocol, protocol, [PLAIN, PLAIN]);
      expect(text.split(`"${PLAIN}"`)).toHaveLength(3);
      expect(notes).toEqual([]);
    },
  );
});
