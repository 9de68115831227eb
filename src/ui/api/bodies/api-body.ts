/** Types of the API under `/ui/api` for a single body; see `../api.ts`. */

import type { FinishReason, StreamEvent } from '../../../conversation/events.ts';
import type { ExecutedBy, ProtocolName, Role, ToolCallBlock } from '../../../conversation/types.ts';
import type { Usage } from '../../../conversation/usage.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import type { SampleError } from '../../../samples/sample.ts';

/** A body decoded by its codec. */
export interface ConversationView {
  readonly kind: 'request' | 'reply';
  readonly protocol: ProtocolName;
  readonly model: string;
  /** Instructions that stand apart from the turns. */
  readonly system: readonly BlockView[];
  /** A reply is one turn of the assistant. */
  readonly turns: readonly TurnView[];
  readonly tools: readonly ToolView[];
  /** Parameters besides model, prompt and tools, named as in the conversation model. */
  readonly settings: JsonObject;
  /** Of a reply. */
  readonly finish: FinishReason | null;
  readonly usage: Usage | null;
  /** False for a stream that was cut. */
  readonly complete: boolean;
  /** The body is an error answer, or cannot be decoded completely. */
  readonly problem: SampleError | null;
}

export interface TurnView {
  readonly role: Role;
  readonly blocks: readonly BlockView[];
  /** Its JSON pointer in the body, as in changes of a diff. */
  readonly at?: string;
}

/** A text; `chars` is its full length where it was cut. */
export interface TextView {
  readonly text: string;
  readonly chars?: number;
}

export type BlockView = { readonly at?: string } & (
  | ({
      readonly type: 'text';
      readonly citations?: readonly { readonly url?: string; readonly title?: string }[];
    } & TextView)
  | ({ readonly type: 'refusal' } & TextView)
  | ({
      readonly type: 'reasoning';
      readonly summary?: boolean;
      /** A signature or encrypted payload beside the text or instead of it. */
      readonly sealed?: { readonly kind: string; readonly bytes: number };
    } & TextView)
  /** `text` is the input as the model wrote it: usually JSON, possibly broken. */
  | (Pick<ToolCallBlock, 'type' | 'id' | 'name' | 'kind' | 'by'> & TextView)
  | {
      readonly type: 'tool-result';
      readonly call_id: string;
      readonly is_error: boolean;
      readonly by: ExecutedBy;
      readonly content: readonly BlockView[];
    }
  | {
      readonly type: 'media';
      readonly media: 'image' | 'document' | 'audio';
      readonly mime?: string;
      /** Size of the decoded content, where the body holds it. */
      readonly bytes?: number;
      readonly url?: string;
      readonly filename?: string;
    }
  | ({
      /** Content that the conversation model does not know; `text` is its readable text, else its JSON. */
      readonly type: 'opaque';
      readonly name: string;
    } & TextView)
);

export interface ToolView {
  readonly type: 'function' | 'custom' | 'hosted';
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of a function, format of a custom tool, options of a hosted one. */
  readonly schema?: Json;
}

export interface EventsView {
  readonly protocol: ProtocolName;
  /** False: the body is no event stream, and there are no events. */
  readonly stream: boolean;
  readonly total: number;
  readonly events: readonly EventView[];
}

/** One frame of a stream. */
export interface EventView {
  /** Counts from 0. */
  readonly n: number;
  /** `event:` of the frame, '' when it has none. */
  readonly name: string;
  /** `data:` of the frame. */
  readonly raw: TextView;
  /** When it came (or went, for a client's response), where that was recorded. */
  readonly at?: number;
  /** What it means; several for some frames, none for those without a meaning. */
  readonly says: readonly EventPart[];
}

/** What a frame said, in the words of the conversation model. */
export interface EventPart {
  /** `broken`: the frame cannot be read as its protocol wants it. */
  readonly type: Exclude<StreamEvent['type'], 'tool-event'> | 'broken';
  /** Index of the block it belongs to, counted from 0. */
  readonly block?: number;
  /** Kind of that block: text, reasoning, refusal, tool-call, tool-result, … */
  readonly of?: string;
  /** Text that was added, name of a tool, reason of an end, message of an error; cut at 2000 characters. */
  readonly text?: string;
  readonly usage?: Usage;
}
