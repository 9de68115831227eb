/** Cache marks that the target's protocol lacks get a note, in every position and with every lifetime. */

import { expect, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { PROTOCOLS } from '../features/tool-pairing/support.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

function notesOf(from: ProtocolName, body: JsonObject): readonly string[] {
  const notes = new Notes();
  const target = {
    provider: 'p',
    model: 'm',
    protocol: 'openai-responses',
    profile: NO_PROFILE,
  } as const;
  const request = PROTOCOLS[from].decodeRequest({ model: 'm', max_tokens: 99, ...body });
  PROTOCOLS['openai-responses'].encodeRequest(request, target, notes);
  return notes.all.map(({ name }) => name);
}

const text = (more: JsonObject = {}): JsonObject => ({ type: 'text', text: 'a', ...more });

test('towards Responses', () => {
  for (const ttl of [undefined, '5m', '1h']) {
    const mark = { cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } };
    const marked: readonly (readonly [ProtocolName, JsonObject])[] = [
      ['anthropic-messages', { messages: [{ role: 'user', content: [text(mark)] }] }],
      ['anthropic-messages', { system: [text(mark)], messages: [{ role: 'user', content: 'a' }] }],
      [
        'anthropic-messages',
        {
          messages: [{ role: 'user', content: 'a' }],
          tools: [{ name: 'f', input_schema: { type: 'object' }, ...mark }],
        },
      ],
      ['openai-chat', { messages: [{ role: 'user', content: [text(mark)] }] }],
    ];
    for (const [from, body] of marked) {
      expect(notesOf(from, body)).toContain('cache_control_dropped');
    }
  }
  const bare = { messages: [{ role: 'user', content: [text()] }] };
  expect(notesOf('anthropic-messages', bare)).not.toContain('cache_control_dropped');
});
