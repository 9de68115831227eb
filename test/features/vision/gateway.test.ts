/** Vision in the real pipeline: an agent's session with screenshots at a text model, turn after turn. */

import { describe, expect, test } from 'bun:test';
import { withRunReport } from '../../../src/features/vision/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import type { ToolRun } from '../../../src/samples/recording.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
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

/** A history of that many turns, each with a screenshot, first from the user, then from tools. */
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
      'the session of a %s client continues turn after turn, and no image is described twice',
      async (client) => {
        const { feature, requests } = eyes();
        const script = Array.from({ length: 3 }, () => UPSTREAMS[upstream]);
        const gateway = scriptedGateway(upstream, script, [feature], BLIND);
        for (const turns of [1, 2, 3]) {
          const { status, headers } = await gateway.ask(client, HISTORIES[client](turns));
          expect(status).toBe(200);
          expect(headers.get('x-hopgate-notes')).toContain('content_bridged');
          expect(requests).toHaveLength(turns);
        }
        const prompts = gateway.sent.map((body) => {
          expect(JSON.stringify(body)).not.toMatch(/base64|image_url|not shown/);
          return JSON.stringify((body as JsonObject).messages).slice(0, -1);
        });
        // Prompt caches need this: each request starts with the previous one.
        expect(prompts[1]).toStartWith(prompts[0]!);
        expect(prompts[2]).toStartWith(prompts[1]!);
        expect(prompts[2]).toContain('seen 3');
      },
    );
  },
);

test('a request without images stays unchanged, byte for byte', async () => {
  const { feature } = eyes();
  const gateway = scriptedGateway('openai-chat', [reply], [feature], BLIND);
  const body = { messages: [{ role: 'user', content: 'hi', odd: 1.5 }], model: 'm', odd: [] };
  const { headers } = await gateway.ask('openai-chat', body);
  expect(JSON.stringify(gateway.sent[0])).toBe(JSON.stringify(body));
  expect(headers.get('x-hopgate-notes')).toBeNull();
});

test('a failing vision model costs the images, not the session', async () => {
  const { feature } = eyes({}, () => Promise.reject(new Error('503')));
  const gateway = scriptedGateway('openai-chat', [reply, reply], [feature], BLIND);
  for (const turns of [1, 2]) {
    const { status } = await gateway.ask('openai-chat', HISTORIES['openai-chat'](turns));
    expect(status).toBe(200);
  }
  expect(JSON.stringify(gateway.sent[1])).toContain('[image not shown]');
});

describe('a target without a profile that refuses images', () => {
  const body = () => HISTORIES['openai-chat'](1);
  const refusals: readonly (readonly [number, string])[] = [
    [400, 'Failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`'],
    [404, 'No endpoints found that support image input'],
    [400, 'm is not a multimodal model'],
    [400, 'At most 0 image(s) may be provided in one request.'],
    [400, 'Invalid content type. image_url is only supported by certain models.'],
    [400, 'This model does not support image inputs'],
    [500, 'image input is not supported - hint: you may need to provide the mmproj'],
  ];
  for (const [status, message] of refusals) {
    test(`the target gets descriptions after one refusal: ${message}`, async () => {
      const { feature, requests } = eyes();
      const refusal = { json: { error: { message } }, status };
      const gateway = scriptedGateway('openai-chat', [refusal, reply], [feature]);
      const answered = await gateway.ask('openai-chat', body());
      expect(answered.status).toBe(200);
      expect([requests.length, gateway.sent.length]).toEqual([1, 2]);
      expect(JSON.stringify(gateway.sent[1])).toContain('seen 1');
      expect(JSON.stringify(gateway.sent[1])).not.toContain('image_url');
      expect(answered.headers.get('x-hopgate-notes')).toContain('content_bridged');
    });
  }

  test('no retry without a vision model, or when it refuses something else', async () => {
    const image = {
      json: { error: { message: 'This model does not support image inputs' } },
      status: 400,
    };
    const none = eyes({ settings: () => undefined });
    const first = scriptedGateway('openai-chat', [image, reply], [none.feature]);
    expect((await first.ask('openai-chat', body())).status).toBe(400);
    expect(first.sent).toHaveLength(1);
    const other = { json: { error: { message: 'max_tokens is too large' } }, status: 400 };
    const second = scriptedGateway('openai-chat', [other, reply], [eyes().feature]);
    expect((await second.ask('openai-chat', body())).status).toBe(400);
    expect(second.sent).toHaveLength(1);
  });
});

test('a description is reported to the exchange that waited for it, with tokens in the log', async () => {
  const events: object[] = [];
  const { feature } = eyes(
    { log: (event, fields) => events.push({ event, ...fields }) },
    async () => ({ text: 'a cat', usage: { input: 11, output: 7 } }),
  );
  const runs: ToolRun[] = [];
  const response = withRunReport(feature, (run) => runs.push(run));
  const gateway = scriptedGateway('openai-chat', [reply], [response], BLIND);
  expect((await gateway.ask('openai-chat', HISTORIES['openai-chat'](1))).status).toBe(200);
  expect(runs).toMatchObject([{ name: 'vision', result: 'a cat' }]);
  expect(runs[0]!.arguments).toContain('"target":"v/eyes"');
  expect(events).toMatchObject([{ event: 'vision.described', input: 11, output: 7 }]);
});
