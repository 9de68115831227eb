/** Asks the demo model, with bodies or through the official SDK. */

import OpenAI from 'openai';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { demoTransport } from '../../../src/upstream/demo/index.ts';

export const transport = demoTransport({ pace: 0, now: () => 1_750_000_000_000 });

export function send(body: unknown, signal = new AbortController().signal, via = transport) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return via({
    path: '/chat/completions',
    headers: new Headers(),
    body: new TextEncoder().encode(text),
    signal,
  });
}

type Message = JsonObject & {
  content: string | null;
  reasoning_content?: string;
  tool_calls?: Call[];
};
type Call = {
  id: string;
  type: string;
  function: { name: string; arguments: string };
  custom: { name: string; input: string };
};
export type Reply = {
  id: string;
  choices: [{ message: Message; finish_reason: string }];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } & JsonObject;
};

/** The whole answer to a body; a string is the question. */
export async function ask(question: string | JsonObject[], more: JsonObject = {}): Promise<Reply> {
  const messages = typeof question === 'string' ? [{ role: 'user', content: question }] : question;
  const response = await send({ model: 'demo', messages, ...more });
  if (response.status !== 200) throw new Error(await response.text());
  return (await response.json()) as Reply;
}

export const textOf = (reply: Reply) => reply.choices[0].message.content ?? '';
export const callsOf = (reply: Reply) =>
  (reply.choices[0].message.tool_calls ?? []).map((call) => ({
    name: call.function.name,
    input: JSON.parse(call.function.arguments) as Record<string, unknown>,
  }));

export const tool = (name: string, description: string, parameters?: JsonObject): JsonObject => ({
  type: 'function',
  function: { name, description, ...(parameters ? { parameters } : {}) },
});

export const object = (properties: JsonObject, required = Object.keys(properties)): JsonObject => ({
  type: 'object',
  properties,
  required,
});

/** The official SDK on top of the transport, as over a network. */
export const sdk = new OpenAI({
  apiKey: 'none',
  baseURL: 'http://demo.invalid/v1',
  maxRetries: 0,
  fetch: async (input, init) => {
    const request = new Request(input as string, init as RequestInit);
    return transport({
      path: new URL(request.url).pathname.replace('/v1', ''),
      headers: request.headers,
      body: new Uint8Array(await request.arrayBuffer()),
      signal: request.signal,
    });
  },
});
