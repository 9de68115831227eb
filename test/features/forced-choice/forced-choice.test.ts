/** Models that cannot be forced to call a tool: the prompt says it, the answer is checked, and the model is asked once more. */

import { describe, expect, test } from 'bun:test';
import { ForcedChoice } from '../../../src/features/forced-choice/index.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import { isObject, type JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

const features = () => [refusalRetry(), vendorFit(), new ForcedChoice()];
const opus = (script: Scripted[]) =>
  scriptedGateway('anthropic-messages', script, features(), '', { profile: 'anthropic' });

const MODEL = 'claude-opus-5-5';
const SCHEMA = { type: 'object', properties: {} };
const ASKED: Readonly<Record<ProtocolName, JsonObject>> = {
  'anthropic-messages': {
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ name: 'f', input_schema: SCHEMA }],
    tool_choice: { type: 'tool', name: 'f' },
  },
  'openai-chat': {
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
  },
  'openai-responses': {
    input: 'Hi',
    tools: [{ type: 'function', name: 'f', parameters: SCHEMA }],
    tool_choice: { type: 'function', name: 'f' },
  },
};
const CLIENTS = Object.keys(ASKED) as ProtocolName[];

const message = (content: readonly JsonObject[], stop: string, output = 2): JsonObject => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: MODEL,
  content,
  stop_reason: stop,
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: output },
});
const says: JsonObject = { type: 'text', text: 'No.' };
const calls: JsonObject = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };

