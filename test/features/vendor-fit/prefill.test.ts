/** An answer that the client begins and the model continues: vendors of Chat want a mark on it, and Mistral repeats it. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { prefillEcho } from '../../../src/features/vendor-fit/prefill-echo.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { PROTOCOLS, targetOf, vendorRequest } from './vendor.ts';

/** A client's turns: the words of the user, and those of the assistant. */
const CLIENTS = {
  Messages: (...[user, assistant]: readonly string[]) => ({
    model: 'm',
    max_tokens: 100,
    messages: [
      { role: 'user', content: user },
      { role: 'assistant', content: [{ type: 'text', text: assistant }] },
    ],
  }),
  Gemini: (...[user, assistant]: readonly string[]) => ({
    model: 'm',
    contents: [
      { role: 'user', parts: [{ text: user }] },
      { role: 'model', parts: [{ text: assistant }] },
    ],
  }),
  Responses: (...[user, assistant]: readonly string[]) => ({
    model: 'm',
    input: [
      { role: 'user', content: user },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: assistant }] },
    ],
  }),
} as const;
const PROTOCOL: Readonly<Record<keyof typeof CLIENTS, ProtocolName>> = {
  Messages: 'anthropic-messages',
  Gemini: 'google-gemini',
  Responses: 'openai-responses',
};
const names = Object.keys(CLIENTS) as readonly (keyof typeof CLIENTS)[];

/** The vendors whose documents have a mark; undefined: none. */
const VENDORS = [
  ['mistral', 'mistral-large-latest', 'prefix'],
  ['kimi', 'kimi-k2.5', 'partial'],
  ['kimi', 'moonshot-v1-8k', 'partial'],
  ['qwen', 'qwen3-max', 'partial'],
  ['qwen', 'qwen3-coder-plus', 'partial'],
  // Its thinking mode has none.
  ['qwen', 'qwen3-235b-a22b-thinking-2507', undefined],
  ['openai', 'gpt-4.1', undefined],
  // Its beta API alone has one.
  ['deepseek', 'deepseek-chat', undefined],
  ['deepseek-beta', 'deepseek-chat', 'prefix'],
  ['deepseek-beta', 'deepseek-reasoner', 'prefix'],
] as const;

const lastOf = ({ body }: { body: JsonObject }) => (body.messages as readonly JsonObject[]).at(-1)!;

for (const [profile, model, mark] of VENDORS) {
  for (const name of names) {
    test(`${profile}/${model} gets a prefill of ${name} ${mark === undefined ? 'as it is' : `with ${mark}`}`, () => {
      const request = CLIENTS[name]('Name three.', 'One is');
      const chat = targetOf(profile, model, 'openai-chat');
      expect(lastOf(vendorRequest(chat, request, PROTOCOL[name]))).toEqual({
        role: 'assistant',
        content: 'One is',
        ...(mark !== undefined && { [mark]: true }),
      });
    });
  }
}

describe('no mark', () => {
  const kimi = targetOf('kimi', 'moonshot-v1-8k');
  const messages = (...content: readonly JsonObject[]): JsonObject => ({
    model: 'm',
    max_tokens: 100,
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content },
    ],
  });
  const called = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} };
  const thought = { type: 'thinking', thinking: 'hm', signature: '' };
  const said = { type: 'text', text: 'So' };

  test.each([
    ['a call', messages(called)],
    ['a call behind text', messages(said, called)],
    ['thinking alone', messages(thought)],
    [
      'an answer before the last word of the user',
      {
        ...messages(said),
        messages: [...(messages(said).messages as []), { role: 'user', content: 'Go' }],
      },
    ],
  ] as const)('for %s', (_, request) => {
    const { body } = vendorRequest(kimi, request as JsonObject, 'anthropic-messages');
    expect(JSON.stringify(body)).not.toContain('"partial"');
  });

  test('for a Chat client, which sends its own', () => {
    const request = {
      model: 'm',
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'So' },
      ],
    };
    expect(lastOf(vendorRequest(kimi, request))).toEqual({ role: 'assistant', content: 'So' });
  });

  test('where Qwen is asked to reason', () => {
    const request = { ...messages(said), thinking: { type: 'enabled', budget_tokens: 2000 } };
    const { body } = vendorRequest(targetOf('qwen', 'qwen3-max'), request, 'anthropic-messages');
    expect(body.enable_thinking).toBe(true);
    expect(lastOf({ body })).toEqual({ role: 'assistant', content: 'So' });
  });
});

