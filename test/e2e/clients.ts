/** The official clients behind one interface: send a message, read the reply, answer the calls, continue. */

import Anthropic from '@anthropic-ai/sdk';
import { type Content, GoogleGenAI, type Part } from '@google/genai';
import OpenAI from 'openai';
import type { FakeProtocol, Protocol } from '../support/fake-upstream/index.ts';

/** A reply in no protocol's terms. Tokens are counted as OpenAI counts them. */
export interface ClientReply {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: unknown }[];
  finish: 'stop' | 'length' | 'calls' | string;
  usage: { input: number; cached: number; output: number };
}

export interface ClientChat {
  /** Sends a message and waits for the whole reply. */
  say(text: string): Promise<ClientReply>;
  /** Answers every call of the last reply with the value that `result` returns for it. */
  answer(result: (call: ClientReply['calls'][number]) => string): Promise<ClientReply>;
}

export interface ClientChatOptions {
  model: string;
  stream: boolean;
  tools?: boolean;
  /** Asks for thinking, in the protocol's own way. */
  think?: boolean;
}

const TOOL = {
  name: 'get_weather',
  description: 'The weather in a city.',
  schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' } },
    required: ['city'],
  },
};

function chatCompletionsChat(base: string, options: ClientChatOptions): ClientChat {
  const client = new OpenAI({ apiKey: 'sk-client', baseURL: `${base}/v1`, maxRetries: 0 });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'system', content: 'Be brief.' }];
  let last: ClientReply['calls'] = [];
  const ask = async (): Promise<ClientReply> => {
    const body = {
      model: options.model,
      messages,
      ...(options.think ? { reasoning_effort: 'medium' as const } : {}),
      ...(options.tools
        ? {
            tools: [
              {
                type: 'function' as const,
                function: {
                  name: TOOL.name,
                  description: TOOL.description,
                  parameters: TOOL.schema,
                },
              },
            ],
          }
        : {}),
    };
    let reasoning = '';
    let completion: OpenAI.ChatCompletion;
    if (options.stream) {
      const stream = client.chat.completions.stream({
        ...body,
        stream_options: { include_usage: true },
      });
      stream.on('chunk', (chunk) => {
        const delta = chunk.choices[0]?.delta as { reasoning_content?: string } | undefined;
        reasoning += delta?.reasoning_content ?? '';
      });
      completion = await stream.finalChatCompletion();
    } else {
      completion = await client.chat.completions.create(body);
      const message = completion.choices[0]!.message as { reasoning_content?: string };
      reasoning = message.reasoning_content ?? '';
    }
    const { message, finish_reason } = completion.choices[0]!;
    messages.push({
      role: 'assistant',
      content: message.content,
      ...(message.tool_calls?.length ? { tool_calls: message.tool_calls } : {}),
    });
    last = (message.tool_calls ?? []).map((call) => {
      if (call.type !== 'function') throw new Error('a custom call where none was offered');
      const args: unknown = JSON.parse(call.function.arguments);
      return { id: call.id, name: call.function.name, arguments: args };
    });
    return {
      text: (message.content ?? '') + (message.refusal ?? ''),
      reasoning,
      calls: last,
      finish: finish_reason === 'tool_calls' ? 'calls' : finish_reason,
      usage: {
        input: completion.usage?.prompt_tokens ?? 0,
        cached: completion.usage?.prompt_tokens_details?.cached_tokens ?? 0,
        output: completion.usage?.completion_tokens ?? 0,
      },
    };
  };
  return {
    say: (content) => {
      messages.push({ role: 'user', content });
      return ask();
    },
    answer: (result) => {
      for (const call of last) {
        messages.push({ role: 'tool', tool_call_id: call.id, content: result(call) });
      }
      return ask();
    },
  };
}

/** Protocols without namespaces put the namespace before the name. */
const nameOf = (item: OpenAI.Responses.ResponseFunctionToolCall) =>
  item.namespace === undefined ? item.name : `${item.namespace}__${item.name}`;