const sse = (reply: JsonObject): Scripted => {
  const events: JsonObject[] = [{ type: 'message_start', message: { ...reply, content: [] } }];
  (reply.content as readonly JsonObject[]).forEach((block, index) => {
    const start = block.type === 'text' ? { ...block, text: '' } : { ...block, input: {} };
    const delta =
      block.type === 'text'
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: '{}' };
    events.push({ type: 'content_block_start', index, content_block: start });
    events.push({ type: 'content_block_delta', index, delta });
    events.push({ type: 'content_block_stop', index });
  });
  events.push({
    type: 'message_delta',
    delta: { stop_reason: reply.stop_reason, stop_sequence: null },
    usage: reply.usage,
  });
  events.push({ type: 'message_stop' });
  return { sse: events.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`) };
};

const lastText = (body: unknown): string => JSON.stringify((body as JsonObject).messages);

describe('a forced tool on a model that refuses to be forced', () => {
  test.each(CLIENTS)(
    '%s: the prompt says it behind the history, the choice is auto',
    async (client) => {
      const gateway = opus([{ json: message([calls], 'tool_use') }]);
      await gateway.ask(client, { ...ASKED[client], model: MODEL });
      expect(gateway.sent).toHaveLength(1);
      const [sent] = gateway.sent as JsonObject[];
      expect(sent!.tool_choice).toEqual({ type: 'auto' });
      expect(lastText(sent)).toContain('Call the tool \\"f\\" now');
      expect(gateway.summaries[0]!.notes.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['parameter_mapped', 'content_bridged']),
      );
    },
  );

  test.each(CLIENTS)(
    '%s: an answer without the call is followed by one more request',
    async (client) => {
      const gateway = opus([
        { json: message([says], 'end_turn') },
        { json: message([calls], 'tool_use', 3) },
      ]);
      const { text } = await gateway.ask(client, { ...ASKED[client], model: MODEL });
      expect(gateway.sent).toHaveLength(2);
      const turns = (gateway.sent[1] as JsonObject).messages as readonly JsonObject[];
      expect(turns.map(({ role }) => role).slice(-2)).toEqual(['assistant', 'user']);
      expect(text).toContain('"f"');
      expect(text).toContain(
        client === 'openai-chat' ? '"completion_tokens":5' : '"output_tokens":5',
      );
      expect(gateway.summaries[0]!.notes.map(({ name }) => name)).toContain('tool_call_repeated');
    },
  );

  test.each(CLIENTS)('%s: the same as one stream', async (client) => {
    const gateway = opus([sse(message([says], 'end_turn')), sse(message([calls], 'tool_use', 3))]);
    const { text, reset } = await gateway.ask(client, {
      ...ASKED[client],
      model: MODEL,
      stream: true,
    });
    expect(reset).toBe(false);
    expect(gateway.sent).toHaveLength(2);
    const frames = text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)) as JsonObject);
    if (client === 'anthropic-messages') {
      expect(frames.filter(({ type }) => type === 'message_start')).toHaveLength(1);
      const starts = frames.filter(({ type }) => type === 'content_block_start');
      expect(starts.map(({ index }) => index)).toEqual([0, 1]);
      expect(frames.filter(({ type }) => type === 'message_stop')).toHaveLength(1);
    }
    expect(text).toContain('"f"');
    expect(text).toContain('No.');
  });

  test('it is asked once more, and not again', async () => {
    const gateway = opus([
      { json: message([says], 'end_turn') },
      { json: message([says], 'end_turn') },
    ]);
    const { status } = await gateway.ask('anthropic-messages', {
      ...ASKED['anthropic-messages'],
      model: MODEL,
    });
    expect([status, gateway.sent.length]).toEqual([200, 2]);
  });

  test('an answer that broke off at its cap is not asked for again', async () => {
    const gateway = opus([{ json: message([says], 'max_tokens') }]);
    await gateway.ask('openai-chat', { ...ASKED['openai-chat'], model: MODEL });
    expect(gateway.sent).toHaveLength(1);
  });

  test('a refusal of a forced tool is learnt, and mended in the same way', async () => {
    const gateway = scriptedGateway(
      'anthropic-messages',
      [
        {
          status: 400,
          json: {
            type: 'error',
            error: {
              type: 'invalid_request_error',
              message: 'tool_choice: type "tool" and "any" are not supported for this model.',
            },
          },
        },
        { json: message([says], 'end_turn') },
        { json: message([calls], 'tool_use') },
      ],
      features(),
    );
    const asked = { ...ASKED['anthropic-messages'], model: 'claude-relayed' };
    const { text } = await gateway.ask('anthropic-messages', asked);
    expect(gateway.sent).toHaveLength(3);
    expect(text).toContain('toolu_1');
  });
});

describe('thinking that belongs to another prefix', () => {
  const BOUND =
    'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.';
  const asked = {
    model: MODEL,
    max_tokens: 100,
    messages: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: '', signature: 'c2ln' },
          { type: 'text', text: 'Hello' },
        ],
      },
      { role: 'user', content: 'Go on' },
    ],
  };
  const binding = (body: unknown) => {
    const { thinking } = body as JsonObject;
    return isObject(thinking) ? thinking.block_binding : undefined;
  };
  const DROP = { prefix_mismatch_behavior: 'drop_block' };
  const fine = { json: message([says], 'end_turn') };
  const refusal: Scripted = {
    status: 400,
    json: { type: 'error', error: { type: 'invalid_request_error', message: BOUND } },
  };

  test('a request that goes as it came asks for nothing', async () => {
    const gateway = opus([fine]);
    await gateway.ask('anthropic-messages', asked);
    expect(gateway.sent[0]).toEqual(asked);
  });

  test('a refusal is mended once, and later requests of that model do not fail', async () => {
    const gateway = opus([refusal, fine, fine]);
    await gateway.ask('anthropic-messages', asked);
    await gateway.ask('anthropic-messages', asked);
    expect(gateway.sent).toHaveLength(3);
    expect(JSON.stringify(gateway.sent[1])).not.toContain('c2ln');
    expect(binding(gateway.sent[2])).toEqual(DROP);
    expect(JSON.stringify(gateway.sent[2])).toContain('c2ln');
  });

  test('what the gateway changes asks for it before anything fails', async () => {
    const gateway = opus([fine]);
    const tools = ASKED['anthropic-messages'].tools!;
    await gateway.ask('anthropic-messages', { ...asked, tools, tool_choice: { type: 'any' } });
    expect(binding(gateway.sent[0])).toEqual(DROP);
  });

  test("the client's own word counts", async () => {
    const gateway = opus([fine]);
    const own = { prefix_mismatch_behavior: 'error' };
    const tools = ASKED['anthropic-messages'].tools!;
    await gateway.ask('anthropic-messages', {
      ...asked,
      tools,
      tool_choice: { type: 'any' },
      thinking: { type: 'enabled', budget_tokens: 2000, block_binding: own },
    });
    expect(binding(gateway.sent[0])).toEqual(own);
    expect((gateway.sent[0] as JsonObject).thinking).toMatchObject({ type: 'adaptive' });
  });
});
