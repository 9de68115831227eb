/** Optional fields that a client sends as null: they are not set, so nothing of them can be lost. */

import { describe, expect, test } from 'bun:test';
import { withParts } from '../../src/conversation/edit.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/target.ts';
import type { JsonObject } from '../../src/lib/json.ts';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/index.ts';
import { openaiChat } from '../../src/protocols/openai-chat/index.ts';
import { openaiResponses } from '../../src/protocols/openai-responses/index.ts';
import type { Protocol } from '../../src/protocols/protocol.ts';

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

function encoded(from: Protocol, body: JsonObject, to: Protocol) {
  const notes = new Notes();
  const target = { provider: 'vendor', model: 'm', protocol: to.name, profile: NO_PROFILE };
  const asked = from.decodeRequest(body);
  return { asked, body: to.encodeRequest(asked, target, notes), notes: notes.summary() };
}

describe('null is not told as a parameter that was dropped', () => {
  test.each([openaiChat, anthropicMessages])('from Responses (%#)', (to) => {
    expect(encoded(openaiResponses, responses, to).notes).not.toContain('parameter_dropped');
  });

  test('towards Responses, nor sent there', () => {
    const messages = [{ role: 'user', content: 'x' }];
    const chat = { model: 'm', messages, modalities: null, audio: null, safety_identifier: null };
    const from = encoded(openaiChat, chat, openaiResponses);
    expect(from.notes).toBe('');
    expect(Object.values(from.body)).not.toContain(null);
    const other = { model: 'm', max_tokens: 90, messages, container: null };
    expect(encoded(anthropicMessages, other, openaiResponses).notes).toBe('');
  });
});

test('a field that says something is told as ever', () => {
  const { notes } = encoded(openaiResponses, { ...responses, truncation: 'auto' }, openaiChat);
  expect(notes).toContain('parameter_dropped');
});

test('an own body keeps its nulls, settings changed or not', () => {
  const { asked, body } = encoded(openaiResponses, responses, openaiResponses);
  expect(body).toEqual(responses);
  const changed = withParts(asked, { settings: { ...asked.settings, temperature: 1 } });
  const target = {
    provider: 'vendor',
    model: 'm',
    protocol: 'openai-responses' as const,
    profile: NO_PROFILE,
  };
  expect(openaiResponses.encodeRequest(changed, target, new Notes())).toEqual({
    ...responses,
    temperature: 1,
  });
});
