/** Answers of vendors that reason, and one client's session that moves between them. */

import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import {
  ANSWERS,
  reasoningMemory,
  type SessionLedger,
} from '../../../src/features/reasoning-memory/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { memoryRoom } from '../../support/entries.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

export interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly reasoning_content?: string | undefined;
  readonly reasoning_details?: unknown;
  readonly tool_calls?: readonly JsonObject[];
  readonly tool_call_id?: string;
}

/** Base64 of random-looking bytes, as genuine signatures are. */
export const seal = (n: number) =>
  Buffer.from(Array.from({ length: 60 }, (_, i) => (i * 97 + n * 31 + 130) % 256)).toString(
    'base64',
  );

export const call = (id: string, more: JsonObject = {}): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'read', arguments: '{"path":"a"}' },
  ...more,
});

const sse = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

/** A Chat stream with one delta per chunk. */
export function chatStream(deltas: readonly JsonObject[], finish: string): Scripted {
  const chunk = (delta: JsonObject, reason: string | null = null) =>
    sse({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
  return {
    sse: [
      ...deltas.map((delta, i) => chunk(i === 0 ? { role: 'assistant', ...delta } : delta)),
      chunk({}, finish),
      'data: [DONE]\n\n',
    ],
  };
}

/** A whole Chat answer. */
export const chatReply = (message: JsonObject): Scripted => ({
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, ...message },
        finish_reason: message.tool_calls === undefined ? 'stop' : 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
});

export const messagesReply = (content: readonly JsonObject[]): Scripted => ({
  json: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content,
    stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
});

/** The same as a Messages stream, with one delta per block. */
export function messagesStream(content: readonly JsonObject[]): Scripted {
  const { json } = messagesReply(content) as { json: JsonObject };
  const { usage, stop_reason } = json;
  const of = (block: JsonObject): readonly [JsonObject, readonly JsonObject[]] => {
    const { thinking, signature, text, input } = block;
    switch (block.type) {
      case 'thinking':
        return [
          { ...block, thinking: '', signature: '' },
          [
            { type: 'thinking_delta', thinking: thinking! },
            { type: 'signature_delta', signature: signature! },
          ],
        ];
      case 'text':
        return [{ ...block, text: '' }, [{ type: 'text_delta', text: text! }]];
      case 'tool_use': {
        const partial_json = JSON.stringify(input);
        return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json }]];
      }
      default:
        return [block, []];
    }
  };
  const events: JsonObject[] = [
    { type: 'message_start', message: { ...json, content: [], stop_reason: null } },
    ...content.flatMap((block, index) => {
      const [content_block, deltas] = of(block);
      return [
        { type: 'content_block_start', index, content_block },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ];
    }),
    { type: 'message_delta', delta: { stop_reason: stop_reason! }, usage: usage! },
    { type: 'message_stop' },
  ];
  return { sse: events.map((event) => `event: ${String(event.type)}\n${sse(event)}`) };
}

export interface Vendor {
  readonly name: string;
  readonly protocol: ProtocolName;
  readonly profile?: string;
  readonly model?: string;
}

export const DEEPSEEK: Vendor = {
  name: 'deepseek',
  protocol: 'openai-chat',
  profile: 'deepseek',
  model: 'deepseek-v4',
};
export const GEMINI: Vendor = { name: 'gemini', protocol: 'openai-chat', profile: 'gemini' };
export const CLAUDE: Vendor = {
  name: 'claude',
  protocol: 'anthropic-messages',
  profile: 'anthropic',
  model: 'claude-sonnet-4-5',
};
export const OPENAI: Vendor = { name: 'openai', protocol: 'openai-responses' };

/** A Chat client that returns only role, text and plain calls, unless it `keeps` reasoning. */
export class Session {
  readonly messages: ChatMessage[] = [{ role: 'user', content: 'read a, please' }];
  readonly ledger: SessionLedger;
  readonly #owner: string;
  readonly #more: JsonObject;
  readonly #keeps: boolean;

  constructor(
    ledger = memoryRoom(ANSWERS),
    {
      owner = '',
      more = {},
      keeps = false,
    }: { readonly owner?: string; readonly more?: JsonObject; readonly keeps?: boolean } = {},
  ) {
    this.ledger = ledger;
    this.#owner = owner;
    this.#more = more;
    this.#keeps = keeps;
  }

  /** Sends a request to a vendor with this scripted answer; returns the request that the vendor got. */
  async ask(vendor: Vendor, answer: Scripted): Promise<JsonObject> {
    const gateway = scriptedGateway(
      vendor.protocol,
      [answer],
      [
        leakedCalls(() => {}),
        reasoningMemory({ ledger: this.ledger, owner: this.#owner }),
        toolPairing,
        vendorFit(),
      ],
      '',
      vendor,
    );
    const stream = 'sse' in answer;
    const answered = await gateway.ask('openai-chat', {
      model: vendor.model ?? 'm',
      messages: this.messages,
      tools: [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }],
      ...(stream ? { stream: true } : {}),
      ...this.#more,
    });
    if (answered.status !== 200) throw new Error(answered.text);
    const { reasoning_content, reasoning_details, ...plain } = stream
      ? fromStream(answered.text)
      : fromReply(answered.text);
    this.messages.push(this.#keeps ? { ...plain, reasoning_content, reasoning_details } : plain);
    for (const { id } of this.messages.at(-1)?.tool_calls ?? []) {
      this.messages.push({ role: 'tool', tool_call_id: String(id), content: `found ${id}` });
    }
    return gateway.sent[0] as JsonObject;
  }

  say(content: string): this {
    this.messages.push({ role: 'user', content });
    return this;
  }
}

const plainCall = (one: JsonObject): JsonObject => ({
  id: one.id,
  type: 'function',
  function: one.function,
});

function fromReply(text: string): ChatMessage {
  const { message } = JSON.parse(text).choices[0] as { message: ChatMessage };
  return {
    role: 'assistant',
    content: message.content ?? null,
    reasoning_content: message.reasoning_content,
    reasoning_details: message.reasoning_details,
    ...(message.tool_calls ? { tool_calls: message.tool_calls.map(plainCall) } : {}),
  };
}

function fromStream(text: string): ChatMessage {
  let content = '';
  let thought = '';
  const details: unknown[] = [];
  const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] =
    [];
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const delta = JSON.parse(line.slice(6)).choices[0]?.delta ?? {};
    content += delta.content ?? '';
    thought += delta.reasoning_content ?? '';
    details.push(...(delta.reasoning_details ?? []));
    for (const part of delta.tool_calls ?? []) {
      calls[part.index] ??= {
        id: part.id,
        type: 'function',
        function: { name: '', arguments: '' },
      };
      const into = calls[part.index]!.function;
      into.name += part.function?.name ?? '';
      into.arguments += part.function?.arguments ?? '';
    }
  }
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    reasoning_content: thought === '' ? undefined : thought,
    reasoning_details: details.length === 0 ? undefined : details,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}