describe('what the answer repeats of a prefill', () => {
  const target = targetOf('mistral', 'mistral-large-latest');

  function seen(pieces: readonly string[], profile = target): string {
    const request = CLIENTS.Messages('Name three.', 'One is');
    const interceptor = prefillEcho.intercept!(
      PROTOCOLS['anthropic-messages'].decodeRequest(request),
      { target: profile, client: 'anthropic-messages', notes: new Notes(), hop: 1 },
    );
    const events: readonly StreamEvent[] = [
      { type: 'block-start', index: 0, head: { type: 'text' } },
      ...pieces.map((text) => ({ type: 'delta', index: 0, text }) as const),
      { type: 'block-stop', index: 0 },
    ];
    const out = [...events.flatMap((event) => interceptor?.event(event) ?? event)];
    expect(out.at(-1)).toEqual(events.at(-1)!);
    return out.map((event) => (event.type === 'delta' ? event.text : '')).join('');
  }

  test.each([
    [['One is', ' red'], ' red'],
    [['One is red'], ' red'],
    [['On', 'e ', 'is r', 'ed'], ' red'],
    [['One is'], ''],
    [['One is', 'One is'], 'One is'],
    [[' red'], ' red'],
    [['One', ' was'], 'One was'],
    [['One'], 'One'],
    [['O', 'n', 'e', ' ', 'w'], 'One w'],
  ] as const)('%j is %j', (pieces, text) => {
    expect(seen(pieces)).toBe(text);
  });

  test('stays at vendors that do not repeat it', () => {
    const kimi = targetOf('kimi', 'moonshot-v1-8k');
    const context = {
      target: kimi,
      client: 'anthropic-messages',
      notes: new Notes(),
      hop: 1,
    } as const;
    expect(prefillEcho.mayApply!(Buffer.from(''), context)).toBe(false);
  });
});

describe('through the gateway, at a vendor in the words of Mistral', () => {
  const answer = { id: 'a', object: 'chat.completion', created: 1, model: 'm' };
  const vendor = Bun.serve({
    port: 0,
    async fetch(request) {
      const { messages, stream } = (await request.json()) as {
        messages: readonly { role: string; content: string; prefix?: boolean }[];
        stream?: boolean;
      };
      const last = messages.at(-1)!;
      if (last.role === 'assistant' && last.prefix !== true) {
        const message =
          'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant';
        return Response.json({ object: 'error', message, code: '3230' }, { status: 400 });
      }
      const pieces = [last.content, ' red', ' and blue'];
      if (stream !== true) {
        const message = { role: 'assistant', content: pieces.join('') };
        return Response.json({
          ...answer,
          choices: [{ index: 0, message, finish_reason: 'stop' }],
        });
      }
      const frames = pieces.map((content, at) => {
        const end = at === pieces.length - 1 ? 'stop' : null;
        const choices = [{ index: 0, delta: { role: 'assistant', content }, finish_reason: end }];
        const chunk = { ...answer, object: 'chat.completion.chunk', choices };
        return `data: ${JSON.stringify(chunk)}\n\n`;
      });
      return new Response(`${frames.join('')}data: [DONE]\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      });
    },
  });
  let gateway: InProcess;
  beforeAll(async () => {
    const base_url = `http://127.0.0.1:${vendor.port}/v1`;
    gateway = await startInProcess({
      providers: {
        up: { protocol: 'openai-chat', profile: 'mistral', base_url, keys: ['k'], models: ['m'] },
      },
      samples: { mode: 'off' },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await vendor.stop(true);
  });

  const ask = async (stream: boolean): Promise<string> => {
    const answered = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ ...CLIENTS.Messages('Name three.', 'One is'), stream }),
    });
    expect(answered.status).toBe(200);
    return answered.text();
  };

  test('a whole answer goes on where the client stopped', async () => {
    const { content } = JSON.parse(await ask(false)) as { content: JsonObject[] };
    expect(content).toEqual([{ type: 'text', text: ' red and blue' }]);
  });

  test('a stream goes on where the client stopped', async () => {
    const pieces = [...(await ask(true)).matchAll(/"text_delta","text":"([^"]*)"/g)];
    expect(pieces.map(([, text]) => text).join('')).toBe(' red and blue');
  });
});

