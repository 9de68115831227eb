/** Optional fields that a client sends as null count as not set, so no note says that they are lost. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { withParts } from '../../src/conversation/edit.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const responses = {
  model: 'm',
  input: 'x',
  truncation: null,
  prompt: null,
  background: null,
  conversation: null,
  max_tool_calls: null,
  safety_identifier: null,
  stream_options: null,
  some_new_field: null,
};

function encoded(from: Codec, body: JsonObject, to: Codec) {
  const notes = new Notes();
  const target = { provider: 'vendor', model: 'm', protocol: to.name, profile: NO_PROFILE };
  const request = from.decodeRequest(body);
  return { request, body: to.encodeRequest(request, target, notes), notes: notes.summary() };
}

const messages = [{ role: 'user', content: 'x' }];
const chat = {
  model: 'm',
  messages,
  modalities: null,
  audio: null,
  logit_bias: null,
  safety_identifier: null,
  web: null,
};
const anthropic = {
  model: 'm',
  max_tokens: 90,
  messages,
  container: null,
  context_management: null,
  mcp_servers: null,
};

const BODIES: readonly (readonly [Codec, JsonObject])[] = [
  [openaiChat, chat],
  [openaiResponses, responses],
  [anthropicMessages, anthropic],
];
const PAIRS = BODIES.flatMap(([from, body]) =>
  BODIES.filter(([to]) => to !== from).map(([to]) => [from.name, to.name, from, body, to] as const),
);

describe('a null parameter is neither sent nor noted as dropped', () => {
  test.each(PAIRS)('from %s to %s', (_, __, from, body, to) => {
    const sent = encoded(from, body, to);
    expect(sent.notes).not.toContain('parameter_dropped');
    expect(Object.values(sent.body)).not.toContain(null);
    if (to === openaiResponses) expect(sent.notes).toBe('');
  });
});

test('a field that is set still gets its note', () => {
  const reportsOf = (from: Codec, body: JsonObject, to: Codec) => encoded(from, body, to).notes;
  const parameter = 'parameter_dropped';
  expect(reportsOf(openaiResponses, { ...responses, truncation: 'auto' }, openaiChat)).toContain(
    parameter,
  );
  expect(reportsOf(openaiChat, { ...chat, web: 1 }, anthropicMessages)).toContain(parameter);
  expect(reportsOf(anthropicMessages, { ...anthropic, container: 'c' }, openaiChat)).toContain(
    parameter,
  );
});

test.each(BODIES.map(([protocol, body]) => [protocol.name, protocol, body] as const))(
  'a body in its own protocol (%s) keeps its nulls, settings changed or not',
  (name, protocol, own) => {
    const { request, body } = encoded(protocol, own, protocol);
    expect(body).toEqual(own);
    const target = { provider: 'vendor', model: 'm', protocol: name, profile: NO_PROFILE };
    const warmer = { ...request.settings, temperature: 1 };
    const more = { ...warmer, rest: { ...warmer.rest, new: 2 } };
    const sent = (settings: typeof request.settings) =>
      protocol.encodeRequest(withParts(request, { settings }), target, new Notes());
    expect(sent(warmer)).toEqual({ ...own, temperature: 1 });
    expect(sent(more)).toEqual({ ...own, temperature: 1, new: 2 });
  },
);
