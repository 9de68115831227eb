/** The stream events that every answer is decoded into, and the whole reply they add up to. */

import type { Json, JsonObject } from '../lib/json/json.ts';
import type { GatewayError } from './errors.ts';
import type { ProtocolName } from './protocol-names.ts';
import type { Block, Citation, ExecutedBy, Sealed, ToolKind, Wire } from './types.ts';
import type { Usage } from './usage.ts';

/**
 * Every decoder keeps this order, and every encoder and interceptor relies on it:
 *
 *     start  (block-start delta* block-stop)*  finish  end
 *
 * One block is open at a time, and `index` counts from 0 without gaps. `usage` may come anywhere after
 * `start`; each one is complete in itself, and the last one counts. A `tool-event` comes after `start` and
 * between two blocks; decoders make none. `error` ends the stream in place of `finish end`. A stream
 * without `end` or `error` was cut.
 */
export type StreamEvent =
  | StartEvent
  | BlockStartEvent
  | DeltaEvent
  | SealedEvent
  | CitationEvent
  | LogprobsEvent
  | BlockStopEvent
  | UsageEvent
  | FinishEvent
  | EndEvent
  | ErrorEvent
  | OpaqueEvent
  | ToolEvent;

/** The mark of an event whose frame clients of the vendor's protocol cannot use. */
interface Marked {
  /**
   * Such clients get the frame written anew. `form`: they throw at it, or lose what it says. `repeated id`: they append it
   * to the id that they have. `finish_reason`: it is wrong about the calls, and they end their work or ask for ever.
   */
  readonly odd?: 'form' | 'repeated id' | 'finish_reason';
}

export interface StartEvent extends Marked {
  readonly type: 'start';
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created?: number;
  readonly usage?: Usage;
  /** Other fields of the vendor (system_fingerprint, service_tier, …), by their wire names. */
  readonly rest?: JsonObject;
}

/** What is known of a block when it opens. `whole` blocks are complete and get no deltas. */
export type BlockHead =
  | { readonly type: 'text'; readonly paragraph?: true }
  | { readonly type: 'refusal' }
  | { readonly type: 'reasoning'; readonly summary?: boolean }
  | {
      readonly type: 'tool-call';
      readonly id: string;
      readonly name: string;
      readonly namespace?: string;
      readonly kind: ToolKind;
      readonly by: ExecutedBy;
      /** See the block's member of this name. */
      readonly odd?: true;
      readonly sealed?: Sealed;
      /** The block's start on the wire, for fields that only its own protocol knows (Messages `caller`). */
      readonly residue?: Wire;
    }
  /** Complete on arrival: hosted tools' results, redacted reasoning, media, opaque content. */
  | { readonly type: 'whole'; readonly block: Block };

export interface BlockStartEvent extends Marked {
  readonly type: 'block-start';
  readonly index: number;
  readonly head: BlockHead;
}

/** More of the open block: text, refusal or reasoning text, or raw input of a tool call. */
export interface DeltaEvent extends Marked {
  readonly type: 'delta';
  readonly index: number;
  readonly text: string;
  /** A new part of a reasoning summary begins with this delta (Responses `summary_index`). */
  readonly newPart?: boolean;
}

/** The signature or encrypted payload of the open reasoning block; replaces an earlier one. */
export interface SealedEvent extends Marked {
  readonly type: 'sealed';
  readonly index: number;
  readonly sealed: Sealed;
}

/**
 * A source for the open text block. With offsets it refers to text already sent, without them to the
 * whole block.
 */
export interface CitationEvent extends Marked {
  readonly type: 'citation';
  readonly index: number;
  readonly citation: Citation;
}

/** Log-probabilities of the open text block's last delta: OpenAI's token objects. */
export interface LogprobsEvent extends Marked {
  readonly type: 'logprobs';
  readonly index: number;
  readonly content: readonly Json[];
}

export interface BlockStopEvent extends Marked {
  readonly type: 'block-stop';
  readonly index: number;
}

export interface UsageEvent extends Marked {
  readonly type: 'usage';
  readonly usage: Usage;
}

/**
 * `stop`: a natural end. `pause`: the client must send the same turn again (Messages pause_turn). Protocols without a
 * word for that call such an answer cut off at a limit: it is not complete.
 */
export type FinishReason =
  | 'stop'
  | 'stop-sequence'
  | 'length'
  | 'context-overflow'
  | 'tool-calls'
  | 'refusal'
  | 'content-filter'
  | 'pause';

/** What a protocol says about the end of an answer beyond its reason, e.g. Messages `stop_details`. */
export interface FinishDetails extends Wire {
  /** Why the answer ended, in words. Clients of other protocols get no more than this. */
  readonly explanation?: string;
}

export interface FinishEvent extends Marked {
  readonly type: 'finish';
  readonly reason: FinishReason;
  readonly stopSequence?: string;
  readonly details?: FinishDetails;
}

