/** Reports the tries of an exchange to its account: how each begins, and what came of it. */

import type { Codec, Digest } from '../../codecs/codec.ts';
import { type AllowedOutput, allowedOutput } from '../../conversation/account/allowed-output.ts';
import type { TryAccount, TryEnd, TryStart } from '../../conversation/account/payer.ts';
import { type GatewayError, isStopped } from '../../conversation/errors.ts';
import type { Target } from '../../conversation/target.ts';
import type { Usage } from '../../conversation/usage.ts';
import { estimatedTokens } from '../../conversation/usage.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';
import type { Attempt } from '../types.ts';
import { isHedgeLost } from './hedge.ts';

/** Estimates are made when they are read: most tries need none. */
export class StartOfTry implements TryStart {
  readonly target: Target;
  readonly model: string;
  readonly hop: number;
  readonly attempt: number;
  readonly stream: boolean;
  readonly #attempt: Attempt;
  #allowed: AllowedOutput | undefined;

  /** @param bytes of the body that is sent */
  constructor(
    attempt: Attempt,
    readonly upstreamKey: string | undefined,
    private readonly bytes: number,
  ) {
    this.target = attempt.routed.target;
    this.model = attempt.request.model;
    this.hop = attempt.hop.number;
    this.attempt = attempt.number;
    this.stream = attempt.request.stream;
    this.#attempt = attempt;
  }

  get inputTokens(): number {
    const { facts, request, hop } = this.#attempt;
    // Later hops send what was said before, too.
    const more = hop.number === 1 ? 0 : Math.max(0, this.bytes - request.bytes.length);
    return facts.tokens + estimatedTokens(more);
  }

  get parts(): TryStart['parts'] {
    const { facts, request } = this.#attempt;
    const { heard = 0 } = facts;
    const { modalities } = request.conversation.settings.rest ?? {};
    const speaks = Array.isArray(modalities) && modalities.includes('audio');
    return heard === 0 && !speaks ? undefined : { inputAudio: heard, speaks };
  }

  get maxOutputTokens(): number | undefined {
    return this.#allowedOutput().tokens;
  }

  get choices(): number {
    return this.#allowedOutput().choices;
  }

  #allowedOutput(): AllowedOutput {
    if (this.#allowed === undefined) {
      const { settings, origin } = this.#attempt.request.conversation;
      this.#allowed =
        this.#attempt.request.protocol.name === 'google-gemini' || !isObject(origin?.value)
          ? { tokens: settings.maxTokens, choices: settings.n ?? 1 }
          : allowedOutput(origin.value);
    }
    return this.#allowed;
  }

  get serviceTier(): string | undefined {
    const { request, protocol } = this.#attempt;
    const [from, to] = [request.protocol.name, protocol.name];
    // Elsewhere the tier is dropped, or means another thing.
    if (from !== to && !(from.startsWith('openai-') && to.startsWith('openai-'))) return undefined;
    const { serviceTier, rest } = this.#attempt.request.conversation.settings;
    // As the answer says it (https://platform.claude.com/docs/en/build-with-claude/fast-mode).
    return rest?.speed === 'fast' ? 'fast' : serviceTier;
  }
}

/** What is known of an answer, in the terms of a digest or of a pipeline. */
type Progress = Pick<
  Digest,
  'complete' | 'semantic' | 'finish' | 'counted' | 'pending' | 'model'
> & {
  readonly usage?: Usage | undefined;
  readonly reported?: Usage | undefined;
};

/** @param bytes of the answer, from its content on */
export function endTry(
  account: TryAccount,
  ended: TryEnd,
  { complete, semantic, finish, counted, pending, model, usage, reported }: Progress,
  bytes: number,
): void {
  const used = reported ?? usage;
  account.end({
    ended,
    usage: used,
    model,
    // Messages counts the prompt when an answer begins, and the output when it ends.
    final:
      used !== undefined &&
      (complete ||
        finish !== undefined ||
        (ended === 'error' && (counted === true || (!semantic && used.unknown === undefined)))),
    content: semantic,
    pending: pending !== undefined,
    bytes,
  });
}

/** No answer came, or one that could not be read. */
export function endFailedTry(account: TryAccount, ended: TryEnd, usage?: Usage): void {
  account.end({ ended, usage, final: usage !== undefined, content: false, bytes: 0 });
}

/** A refusal is paid for only where the vendor says so in its text. */
export function endRefusedTry(account: TryAccount, protocol: Codec, text: string): void {
  const body = text.includes('"usage"') ? tryParse(text) : undefined;
  endFailedTry(account, 'error', isObject(body) ? protocol.digestReply(body).usage : undefined);
}

/** A body that came whole is an answer, an error that came with a 200, or a stream that broke off. */
export function wholeEnd({ error, complete, pending }: Digest): TryEnd {
  if (error !== undefined) return 'error';
  return complete || pending !== undefined ? 'done' : 'cut';
}

/** How an answer ended that broke off. */
export function endOf(error: GatewayError): TryEnd {
  if (isHedgeLost(error)) return 'hedge_lost';
  if (error.status === 499) return 'client_gone';
  if (isStopped(error)) return 'stopped';
  return error.kind === 'timeout' ? 'timeout' : 'cut';
}

/** How a stream ended: by the vendor's own error event, broken off, or truly. */
export function streamEnd(
  vendors: GatewayError | undefined,
  cut: GatewayError | undefined,
): TryEnd {
  if (vendors !== undefined) return 'error';
  return cut === undefined ? 'done' : endOf(cut);
}
