/** Declarations of tools are written once for a session, not with each turn. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { KnownNodes } from '../../src/conversation/session/known-nodes.ts';
import type { Target } from '../../src/conversation/target.ts';
import type { ProtocolName } from '../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';

const NAMES = Object.keys(CODECS) as ProtocolName[];
const schema = { type: 'object', properties: { path: { type: 'string' } } };
const said = [{ role: 'user', content: 'Hello.' }];

const BODIES: Readonly<Record<ProtocolName, (more: JsonObject) => JsonObject>> = {
  'anthropic-messages': (more) => ({
    max_tokens: 9,
    messages: said,
    tools: [{ name: 'f', description: 'Reads.', input_schema: schema, ...more }],
  }),
  'openai-chat': (more) => ({
    messages: said,
    tools: [{ type: 'function', function: { name: 'f', parameters: schema, ...more } }],
  }),
  'openai-responses': (more) => ({
    input: said,
    tools: [{ type: 'function', name: 'f', parameters: schema, strict: false, ...more }],
  }),
  'google-gemini': (more) => ({
    contents: [{ role: 'user', parts: [{ text: 'Hello.' }] }],
    tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema, ...more }] }],
  }),
};

const targetOf = (protocol: ProtocolName): Target => ({
  provider: 'up',
  model: 'm',
  protocol,
  profile: NO_PROFILE,
});

/** What two turns of a session declare, and the notes of each. */
function twoTurns(from: ProtocolName, to: ProtocolName, more: JsonObject = {}) {
  const known = new KnownNodes();
  const target = targetOf(to);
  const request = { model: 'm', ...BODIES[from](more) } as JsonObject;
  return [1, 2].map(() => {
    const notes = new Notes();
    const conversation = CODECS[from].decodeRequest(request, known);
    const body = CODECS[to].encodeRequest(conversation, target, notes, known);
    return { tools: (body.tools as readonly Json[])[0], notes: notes.all.map(({ name }) => name) };
  });
}

describe.each(NAMES)('declarations for %s', (to) => {
  const others = NAMES.filter((from) => from !== to);

  test.each(others)('tools of %s that did not change are not written anew', (from) => {
    const [first, second] = twoTurns(from, to);
    expect(first!.tools).toBeDefined();
    expect(second!.tools).toBe(first!.tools!);
  });
});

test.each(NAMES.filter((to) => to !== 'anthropic-messages'))(
  'what tools of Messages lose on the way to %s is noted in each turn',
  (to) => {
    const [first, second] = twoTurns('anthropic-messages', to, { odd_option: 1 });
    expect(first!.notes).toContain('parameter_dropped');
    expect(second!.notes).toEqual(first!.notes);
  },
);