function responsesChat(base: string, options: ClientChatOptions): ClientChat {
  const client = new OpenAI({ apiKey: 'sk-client', baseURL: `${base}/v1`, maxRetries: 0 });
  const input: OpenAI.Responses.ResponseInputItem[] = [];
  let last: ClientReply['calls'] = [];
  const ask = async (): Promise<ClientReply> => {
    const body = {
      model: options.model,
      instructions: 'Be brief.',
      input,
      store: false,
      include: ['reasoning.encrypted_content' as const],
      ...(options.think
        ? { reasoning: { effort: 'medium' as const, summary: 'auto' as const } }
        : {}),
      ...(options.tools
        ? {
            tools: [
              {
                type: 'function' as const,
                name: TOOL.name,
                description: TOOL.description,
                parameters: TOOL.schema,
                strict: false,
              },
            ],
          }
        : {}),
    };
    const response = options.stream
      ? await client.responses.stream(body).finalResponse()
      : await client.responses.create(body);
    // The SDK's accumulator adds fields to the items that the API does not know.
    const output = JSON.parse(
      JSON.stringify(response.output, (key, value: unknown) =>
        key === 'parsed' || key === 'parsed_arguments' ? undefined : value,
      ),
    ) as OpenAI.Responses.ResponseInputItem[];
    input.push(...output);
    last = response.output.flatMap((item) =>
      item.type === 'function_call'
        ? [
            {
              id: item.call_id,
              name: nameOf(item),
              arguments: JSON.parse(item.arguments) as unknown,
            },
          ]
        : [],
    );
    const stopped = response.status === 'incomplete' ? 'length' : 'stop';
    return {
      text: response.output
        .flatMap((item) => (item.type === 'message' ? item.content : []))
        .map((part) => (part.type === 'refusal' ? part.refusal : part.text))
        .join(''),
      reasoning: response.output
        .flatMap((item) =>
          item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])] : [],
        )
        .map((part) => part.text)
        .join(''),
      calls: last,
      finish: last.length > 0 ? 'calls' : stopped,
      usage: {
        input: response.usage?.input_tokens ?? 0,
        cached: response.usage?.input_tokens_details.cached_tokens ?? 0,
        output: response.usage?.output_tokens ?? 0,
      },
    };
  };
  return {
    say: (content) => {
      input.push({ role: 'user', content });
      return ask();
    },
    answer: (result) => {
      for (const call of last) {
        input.push({ type: 'function_call_output', call_id: call.id, output: result(call) });
      }
      return ask();
    },
  };
}

function messagesChat(base: string, options: ClientChatOptions): ClientChat {
  const client = new Anthropic({ apiKey: 'sk-client', baseURL: base, maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [];
  let last: ClientReply['calls'] = [];
  const ask = async (): Promise<ClientReply> => {
    const body = {
      model: options.model,
      max_tokens: 8000,
      system: 'Be brief.',
      messages,
      ...(options.think ? { thinking: { type: 'enabled' as const, budget_tokens: 2048 } } : {}),
      ...(options.tools
        ? {
            tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.schema }],
          }
        : {}),
    };
    const message = options.stream
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body);
    messages.push({ role: 'assistant', content: message.content });
    last = message.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
    );
    const { usage } = message;
    const cached = usage.cache_read_input_tokens ?? 0;
    const finish = { end_turn: 'stop', max_tokens: 'length', tool_use: 'calls' } as const;
    return {
      text: message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      reasoning: message.content
        .map((block) => (block.type === 'thinking' ? block.thinking : ''))
        .join(''),
      calls: last,
      finish: finish[message.stop_reason as keyof typeof finish] ?? String(message.stop_reason),
      usage: {
        input: usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0),
        cached,
        output: usage.output_tokens,
      },
    };
  };
  return {
    say: (content) => {
      messages.push({ role: 'user', content });
      return ask();
    },
    answer: (result) => {
      messages.push({
        role: 'user',
        content: last.map((call) => ({
          type: 'tool_result' as const,
          tool_use_id: call.id,
          content: result(call),
        })),
      });
      return ask();
    },
  };
}

