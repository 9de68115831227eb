/** Types of the API under `/ui/api` for a single body; see `../api.ts`. */

import type { FinishReason } from '../../../conversation/events.ts';
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
  readonly total: number;
  /** None where the body is no event stream. */
  readonly events: readonly EventView[];
}

/** One frame of a stream. */
export interface EventView {
  /** `event:` of the frame, else the first of its meanings, else `data`. */
  readonly name: string;
  /** `data:` of the frame, cut at 20000 characters. */
  readonly data: string;
  /** When it came (or went, for a client's response), where that was recorded. */
  readonly at?: number | undefined;
  /** Its meaning in the words of the conversation model, cut at 2000 characters; '' for nothing. */
  readonly says: string;
}
