/** A scripted vendor that speaks the four protocols, ends its answers as a test asks, and keeps its own bill. */

export type Spoken = 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'google-gemini';

/** What the vendor counts for one answer: the prompt with its cached part, and the output with its reasoning. */
export interface Counted {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
}

export type Ending =
  | 'done'
  /** A whole answer, or a whole stream, without a word about tokens. */
  | 'no-usage'
  | 'zero-usage'
  | 'refused'
  /** Some text, and then the connection breaks off. */
  | 'cut'
  /** Some text, and then silence. */
  | 'stalls'
  /** The whole text, and what ends the answer once the test lets it go. */
  | 'held'
  /** Some text, and then more without end once the test lets it go. */
  | 'endless'
  /** Some text, and then the vendor's own error event. */
  | 'error-event'
  | 'never-answers';

export interface Script {
  readonly ending: Ending;
  readonly counted?: Counted;
  /** Pieces of text, one event each. */
  readonly words?: number;
  /** The model that its answers name; left out: the one that was asked. */
  readonly model?: string;
}

/** USD per million tokens. */
export const PRICE = { input: 3, output: 15, cached: 0.3 } as const;
export const WORD = 'several words of text ';
export const TOKENS_PER_WORD = 5;

/** What the vendor bills for these tokens, in nano-USD: by hand, not by the code that is tested. */
export function billFor({ input, cached, output, reasoning }: Counted): number {
  const thousandths =
    BigInt(input - cached) * 3_000_000n +
    BigInt(cached) * 300_000n +
    BigInt(output + reasoning) * 15_000_000n;
  return Number((thousandths + 999n) / 1000n);
}

export interface Vendor {
  readonly url: string;
  /** What comes next; the last one is repeated. */
  script(...next: Script[]): void;
  /** Answers that are held go on. */
  letGo(): void;
  /** Streams that the gateway has broken off so far. */
  readonly cancelled: number;
  /** Requests so far. */
  readonly requests: number;
  stop(): void;
}

export function startVendor(): Vendor {
  let scripts: Script[] = [];
  let requests = 0;
  let gone = Promise.withResolvers<void>();
  const streams = { cancelled: 0, held: () => gone.promise };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      requests++;
      const { pathname } = new URL(request.url);
      const body = (await request.json()) as { readonly stream?: boolean; readonly model?: string };
      const script = scripts.length > 1 ? scripts.shift()! : scripts[0]!;
      const protocol = protocolOf(pathname);
      const stream = body.stream === true || pathname.endsWith(':streamGenerateContent');
      return answer(protocol, { model: body.model, ...script }, stream, streams);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    script(...next) {
      scripts = next;
    },
    letGo() {
      gone.resolve();
      gone = Promise.withResolvers();
    },
    get cancelled() {
      return streams.cancelled;
    },
    get requests() {
      return requests;
    },
    stop: () => void server.stop(true),
  };
}

function protocolOf(path: string): Spoken {
  if (path.includes('/models/')) return 'google-gemini';
  if (path.endsWith('/messages')) return 'anthropic-messages';
  return path.endsWith('/responses') ? 'openai-responses' : 'openai-chat';
}

function answer(
  protocol: Spoken,
  { ending, counted, words = 150, model = 'm' }: Script,
  stream: boolean,
  streams: { cancelled: number; held(): Promise<void> },
): Response | Promise<Response> {
  if (ending === 'never-answers') return new Promise(() => {});
  if (ending === 'refused') {
    const error = { type: 'api_error', message: 'The vendor is down.' };
    return Response.json({ type: 'error', error }, { status: 500 });
  }
  const usage =
    ending === 'zero-usage' ? { input: 0, cached: 0, output: 0, reasoning: 0 } : counted;
  const told = ending === 'no-usage' ? undefined : usage;
  const named = (json: string) =>
    json.replace(/"(model|modelVersion)":"m"/g, `"$1":${JSON.stringify(model)}`);
  if (!stream) {
    const body = named(JSON.stringify(WHOLE[protocol](WORD.repeat(words), told)));
    return new Response(body, { headers: { 'content-type': 'application/json' } });
  }
  const events = EVENTS[protocol](words, told);
  const complete = ending === 'done' || ending === 'no-usage' || ending === 'zero-usage';
  const sent = complete
    ? [...events.head, ...events.text, ...events.end]
    : [...events.head, ...events.text];
  if (ending === 'error-event') sent.push(events.error);
  const utf8 = new TextEncoder();
  const pending = sent.map(named);
  let held = streams.held;
  let rest = ending === 'held' ? events.end.join('') : events.text[0]!;
  return new Response(
    new ReadableStream({
      async pull(controller) {
        const next = pending.shift();
        if (next !== undefined) {
          controller.enqueue(utf8.encode(next));
          if (sent.length - pending.length < 3) await Bun.sleep(1);
          return;
        }
        if (ending === 'stalls') await new Promise(() => {});
        if ((ending === 'held' || ending === 'endless') && rest !== '') {
          await held();
          controller.enqueue(utf8.encode(rest.repeat(ending === 'held' ? 1 : 50)));
          if (ending === 'held') rest = '';
          else held = () => Bun.sleep(1);
          return;
        }
        if (ending === 'cut') {
          // What was said before has to arrive.
          await Bun.sleep(30);
          controller.error();
          return;
        }
        controller.close();
      },
      cancel() {
        streams.cancelled++;
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  );
}

interface Events {
  readonly head: readonly string[];
  readonly text: readonly string[];
  readonly end: readonly string[];
  readonly error: string;
}

const sse = (data: object | string, event?: string) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

const chatUsage = (usage: Counted | undefined) =>
  usage && {
    prompt_tokens: usage.input,
    completion_tokens: usage.output + usage.reasoning,
    total_tokens: usage.input + usage.output + usage.reasoning,
    prompt_tokens_details: { cached_tokens: usage.cached },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };

const responsesUsage = (usage: Counted | undefined) =>
  usage && {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output + usage.reasoning,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output + usage.reasoning,
  };

const geminiUsage = (usage: Counted | undefined) =>
  usage && {
    promptTokenCount: usage.input,
    cachedContentTokenCount: usage.cached,
    candidatesTokenCount: usage.output,
    thoughtsTokenCount: usage.reasoning,
    totalTokenCount: usage.input + usage.output + usage.reasoning,
  };

/** An answer of Gemini's, or a piece of one. */
const geminiAnswer = (
  text: string,
  finishReason: string | undefined,
  usage: object | undefined,
) => ({
  candidates: [
    {
      content: { parts: [{ text }], role: 'model' },
      ...(finishReason && { finishReason }),
      index: 0,
    },
  ],
  ...(usage && { usageMetadata: usage }),
  modelVersion: 'm',
  responseId: 'r1',
});

const WHOLE: Readonly<Record<Spoken, (text: string, usage: Counted | undefined) => object>> = {
  'openai-chat': (text, usage) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    ...(usage && { usage: chatUsage(usage) }),
  }),
  'openai-responses': (text, usage) => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text, annotations: [] }],
      },
    ],
    ...(usage && { usage: responsesUsage(usage) }),
  }),
  'anthropic-messages': (text, usage) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    ...(usage && { usage: messagesUsage(usage) }),
  }),
  'google-gemini': (text, usage) => geminiAnswer(text, 'STOP', geminiUsage(usage)),
};

