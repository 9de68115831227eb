/** The official clients with their own tool and, on request, the hosted web search declared. */

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { Protocol } from '../support/fake-upstream/index.ts';

/** One reply as the official client accumulated it, and its bytes. */
export interface SearchReply {
  readonly text: string;
  /** Calls that the client must run. */
  readonly calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly input: unknown;
  }[];
  readonly finish: 'stop' | 'calls' | string;
  /** Counted as OpenAI counts. */
  readonly usage: { readonly input: number; readonly output: number };
  /** Types of blocks or items, in order; for a Chat message, its keys with a value. */
  readonly shape: readonly string[];
  /** Queries of the searches shown to the client. */
  readonly searches: readonly string[];
  /** The results shown to the client: addresses, or an error code. */
  readonly results: readonly string[];
  /** Cited pages, each with the marker or the text that carries the citation. */
  readonly cited: readonly { readonly url: string; readonly on: string }[];
  /** The body as received. */
  readonly wire: string;
}

export interface SearchChat {
  say(text: string): Promise<SearchReply>;
  /** Answers the client's own calls and continues. */
  answer(result: string): Promise<SearchReply>;
}

export interface SearchTalkOptions {
  readonly model: string;
  readonly stream: boolean;
  /** Declares the hosted search in the protocol's own way. */
  readonly search?: boolean;
  readonly signal?: AbortSignal;
}

/** The client's own tool. */
export const OWN = 'get_weather';
const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' } } };

/** A fetch that stores the response body. */
function tape() {
  let text: Promise<string> = Promise.resolve('');
  const taped = async (...given: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...given);
    if (response.body === null) return response;
    const [mine, theirs] = response.body.tee();
    text = new Response(mine).text().catch(() => '');
    const { status, headers } = response;
    return new Response(theirs, { status, headers });
  };
  return { fetch: taped as typeof fetch, text: () => text };
}

/** Removes what an SDK's accumulator adds, so that the item can be sent back. */
const plain = <T>(value: T): T =>
  JSON.parse(
    JSON.stringify(value, (key, inner: unknown) =>
      key === 'parsed' || key === 'parsed_arguments' ? undefined : inner,
    ),
  ) as T;

function chat(base: string, options: SearchTalkOptions): SearchChat {
  const stored = tape();
  const client = new OpenAI({
    apiKey: 'sk-client',
    baseURL: `${base}/v1`,
    maxRetries: 0,
    fetch: stored.fetch,
  });
  const messages: OpenAI.ChatCompletionMessageParam[] = [];
  let last: SearchReply['calls'] = [];
  const ask = async (): Promise<SearchReply> => {
    const body = {
      model: options.model,
      messages,
      tools: [{ type: 'function' as const, function: { name: OWN, parameters: SCHEMA } }],
      ...(options.search ? { web_search_options: {} } : {}),
    };
    const { signal } = options;
    const completion = options.stream
      ? await client.chat.completions
          .stream({ ...body, stream_options: { include_usage: true } }, { signal })
          .finalChatCompletion()
      : await client.chat.completions.create(body, { signal });
    const { message, finish_reason: finish } = plain(completion.choices[0]!);
    const text = message.content ?? '';
    messages.push({
      role: 'assistant',
      content: message.content,
      ...(message.tool_calls?.length ? { tool_calls: message.tool_calls } : {}),
    });
    last = (message.tool_calls ?? []).map((call) => {
      if (call.type !== 'function') throw new Error('a custom call where none was offered');
      const { name, arguments: input } = call.function;
      return { id: call.id, name, input: JSON.parse(input) as unknown };
    });
    return {
      text,
      calls: last,
      finish: finish === 'tool_calls' ? 'calls' : finish,
      usage: {
        input: completion.usage?.prompt_tokens ?? 0,
        output: completion.usage?.completion_tokens ?? 0,
      },
      shape: Object.entries(message)
        .filter(([, value]) => value !== null && (!Array.isArray(value) || value.length > 0))
        .map(([key]) => key)
        .sort(),
      searches: [],
      results: [],
      cited: (message.annotations ?? []).map(
        ({ url_citation: { url, start_index, end_index } }) => ({
          url,
          on: text.slice(start_index, end_index),
        }),
      ),
      wire: await stored.text(),
    };
  };
  return {
    say: (content) => {
      messages.push({ role: 'user', content });
      return ask();
    },
    answer: (content) => {
      for (const { id } of last) messages.push({ role: 'tool', tool_call_id: id, content });
      return ask();
    },
  };
}

