/** The byte prefilter: it may never skip a body that the pass would change. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { MESSAGES_DAMAGE } from './damage.ts';
import { CHAT_DAMAGE, RESPONSES_DAMAGE } from './damage-openai.ts';
import { type Mutable, Random } from './histories.ts';
import { run } from './support.ts';

const DAMAGE = {
  'anthropic-messages': MESSAGES_DAMAGE,
  'openai-chat': CHAT_DAMAGE,
  'openai-responses': RESPONSES_DAMAGE,
} as const;

function looks(body: Json, protocol: ProtocolName, spaces = 0): boolean {
  const target = { provider: 'p', model: 'm', protocol, profile: NO_PROFILE };
  const bytes = Buffer.from(JSON.stringify(body, null, spaces));
  return toolPairing.mayApply!(bytes, { target, client: protocol, notes: new Notes(), hop: 1 });
}

const plain = (protocol: ProtocolName, texts: readonly string[]): JsonObject => {
  const messages = texts.map((text, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: text,
  }));
  return protocol === 'openai-responses'
    ? { model: 'm', input: messages }
    : { model: 'm', max_tokens: 9, messages };
};

describe('a plain dialogue is skipped', () => {
  test('Messages and Chat are skipped, whatever the user writes about', () => {
    const texts = [
      'what is "tool_use"?',
      'A block of type "tool_result" … \n\n',
      ' indented "role"',
    ];
    expect(looks(plain('anthropic-messages', texts), 'anthropic-messages')).toBe(false);
    expect(looks(plain('openai-chat', texts), 'openai-chat')).toBe(false);
  });

  test('Messages with declared but unused tools is skipped', () => {
    const body = {
      ...plain('anthropic-messages', ['hi']),
      tools: [
        {
          name: 'Read',
          input_schema: { type: 'object', properties: { path: { type: 'string' } } },
        },
      ],
    };
    expect(looks(body, 'anthropic-messages', 2)).toBe(false);
  });

  test('another protocol is never skipped, since its encoder runs anyway', () => {
    const target = {
      provider: 'p',
      model: 'm',
      protocol: 'openai-chat' as const,
      profile: NO_PROFILE,
    };
    const context = { target, client: 'anthropic-messages' as const, notes: new Notes(), hop: 1 };
    expect(toolPairing.mayApply!(Buffer.alloc(0), context)).toBe(true);
  });
});

describe('a body that the pass would change is never skipped', () => {
  for (const protocol of Object.keys(DAMAGE) as ProtocolName[]) {
    test(protocol, () => {
      const kinds = Object.keys(DAMAGE[protocol]);
      fc.assert(
        fc.property(
          fc.nat(),
          fc.array(fc.constantFrom(...kinds), { maxLength: 2 }),
          fc.constantFrom(0, 1, 2),
          fc.array(fc.constantFrom('hi', ' ', '\n', '\u00a0', '\u3000', 'a ', '', 'x\n'), {
            minLength: 1,
            maxLength: 5,
          }),
          (seed, some, spaces, texts) => {
            const body = structuredClone(plain(protocol, texts)) as Record<string, Json>;
            const list = (
              protocol === 'openai-responses' ? body.input : body.messages
            ) as Mutable[];
            const random = new Random(seed);
            for (const kind of some) DAMAGE[protocol][kind]!(list, random);
            if (looks(body, protocol, spaces)) return;
            const { names, same } = run(body, protocol);
            // A body that no decoder reads never reaches the pass.
            if (names.includes('malformed_content_mended')) return;
            expect({ names, same }).toEqual({ names: [], same: true });
          },
        ),
        { numRuns: 1500 },
      );
    });
  }
});