function geminiChat(base: string, options: ClientChatOptions): ClientChat {
  const client = new GoogleGenAI({ apiKey: 'sk-client', httpOptions: { baseUrl: base } });
  const contents: Content[] = [];
  let last: ClientReply['calls'] = [];
  const ask = async (): Promise<ClientReply> => {
    const request = {
      model: options.model,
      contents,
      config: {
        systemInstruction: 'Be brief.',
        ...(options.think
          ? { thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } }
          : {}),
        ...(options.tools
          ? {
              tools: [
                {
                  functionDeclarations: [
                    {
                      name: TOOL.name,
                      description: TOOL.description,
                      parametersJsonSchema: TOOL.schema,
                    },
                  ],
                },
              ],
            }
          : {}),
      },
    };
    const chunks = options.stream
      ? await Array.fromAsync(await client.models.generateContentStream(request))
      : [await client.models.generateContent(request)];
    const parts: Part[] = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    // As the SDK's own chats do: every chunk is a content of the history, without empty texts.
    for (const { candidates } of chunks) {
      const kept = (candidates?.[0]?.content?.parts ?? []).filter(({ text }) => text !== '');
      if (kept.length > 0) contents.push({ role: 'model', parts: kept });
    }
    last = parts.flatMap(({ functionCall: one }) =>
      one === undefined ? [] : [{ id: one.id ?? '', name: one.name ?? '', arguments: one.args }],
    );
    const textOf = (thought: boolean) =>
      parts.map((part) => ((part.thought === true) === thought ? (part.text ?? '') : '')).join('');
    const end = chunks.at(-1);
    const reason = end?.candidates?.[0]?.finishReason;
    const usage = end?.usageMetadata;
    const finish = { STOP: 'stop', MAX_TOKENS: 'length' }[String(reason)] ?? String(reason);
    return {
      text: textOf(false),
      reasoning: textOf(true),
      calls: last,
      finish: last.length > 0 ? 'calls' : finish,
      usage: {
        input: usage?.promptTokenCount ?? 0,
        cached: usage?.cachedContentTokenCount ?? 0,
        output: (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
      },
    };
  };
  return {
    say: (text) => {
      contents.push({ role: 'user', parts: [{ text }] });
      return ask();
    },
    answer: (result) => {
      const parts = last.map((call) => ({
        functionResponse: {
          ...(call.id === '' ? {} : { id: call.id }),
          name: call.name,
          response: { output: result(call) },
        },
      }));
      contents.push({ role: 'user', parts });
      return ask();
    },
  };
}

/** Each protocol's official client as a conversation. */
export const CLIENT_CHATS: Readonly<
  Record<FakeProtocol, (base: string, options: ClientChatOptions) => ClientChat>
> = {
  'openai-chat': chatCompletionsChat,
  'openai-responses': responsesChat,
  'anthropic-messages': messagesChat,
  'google-gemini': geminiChat,
};

export const PROTOCOLS: readonly Protocol[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
];

/** The protocols of the pairs: sixteen of them. */
export const ALL_PROTOCOLS: readonly FakeProtocol[] = [...PROTOCOLS, 'google-gemini'];

/** The model that the test configuration routes to an upstream of this protocol. */
export const VIA: Readonly<Record<FakeProtocol, string>> = {
  'openai-chat': 'via-chat',
  'openai-responses': 'via-responses',
  'anthropic-messages': 'via-messages',
  'google-gemini': 'via-gemini',
};

/** The path and the smallest body of a request in a protocol, for tests below the SDKs. */
export function plainRequest(protocol: Protocol, model: string, stream: boolean) {
  const hi = [{ role: 'user', content: 'hi' }];
  const bodies = {
    'openai-chat': { path: '/v1/chat/completions', body: { model, stream, messages: hi } },
    'openai-responses': { path: '/v1/responses', body: { model, stream, input: hi } },
    'anthropic-messages': {
      path: '/v1/messages',
      body: { model, stream, max_tokens: 1000, messages: hi },
    },
  } as const;
  return bodies[protocol] as { path: string; body: Record<string, unknown> };
}

/** Sends a body unchanged, with the headers that a client of the protocol sends. */
export function post(
  base: string,
  path: string,
  body: unknown,
  more: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(base + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer sk-client',
      ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
      ...more.headers,
    },
    body:
      typeof body === 'string' || body instanceof Uint8Array
        ? (body as string)
        : JSON.stringify(body),
    signal: more.signal,
  });
}