function responses(base: string, options: SearchTalkOptions): SearchChat {
  const stored = tape();
  const client = new OpenAI({
    apiKey: 'sk-client',
    baseURL: `${base}/v1`,
    maxRetries: 0,
    fetch: stored.fetch,
  });
  const input: OpenAI.Responses.ResponseInputItem[] = [];
  let last: SearchReply['calls'] = [];
  const ask = async (): Promise<SearchReply> => {
    const body = {
      model: options.model,
      input,
      store: false,
      tools: [
        { type: 'function' as const, name: OWN, parameters: SCHEMA, strict: false },
        ...(options.search ? [{ type: 'web_search' as const }] : []),
      ],
    };
    const { signal } = options;
    const response = options.stream
      ? await client.responses.stream(body, { signal }).finalResponse()
      : await client.responses.create(body, { signal });
    const output = plain(response.output);
    input.push(...(output as OpenAI.Responses.ResponseInputItem[]));
    last = output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) as unknown }]
        : [],
    );
    const messages = output.flatMap((item) =>
      item.type === 'message'
        ? item.content.flatMap((part) => (part.type === 'output_text' ? [part] : []))
        : [],
    );
    const stopped = response.status === 'completed' ? 'stop' : String(response.status);
    return {
      text: messages.map((part) => part.text).join(''),
      calls: last,
      finish: last.length > 0 && stopped === 'stop' ? 'calls' : stopped,
      usage: {
        input: response.usage?.input_tokens ?? 0,
        output: response.usage?.output_tokens ?? 0,
      },
      shape: output.map((item) => item.type),
      searches: output.flatMap((item) =>
        item.type === 'web_search_call' && item.action.type === 'search'
          ? [String(item.action.query)]
          : [],
      ),
      results: output.flatMap((item) =>
        item.type === 'web_search_call' && item.status !== 'completed' ? [item.status] : [],
      ),
      cited: messages.flatMap((part) =>
        part.annotations.flatMap((note) =>
          note.type === 'url_citation'
            ? [{ url: note.url, on: part.text.slice(note.start_index, note.end_index) }]
            : [],
        ),
      ),
      wire: await stored.text(),
    };
  };
  return {
    say: (content) => {
      input.push({ role: 'user', content });
      return ask();
    },
    answer: (output) => {
      for (const { id } of last) input.push({ type: 'function_call_output', call_id: id, output });
      return ask();
    },
  };
}

function messages(base: string, options: SearchTalkOptions): SearchChat {
  const stored = tape();
  const client = new Anthropic({
    apiKey: 'sk-client',
    baseURL: base,
    maxRetries: 0,
    fetch: stored.fetch,
  });
  const history: Anthropic.MessageParam[] = [];
  let last: SearchReply['calls'] = [];
  const ask = async (): Promise<SearchReply> => {
    const body = {
      model: options.model,
      max_tokens: 4000,
      messages: history,
      tools: [
        { name: OWN, input_schema: SCHEMA },
        ...(options.search
          ? [{ type: 'web_search_20250305' as const, name: 'web_search' as const, max_uses: 8 }]
          : []),
      ],
    };
    const { signal } = options;
    const message = options.stream
      ? await client.messages.stream(body, { signal }).finalMessage()
      : await client.messages.create(body, { signal });
    const content = plain(message.content);
    history.push({ role: 'assistant', content: content as Anthropic.ContentBlockParam[] });
    last = content.flatMap((block) =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [],
    );
    const { usage } = message;
    const finish = { end_turn: 'stop', tool_use: 'calls' } as const;
    return {
      text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      calls: last,
      finish: finish[message.stop_reason as keyof typeof finish] ?? String(message.stop_reason),
      usage: {
        input:
          usage.input_tokens +
          (usage.cache_read_input_tokens ?? 0) +
          (usage.cache_creation_input_tokens ?? 0),
        output: usage.output_tokens,
      },
      shape: content.map((block) => block.type),
      searches: content.flatMap((block) =>
        block.type === 'server_tool_use' ? [(block.input as { query: string }).query] : [],
      ),
      results: content.flatMap((block) => {
        if (block.type !== 'web_search_tool_result') return [];
        return Array.isArray(block.content)
          ? block.content.map(({ url }) => url)
          : [block.content.error_code];
      }),
      cited: content.flatMap((block) =>
        block.type === 'text'
          ? (block.citations ?? []).flatMap((citation) =>
              citation.type === 'web_search_result_location'
                ? [{ url: citation.url, on: block.text }]
                : [],
            )
          : [],
      ),
      wire: await stored.text(),
    };
  };
  return {
    say: (content) => {
      history.push({ role: 'user', content });
      return ask();
    },
    answer: (result) => {
      history.push({
        role: 'user',
        content: last.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: result })),
      });
      return ask();
    },
  };
}

export const SEARCH_CHATS: Readonly<
  Record<Protocol, (base: string, options: SearchTalkOptions) => SearchChat>
> = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
};

const count = (text: string, mark: RegExp) => text.match(mark)?.length ?? 0;
const data = (wire: string) =>
  wire
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>);

/** Start events, terminal events, and gaps in the block or sequence numbers of one stream. */
export function framing(client: Protocol, wire: string) {
  const frames = data(wire);
  const numbered = (of: readonly unknown[]) => of.every((value, at) => value === at);
  if (client === 'openai-chat') {
    return {
      starts: new Set(frames.map(({ id }) => id)).size,
      terminals: count(wire, /"finish_reason":"/g) * count(wire, /^data: \[DONE\]$/gm),
      gapless: true,
    };
  }
  if (client === 'openai-responses') {
    return {
      starts: count(wire, /^event: response\.created$/gm),
      terminals: count(wire, /^event: response\.(?:completed|incomplete|failed)$/gm),
      gapless: numbered(frames.map((frame) => frame.sequence_number)),
    };
  }
  const blocks = frames.filter(({ type }) => type === 'content_block_start');
  return {
    starts: count(wire, /^event: message_start$/gm),
    terminals: count(wire, /^event: message_stop$/gm),
    gapless: numbered(blocks.map(({ index }) => index)),
  };
}