const CONTINUED = { add_generation_prompt: false, continue_final_message: true };

describe.each(['vllm', 'sglang'])('%s continues the last message', (profile) => {
  const target = targetOf(profile, 'qwen3-8b', 'openai-chat');

  test.each(names)('of %s', (name) => {
    const request = CLIENTS[name]('Name three.', 'One is');
    const sent = vendorRequest(target, request, PROTOCOL[name]);
    expect(sent.body).toMatchObject(CONTINUED);
    expect(lastOf(sent)).toEqual({ role: 'assistant', content: 'One is' });
  });

  test.each([
    ['that the user said', { messages: [{ role: 'user', content: 'Hi' }] }, 'anthropic-messages'],
    [
      'of a Chat client, which asks for that itself',
      { messages: [{ role: 'assistant', content: 'So' }] },
      'openai-chat',
    ],
    [
      'where the model is asked to reason',
      { ...CLIENTS.Messages('Hi', 'So'), thinking: { type: 'enabled', budget_tokens: 2000 } },
      'anthropic-messages',
    ],
  ] as const)('not one %s', (_, request, client) => {
    const asked = { model: 'm', max_tokens: 3000, ...request } as unknown as JsonObject;
    const { body } = vendorRequest(target, asked, client);
    expect(body).not.toHaveProperty('continue_final_message');
    expect(body).not.toHaveProperty('add_generation_prompt');
  });
});

describe('through the gateway, at a server in the words of vLLM', () => {
  const head = { id: 'a', object: 'chat.completion', created: 1, model: 'm' };
  interface Asked {
    readonly messages: readonly { readonly role: string; readonly content: string }[];
    readonly stream?: boolean;
    readonly add_generation_prompt?: boolean;
    readonly continue_final_message?: boolean;
  }
  /** vllm/entrypoints/openai/protocol.py, vllm/tokenizers/mistral.py, transformers' apply_chat_template. */
  function refusal({ messages, add_generation_prompt: begins = true, ...asked }: Asked) {
    const { role, content } = messages.at(-1)!;
    const isContinued = asked.continue_final_message === true;
    if (begins && isContinued)
      return 'Cannot set both `continue_final_message` and `add_generation_prompt` to True.';
    if (role === 'assistant' && begins)
      return 'Cannot set `add_generation_prompt` to True when the last message is from the assistant. Consider using `continue_final_message` instead.';
    if (isContinued && content.startsWith('<think>'))
      return 'continue_final_message is set but the final message does not appear in the chat after applying the chat template! This can happen if the chat template deletes portions of the final message.';
    return undefined;
  }
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const asked = (await request.json()) as Asked;
      const message = refusal(asked);
      if (message !== undefined) {
        const error = { message, type: 'BadRequestError', param: null, code: 400 };
        return Response.json({ error }, { status: 400 });
      }
      const content = asked.continue_final_message === true ? ' red and blue' : 'Red.';
      if (asked.stream !== true) {
        const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' };
        return Response.json({ ...head, choices: [choice] });
      }
      const choices = [{ index: 0, delta: { role: 'assistant', content }, finish_reason: 'stop' }];
      const chunk = { ...head, object: 'chat.completion.chunk', choices };
      return new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      });
    },
  });
  let gateway: InProcess;
  beforeAll(async () => {
    const base_url = `http://127.0.0.1:${server.port}/v1`;
    gateway = await startInProcess({
      providers: { up: { preset: 'vllm', base_url, models: ['m'] } },
      samples: { mode: 'off' },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await server.stop(true);
  });

  const ask = async (assistant: string, stream: boolean): Promise<string> => {
    const answered = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ ...CLIENTS.Messages('Name three.', assistant), stream }),
    });
    expect(answered.status).toBe(200);
    return answered.text();
  };

  test.each([false, true])(
    'an answer goes on where the client stopped; streamed: %p',
    async (stream) => {
      expect(await ask('One is', stream)).toContain('" red and blue"');
    },
  );

  test('a template that drops the message gets a turn of the user behind it', async () => {
    expect(await ask('<think>hm', false)).toContain('"Red."');
  });
});
