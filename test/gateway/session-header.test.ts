/** Vendors that know a conversation by a header get it from every client, or its cache is missed and its requests are refused. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { ALL_PROTOCOLS } from '../e2e/clients.ts';
import { scriptedGateway } from './scripted.ts';

/** Their pages: src/vendors/hosts/index.ts, src/vendors/makers/xai.ts. */
const VENDORS = [
  ['OpenCode Go', 'https://opencode.ai/zen/go/v1', 'x-opencode-session'],
  ['xAI', 'https://api.x.ai/v1', 'x-grok-conv-id'],
  ['Fireworks', 'https://api.fireworks.ai/inference/v1', 'x-session-affinity'],
  ['Cloudflare', 'https://api.cloudflare.com/client/v4/accounts/a/ai/v1', 'x-session-affinity'],
] as const;

const answer = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  },
};

/** A conversation that begins with this question, after so many answers. */
const BODIES: Readonly<Record<ProtocolName, (question: string, turns: number) => JsonObject>> = {
  'openai-chat': (question, turns) => ({
    model: 'm',
    messages: [
      { role: 'user', content: question },
      ...Array.from({ length: turns }, () => [
        { role: 'assistant', content: 'fine' },
        { role: 'user', content: 'more' },
      ]).flat(),
    ],
  }),
  'openai-responses': (question, turns) => ({
    model: 'm',
    input: [
      { role: 'user', content: question },
      ...Array.from({ length: turns }, () => [
        { role: 'assistant', content: 'fine' },
        { role: 'user', content: 'more' },
      ]).flat(),
    ],
  }),
  'anthropic-messages': (question, turns) => ({
    model: 'm',
    max_tokens: 9,
    messages: BODIES['openai-chat'](question, turns).messages!,
  }),
  'google-gemini': (question, turns) => ({
    model: 'm',
    stream: false,
    contents: [
      { role: 'user', parts: [{ text: question }] },
      ...Array.from({ length: turns }, () => [
        { role: 'model', parts: [{ text: 'fine' }] },
        { role: 'user', parts: [{ text: 'more' }] },
      ]).flat(),
    ],
  }),
};

async function named(
  baseUrl: string,
  header: string,
  client: ProtocolName,
  bodies: readonly JsonObject[],
  headers: Record<string, string> = {},
): Promise<readonly (string | null)[]> {
  const gateway = scriptedGateway(
    'openai-chat',
    bodies.map(() => answer),
    [],
    '',
    { baseUrl },
  );
  for (const body of bodies) {
    expect((await gateway.ask(client, body, undefined, undefined, headers)).status).toBe(200);
  }
  return gateway.sentHeaders.map((sent) => sent.get(header));
}

describe.each(VENDORS)('%s', (_, baseUrl, header) => {
  test.each(ALL_PROTOCOLS)(
    'the turns of a %s client have one name, other conversations another',
    async (client) => {
      const body = BODIES[client];
      const [first, second, other] = await named(baseUrl, header, client, [
        body('one', 0),
        body('one', 3),
        body('another', 0),
      ]);
      expect(first).toMatch(/^ses_[0-9a-f]{8}$/);
      expect(second).toBe(first!);
      expect(other).not.toBe(first!);
    },
  );

  test("a client's own name for it goes on within its protocol", async () => {
    const bodies = [BODIES['openai-chat']('one', 0)];
    expect(await named(baseUrl, header, 'openai-chat', bodies, { [header]: 'ses_own' })).toEqual([
      'ses_own',
    ]);
  });
});

test('no other vendor hears of it', async () => {
  const gateway = scriptedGateway('openai-chat', [answer]);
  await gateway.ask('anthropic-messages', BODIES['anthropic-messages']('one', 0));
  const sent = [...gateway.sentHeaders[0]!.keys()];
  for (const [, , header] of VENDORS) expect(sent).not.toContain(header);
});