/** The protocol's terminal event was seen: the stream is complete. */
export interface EndEvent extends Marked {
  readonly type: 'end';
}

/** The vendor reported a failure inside the stream. */
export interface ErrorEvent extends Marked {
  readonly type: 'error';
  readonly error: GatewayError;
  /** Clients of the vendor's own protocol take its frames for a complete answer (Chat: a finish reason of its own). */
  readonly unsaid?: true;
}

/** An event of one protocol without a common meaning; only an encoder of that protocol writes it. */
export interface OpaqueEvent extends Marked {
  readonly type: 'opaque';
  readonly name: string;
  readonly wire: Wire;
  readonly textSeal?: TextSeal;
}

/** A frame that says nothing, and that clients of its protocol throw at: it is left out. */
export const emptyFrame = (protocol: ProtocolName): OpaqueEvent => ({
  type: 'opaque',
  name: '',
  wire: { protocol, value: null },
  odd: 'form',
});

export const isEmptyFrame = (event: StreamEvent | undefined): boolean =>
  event?.type === 'opaque' && event.odd !== undefined;

/** The seal of a piece of the answer's text, which ends here. Only Gemini seals text. */
export interface TextSeal {
  readonly sealed: Sealed;
  /** The sealed text; '' for a seal that came on its own behind the text or the call before it. */
  readonly text: string;
}

/** A seal of the text of a whole reply, at its place. */
export interface ReplySeal {
  /** Blocks before it. */
  readonly block: number;
  /** Characters of that block before it: it is a text, or 0. */
  readonly at: number;
  readonly event: OpaqueEvent;
}

/** A tool that the gateway runs, reported to an app that asked for such events. It is not part of the answer. */
export interface ToolEvent extends Marked {
  readonly type: 'tool-event';
  readonly event: 'tool_call' | 'tool_result';
  /** The id of the call, the same in both events. */
  readonly id: string;
  readonly name: string;
  /** `tool_call`: the arguments; a string if they are not JSON. */
  readonly arguments?: Json;
  /** `tool_result`: the result as data, or why the tool failed. */
  readonly result?: Json;
  readonly failed?: boolean;
  readonly durationMs?: number;
}

/** A whole answer: decoded from a reply that was not streamed, or collected from a stream. */
export interface Reply {
  readonly id: string;
  readonly model: string;
  readonly created?: number;
  readonly blocks: readonly Block[];
  readonly finish: FinishReason;
  /** As {@link Marked.odd}: of the whole answer, and of its end. */
  readonly odd?: 'form' | undefined;
  readonly oddFinish?: 'finish_reason' | undefined;
  readonly stopSequence?: string;
  readonly details?: FinishDetails;
  readonly usage?: Usage;
  /** OpenAI's token objects of the answer's text. */
  readonly logprobs?: readonly Json[];
  readonly rest?: JsonObject;
  /** Tools that the gateway ran for this answer, if the client asked for tool events. */
  readonly toolEvents?: readonly ToolEvent[];
  readonly textSeals?: readonly ReplySeal[];
  /** Further answers to the same request, as a stream has them. */
  readonly further?: readonly OpaqueEvent[];
  readonly wire?: Wire;
}

/** Does this event carry something that a user would miss? Before the first such event, a failed try can be repeated. */
export function isSemantic(event: StreamEvent): boolean {
  if (event.type === 'delta') return event.text !== '';
  if (isSpoken(event)) return true;
  return (
    event.type === 'block-start' && (event.head.type === 'tool-call' || event.head.type === 'whole')
  );
}

/** Does this event carry part of an answer? Reasoning alone is no answer. */
export function isAnswer(event: StreamEvent, open: BlockHead['type'] | undefined): boolean {
  if (event.type === 'delta') return event.text !== '' && open !== 'reasoning';
  if (isSpoken(event)) return true;
  if (event.type !== 'block-start') return false;
  const { head } = event;
  return head.type === 'tool-call' || (head.type === 'whole' && head.block.type !== 'reasoning');
}

/** Audio of Chat, whose text stands beside it and in no block. */
const isSpoken = (event: StreamEvent): boolean => event.type === 'opaque' && event.name === 'audio';

/** The object inside a frame: `{event, id, name, arguments | result, duration_ms}`. */
export function toolEventWire(event: ToolEvent): JsonObject {
  const { event: kind, id, name } = event;
  if (kind === 'tool_call') return { event: kind, id, name, arguments: event.arguments ?? {} };
  return {
    event: kind,
    id,
    name,
    result: event.result ?? null,
    ...(event.failed === true ? { failed: true } : {}),
    duration_ms: event.durationMs ?? 0,
  };
}

/** The members that report all tool events in a whole reply; none if there were no events. */
export function toolEventMembers({ toolEvents }: Reply): JsonObject {
  return toolEvents === undefined || toolEvents.length === 0
    ? {}
    : { hopgate: { tool_events: toolEvents.map(toolEventWire) } };
}
