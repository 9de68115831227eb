/** Broken histories translated to another protocol, checked by the fake vendor. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { checkMessages } from '../../support/fake-upstream/check-messages.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { chatComplaint, messagesComplaint, responsesComplaint } from './complaints.ts';
import { type Damage, MESSAGES_DAMAGE } from './damage.ts';
import { CHAT_DAMAGE, RESPONSES_DAMAGE } from './damage-openai.ts';
import {
  chatBody,
  chatVoice,
  type Mutable,
  messagesBody,
  messagesVoice,
  Random,
  requests,
  responsesBody,
  responsesVoice,
  session,
} from './histories.ts';
import { run } from './support.ts';

const RUNS = Number(process.env.PAIRING_RUNS ?? 250);

const SOURCES: Readonly<
  Record<
    ProtocolName,
    {
      damage: Readonly<Record<string, Damage>>;
      list: string;
      bodies: (seed: number) => readonly JsonObject[];
    }
  >
> = {
  'anthropic-messages': {
    damage: MESSAGES_DAMAGE,
    list: 'messages',
    bodies: (seed) => requests(session(seed, 3), messagesBody, messagesVoice(seed)),
  },
  'openai-chat': {
    damage: CHAT_DAMAGE,
    list: 'messages',
    bodies: (seed) => requests(session(seed, 3), chatBody, chatVoice),
  },
  'openai-responses': {
    damage: RESPONSES_DAMAGE,
    list: 'input',
    bodies: (seed) => requests(session(seed, 3), responsesBody, responsesVoice),
  },
};

const COMPLAINTS: Readonly<Record<ProtocolName, (body: JsonObject) => string | undefined>> = {
  'anthropic-messages': (body) => {
    checkMessages(body, { 'anthropic-beta': 'context-management-2025-06-27' }, { anySeal: true });
    return messagesComplaint(body);
  },
  'openai-chat': chatComplaint,
  'openai-responses': responsesComplaint,
};

const NAMES = Object.keys(SOURCES) as ProtocolName[];

describe('a history broken at the client is valid at the vendor, and stays valid', () => {
  for (const from of NAMES) {
    for (const to of NAMES) {
      test(`${from} to ${to}`, () => {
        const { damage, list, bodies } = SOURCES[from];
        fc.assert(
          fc.property(
            fc.nat(),
            fc.array(fc.constantFrom(...Object.keys(damage)), { maxLength: 5 }),
            (seed, kinds) => {
              const random = new Random(seed);
              const body = structuredClone(random.pick(bodies(seed))) as Record<string, Json>;
              for (const kind of kinds) damage[kind]!(body[list] as Mutable[], random);
              const { body: sent } = run(body, from, { to });
              expect(COMPLAINTS[to](sent)).toBeUndefined();
              expect(run(sent, to)).toMatchObject({ same: true, names: [] });
            },
          ),
          { numRuns: RUNS },
        );
      });
    }
  }
});

for (const to of ['openai-chat', 'openai-responses'] as const) {
  test(`a history of only another vendor's sealed thinking does not reach ${to} empty`, () => {
    const content = [{ type: 'redacted_thinking', data: 'not theirs' }];
    const body = { model: 'm', max_tokens: 10, messages: [{ role: 'assistant', content }] };
    const { body: sent, names } = run(body, 'anthropic-messages', { to });
    expect(COMPLAINTS[to](sent)).toBeUndefined();
    expect(names).toContain('empty_content_removed');
  });
}

test('a call of the vendor’s own tool with a non-object input gets an object, like a client call', () => {
  const call = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: 5 };
  const answer = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
  const body = {
    model: 'm',
    max_tokens: 10,
    messages: [
      { role: 'user', content: 'Look it up.' },
      { role: 'assistant', content: [call, answer, { type: 'text', text: 'Done.' }] },
      { role: 'user', content: 'Thanks.' },
    ],
  };
  const { body: sent } = run(body, 'anthropic-messages', { to: 'anthropic-messages' });
  expect(COMPLAINTS['anthropic-messages'](sent)).toBeUndefined();
  expect(sent.messages).toMatchObject([
    {},
    { content: [{ ...call, input: { input: 5 } }, answer, { type: 'text', text: 'Done.' }] },
    {},
  ]);
});