const messagesUsage = (usage: Counted) => ({
  input_tokens: usage.input - usage.cached,
  cache_read_input_tokens: usage.cached,
  cache_creation_input_tokens: 0,
  output_tokens: usage.output + usage.reasoning,
});

const EVENTS: Readonly<Record<Spoken, (words: number, usage: Counted | undefined) => Events>> = {
  'openai-chat': (words, usage) => {
    const chunk = (delta: object, finish: string | null) =>
      sse({
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
    return {
      head: [chunk({ role: 'assistant', content: '' }, null)],
      text: Array.from({ length: words }, () => chunk({ content: WORD }, null)),
      end: [
        chunk({}, 'stop'),
        ...(usage
          ? [
              sse({
                id: 'c1',
                object: 'chat.completion.chunk',
                created: 1,
                model: 'm',
                choices: [],
                usage: chatUsage(usage),
              }),
            ]
          : []),
        sse('[DONE]'),
      ],
      error: sse({ error: { message: 'overloaded', type: 'server_error' } }),
    };
  },
  'openai-responses': (words, usage) => {
    let sequence = 0;
    const event = (type: string, more: object) =>
      sse({ type, sequence_number: sequence++, ...more }, type);
    const response = (status: string, more: object = {}) => ({
      response: {
        id: 'resp_1',
        object: 'response',
        created_at: 1,
        status,
        model: 'm',
        output: [],
        ...more,
      },
    });
    const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    const text = WORD.repeat(words);
    const part = { type: 'output_text', text, annotations: [] };
    const item = {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [part],
    };
    return {
      head: [
        event('response.created', response('in_progress')),
        event('response.output_item.added', {
          output_index: 0,
          item: { ...item, status: 'in_progress', content: [] },
        }),
        event('response.content_part.added', { ...at, part: { ...part, text: '' } }),
      ],
      text: Array.from({ length: words }, () =>
        event('response.output_text.delta', { ...at, delta: WORD }),
      ),
      end: [
        event('response.output_text.done', { ...at, text }),
        event('response.content_part.done', { ...at, part }),
        event('response.output_item.done', { output_index: 0, item }),
        event(
          'response.completed',
          response('completed', { output: [item], ...(usage && { usage: responsesUsage(usage) }) }),
        ),
      ],
      error: event('error', { code: 'server_error', message: 'overloaded', param: null }),
    };
  },
  'anthropic-messages': (words, usage) => {
    const event = (type: string, more: object = {}) => sse({ type, ...more }, type);
    // As the vendor does: the prompt when the answer begins, the output when it ends.
    const first = usage ? { ...messagesUsage(usage), output_tokens: 1 } : undefined;
    return {
      head: [
        event('message_start', {
          message: {
            id: 'msg_1',
            type: 'message',
            role: 'assistant',
            model: 'm',
            content: [],
            stop_reason: null,
            stop_sequence: null,
            ...(first && { usage: first }),
          },
        }),
        event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      ],
      text: Array.from({ length: words }, () =>
        event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: WORD } }),
      ),
      end: [
        event('content_block_stop', { index: 0 }),
        event('message_delta', {
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          ...(usage && { usage: { output_tokens: usage.output + usage.reasoning } }),
        }),
        event('message_stop'),
      ],
      error: event('error', { error: { type: 'overloaded_error', message: 'overloaded' } }),
    };
  },
  'google-gemini': (words, usage) => {
    // The vendor counts the prompt in each event. Here the first alone does: estimates go by the size of events, and
    // those of an answer without usage must have the same.
    const early = usage && {
      promptTokenCount: usage.input,
      cachedContentTokenCount: usage.cached,
      totalTokenCount: usage.input,
    };
    return {
      head: [sse(geminiAnswer('', undefined, early))],
      text: Array.from({ length: words }, () => sse(geminiAnswer(WORD, undefined, undefined))),
      end: [sse(geminiAnswer('', 'STOP', geminiUsage(usage)))],
      error: sse({ error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }),
    };
  },
};
