/** Vision in the real pipeline: an agent's session with screenshots at a text model, turn after turn. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { dataUrl, eyes, png } from './support.ts';

const BLIND = 'profiles: { none: { images: false } }\n';

const reply: Scripted = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' },
    ],
  },
};
const messagesReply: Scripted = {
  json: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Done.' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};

/** A history of so many turns, each with a screenshot: of the user's, then of tools'. */
const HISTORIES: Readonly<Record<ProtocolName, (turns: number) => JsonObject>> = {
  'openai-chat': (turns) => ({
    model: 'm',
    messages: Array.from({ length: turns }, (_, turn) => [
      {
        role: 'user',
        content: [
          { type: 'text', text: `step ${turn}` },
          { type: 'image_url', image_url: { url: dataUrl(`${turn}`) } },
        ],
      },
      { role: 'assistant', content: `done ${turn}` },
    ])
      .flat()
      .slice(0, -1),
  }),
  'openai-responses': (turns) => ({
    model: 'm',
    store: false,
    input: Array.from({ length: turns }, (_, turn) => [
      { role: 'user', content: [{ type: 'input_text', text: `step ${turn}` }] },
      { type: 'function_call', call_id: `c${turn}`, name: 'shot', arguments: '{}' },
      {
        type: 'function_call_output',
        call_id: `c${turn}`,
        output: [{ type: 'input_image', image_url: dataUrl(`${turn}`) }],
      },
      { role: 'assistant', content: [{ type: 'output_text', text: `done ${turn}` }] },
    ])
      .flat()
      .slice(0, -1),
  }),
  'anthropic-messages': (turns) => ({
    model: 'm',
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'Look around.' },
      ...Array.from({ length: turns }, (_, turn) => [
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: `t${turn}`, name: 'shot', input: {} }],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: `t${turn}`,
              content: [
                {
                  type: 'image',
                  source: { type: 'base64', media_type: 'image/png', data: png(`${turn}`) },
                },
              ],
            },
          ],
        },
      ]).flat(),
    ],
  }),
};

const UPSTREAMS = {
  'openai-chat': reply,
  'anthropic-messages': messagesReply,
} as const satisfies Partial<Record<ProtocolName, Scripted>>;

describe.each(['openai-chat', 'anthropic-messages'] as const)(
  'at a text model of %s',
  (upstream) => {
    test.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
      'a client of %s goes on turn after turn, and no image is described twice',
      async (client) => {
        const { feature, asked } = eyes();
        const script = Array.from({ length: 3 }, () => UPSTREAMS[upstream]);
        const gateway = scriptedGateway(upstream, script, [feature], BLIND);
        for (const turns of [1, 2, 3]) {
          const { status, headers } = await gateway.ask(client, HISTORIES[client](turns));
          expect(status).toBe(200);
          expect(headers.get('x-hopgate-notes')).toContain('content_bridged');
          expect(asked).toHaveLength(turns);
        }
        const prompts = gateway.sent.map((body) => {
          expect(JSON.stringify(body)).not.toMatch(/base64|image_url|not shown/);
          return JSON.stringify((body as JsonObject).messages).slice(0, -1);
        });
        // Prompt caches live on this: what was sent is the beginning of what is sent next.
        expect(prompts[1]).toStartWith(prompts[0]!);
        expect(prompts[2]).toStartWith(prompts[1]!);
        expect(prompts[2]).toContain('seen 3');
      },
    );
  },
);

test('a request without images is not touched by it, byte for byte', async () => {
  const { feature } = eyes();
  const gateway = scriptedGateway('openai-chat', [reply], [feature], BLIND);
  const body = { messages: [{ role: 'user', content: 'hi', odd: 1.5 }], model: 'm', odd: [] };
  const { headers } = await gateway.ask('openai-chat', body);
  expect(JSON.stringify(gateway.sent[0])).toBe(JSON.stringify(body));
  expect(headers.get('x-hopgate-notes')).toBeNull();
});

test('a vision model that is down costs the images, not the session', async () => {
  const { feature } = eyes({}, () => Promise.reject(new Error('503')));
  const gateway = scriptedGateway('openai-chat', [reply, reply], [feature], BLIND);
  for (const turns of [1, 2]) {
    const { status } = await gateway.ask('openai-chat', HISTORIES['openai-chat'](turns));
    expect(status).toBe(200);
  }
  expect(JSON.stringify(gateway.sent[1])).toContain('[image not shown]');
});
