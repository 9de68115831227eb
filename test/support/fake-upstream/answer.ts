/** Scripted answers of the fake vendor, in no protocol's terms: the content, its delivery, or a failure. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';

/** The protocols that most suites go through. */
export type Protocol = 'openai-chat' | 'openai-responses' | 'anthropic-messages';
/** All that the fake vendor speaks. */
export type FakeProtocol = Protocol | 'google-gemini';

/** One part of the model's output, in order. A protocol that cannot express a part leaves it out. */
export type Part =
  | { kind: 'text'; text: string; logprobs?: boolean; citations?: { url: string; title: string }[] }
  | { kind: 'reasoning'; text: string; sealed?: boolean; raw?: boolean }
  | { kind: 'redacted'; data: string }
  | { kind: 'call'; name: string; arguments: string; id?: string; namespace?: string }
  | { kind: 'custom'; name: string; input: string; id?: string }
  | { kind: 'refusal'; text: string }
  | { kind: 'search'; query: string; results: { url: string; title: string }[] }
  /** A block or item of the request's protocol, unchanged. */
  | { kind: 'wire'; value: JsonObject };

/** Token counts as OpenAI counts them: `input` includes cached tokens, `output` includes reasoning. */
export interface Usage {
  input: number;
  cached: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}

/** What happens to the connection after the preceding frames. */
export type Cut =
  /** TCP reset. */
  | 'reset'
  /** The socket is closed with the chunked body unfinished. */
  | 'truncate'
  /** The body ends properly, without the protocol's terminal event. */
  | 'end'
  /** No more bytes come; the connection stays open. */
  | 'hang'
  /** The protocol's error event, then the end of the body. */
  | 'error';

/** How an answer's bytes are sent. Times in milliseconds. */
export interface Delivery {
  /** Characters in one delta; 12 by default. */
  piece?: number;
  /** Wait before the status line. */
  firstByteMs?: number;
  /** The status line waits until this resolves. */
  ready?: Promise<void>;
  /** Wait between frames. */
  paceMs?: number;
  /** Cuts the whole body at these offsets; each piece is written (and flushed) separately. */
  split?: (bytes: Uint8Array) => Uint8Array[];
  crlf?: boolean;
  /** A comment between frames; for Messages also `ping` events. */
  comments?: boolean;
  /** Compresses the body. */
  gzip?: boolean;
  /** Leaves out `event:` lines, as some Responses vendors do. */
  bareData?: boolean;
  /** Leaves out the last event (`[DONE]` and the finish chunk, `response.completed`, `message_stop`). */
  dropTerminal?: boolean;
  /** Before any byte of the answer. */
  before?: 'reset' | 'hang';
  /** After `at` frames (a fraction of all when below 1). Whole answers: after `at` of the bytes. */
  cut?: { at: number; by: Cut };
  headers?: Record<string, string>;
}

export interface Answer {
  parts: Part[];
  finish?: 'stop' | 'length' | 'filter' | 'pause';
  usage?: Partial<Usage>;
  delivery?: Delivery;
}

/** A refusal: the given body, or the vendor's own message for the status. */
export interface Failure {
  status: number;
  body?: Json | string;
  headers?: Record<string, string>;
  firstByteMs?: number;
}

/** Raw bytes, for recorded exchanges and nonsense. */
export interface Raw {
  raw: string | Uint8Array;
  status?: number;
  contentType?: string;
  delivery?: Delivery;
}

export type Step = Answer | Failure | Raw;

export const say = (text: string, more: Omit<Answer, 'parts'> = {}): Answer => ({
  parts: [{ kind: 'text', text }],
  ...more,
});

export const think = (
  reasoning: string,
  text: string,
  more: Omit<Answer, 'parts'> = {},
): Answer => ({
  parts: [
    { kind: 'reasoning', text: reasoning },
    { kind: 'text', text },
  ],
  ...more,
});

/** One or several tool calls; arguments are a value or the raw text. */
export const call = (
  ...calls: { name: string; arguments: Json | string; id?: string; namespace?: string }[]
): Answer => ({
  parts: calls.map((one) => ({
    ...one,
    kind: 'call' as const,
    arguments: typeof one.arguments === 'string' ? one.arguments : JSON.stringify(one.arguments),
  })),
});

export const refuse = (
  status: number,
  headers?: Record<string, string>,
  body?: Json | string,
): Failure => ({ status, headers, body });

/** Complete counts; missing ones default to the answer's length. */
export function usageOf(answer: Answer): Usage {
  const length = answer.parts.reduce((sum, part) => sum + JSON.stringify(part).length, 0);
  return {
    input: 120,
    cached: 0,
    cacheWrite: 0,
    output: Math.max(1, Math.ceil(length / 4)),
    reasoning: 0,
    ...answer.usage,
  };
}

/** `text` in pieces of `size` UTF-16 units that never split a surrogate pair. */
export function pieces(text: string, size = 12): string[] {
  const out: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + size);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end++;
    out.push(text.slice(at, end));
    at = end;
  }
  return out;
}
