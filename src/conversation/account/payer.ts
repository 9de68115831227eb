/** On whose account a try at an upstream goes, and what is reported of it. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import type { Target } from '../target.ts';
import type { Usage } from '../usage.ts';

/** An exchange's account, as the calls see it that are made for this exchange besides its own (images, searches, vectors). */
export interface Payer {
  /** A limit or a budget depends on what vendors report: they are asked for it whatever the client wants. */
  readonly needsUsage?: boolean;
  /**
   * Before a try goes out: its tokens and its money are reserved.
   * @throws GatewayError if a limit or a budget refuses the try
   */
  beginTry(start: TryStart): TryAccount | Promise<TryAccount>;
}

/** Tokens of the media of a request, and of those of each of its answers. */
export interface MediaTokens {
  readonly input: number;
  readonly output: number;
  /** Where they are paid for by time. */
  readonly seconds?: number;
}

/** What was counted of a try. */
export interface Spent {
  readonly usage: Usage;
  /** Undefined: no price is known. */
  readonly nanoUsd: number | undefined;
}

/** What has been counted of a try whose answer comes later, and for which request. */
export interface CountedBefore {
  readonly request: string;
  /** Milliseconds since 1970; left out: it is not known. A budget whose period has ended since gets nothing back. */
  readonly countedAt?: number | undefined;
  readonly session: string | undefined;
  /** Undefined: nothing. */
  readonly spent: Spent | undefined;
}

export interface TryStart {
  readonly target: Target;
  /** The model as it was asked for. */
  readonly model: string;
  /** A name of the vendor's key for logs that gives nothing away. */
  readonly upstreamKey: string | undefined;
  readonly hop: number;
  readonly attempt: number;
  readonly stream: boolean;
  /** Estimate of the prompt. May be computed when it is read. */
  readonly inputTokens: number;
  /** What the request allows; undefined: it does not say. 0 where an answer has no tokens (embeddings). */
  readonly maxOutputTokens: number | undefined;
  /** Of images and sound, whose length in bytes says nothing of tokens: what money is reserved for, beside the prompt. */
  readonly media?: { readonly likely: MediaTokens; readonly most: MediaTokens } | undefined;
  /** Sound in the prompt, and whether the answer is to be sound, which may have prices of their own; left out: none. */
  readonly parts?: { readonly inputAudio: number; readonly speaks: boolean } | undefined;
  /** Of a text that is spoken: speech may be paid by the character, and its answer tells none. */
  readonly characters?: number | undefined;
  /** Answers that the request asks for at once (`n`, `candidateCount`, `best_of`); left out: one. */
  readonly choices?: number;
  /** As the request that goes out names it (flex, priority, …); what the answer names counts before it. */
  readonly serviceTier: string | undefined;
  /** It is a batch of so many requests, at the price of batches. Left out: it is one request. */
  readonly batch?: number;
  /** It settles another try: only what differs from that is counted, and no limit or budget refuses it. */
  readonly settles?: CountedBefore;
}

/**
 * How a try ended. `hedge_lost`: it was cancelled, since another one beside it was faster. `stopped`: the gateway stops,
 * and its time to wait for answers is over; a row of spend calls it `cut`.
 */
export type TryEnd =
  | 'done'
  | 'client_gone'
  | 'stopped'
  | 'hedge_lost'
  | 'cut'
  | 'error'
  | 'timeout';

export interface TryResult {
  readonly ended: TryEnd;
  /** What the vendor said; undefined: nothing. */
  readonly usage: Usage | undefined;
  /**
   * The model that answered, as the vendor names it: a router, or a fallback of the vendor, may answer with another one
   * than was asked, and is paid for that. Left out, or '': as was asked.
   */
  readonly model?: string | undefined;
  /** `usage` counts the whole answer, and not only what was known when it began. */
  readonly final: boolean;
  /** Text, reasoning or a call has come. */
  readonly content: boolean;
  /** What was made (images, sound) is no tokens, and nothing says how much it was: only a price per request covers it. */
  readonly unmeasured?: boolean;
  /** The vendor took it for a job that answers later: what was reserved counts until then. */
  readonly pending?: boolean;
  /** Bytes of the answer's body, from its content on. */
  readonly bytes: number;
}

/** One try at an upstream. */
export interface TryAccount {
  /**
   * The head of the answer has come: with a status of 2xx the prompt is paid for unless usage says otherwise.
   * @param headers which may tell the cost
   */
  answered(status: number, headers?: ReadonlyHeaders): void;
  /**
   * The client has left: may the rest of the answer be read for what it reports? Then this try ends later than its
   * exchange. Left out: no.
   */
  outlives?(): boolean;
  /**
   * Of a batch: what one of its requests has used. These together are then what the try has used, each at the price of
   * its own length.
   * @param model as {@link TryResult.model}
   */
  count?(usage: Usage, model: string | undefined): void;
  /** Once; later calls do nothing. */
  end(result: TryResult): void;
}
