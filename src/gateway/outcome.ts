/** What a try can end in. */

import type { Digest } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { StreamEvent } from '../conversation/events.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Continuation } from '../features/feature.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Remedy } from '../upstream/target-error.ts';
import type { Output, StreamPipeline } from './stream/pipeline.ts';
import type { UpstreamBody } from './stream/upstream-body.ts';

interface FromTarget {
  readonly target: Target;
  readonly notes: Notes;
  /** The upstream's, as it sent them. */
  readonly headers: ReadonlyHeaders;
  /** The upstream speaks the client's protocol: its headers are the client's to see. */
  readonly same: boolean;
}

/** A stream of which something has been said: from here on there is no other try. */
export interface StreamOutcome extends FromTarget {
  readonly kind: 'stream';
  readonly lane: StreamPipeline;
  /** What the client gets first. */
  readonly first: readonly Output[];
  /** The rest; undefined when `first` is all there is. */
  readonly source: UpstreamBody | undefined;
}

export interface WholeOutcome extends FromTarget {
  readonly kind: 'whole';
  readonly status: number;
  readonly body: Output;
  readonly digest: Digest;
  /** The answer goes on with another hop; `events` are what the client is to get of all so far. */
  readonly continuation?: {
    readonly next: Continuation;
    readonly events: readonly StreamEvent[];
    /** The reply that these events amount to, when no hop follows (`next.last`). */
    readonly finish: (events: readonly StreamEvent[]) => WholeOutcome;
  };
}

export interface FailedOutcome {
  readonly kind: 'failed';
  readonly error: GatewayError;
  readonly remedy: Remedy;
  readonly target: Target | undefined;
  readonly notes: Notes | undefined;
  /** The vendor's own error answer, when it is in the client's protocol and can go out as it is. */
  readonly raw?: {
    readonly status: number;
    readonly headers: ReadonlyHeaders;
    readonly body: Uint8Array;
  };
}

export type Outcome = StreamOutcome | WholeOutcome | FailedOutcome;
