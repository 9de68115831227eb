/** The request of an endpoint's attempt, with its facts. */

import type { AskedUsage } from '../codecs/codec.ts';
import type { TryStart } from '../conversation/account/payer.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import { estimatedTokens } from '../conversation/usage.ts';
import { bodyAskingForUsage } from '../gateway/tries/asked-usage.ts';
import type { RequestStream } from '../upstream/transport.ts';
import { withoutMedia } from './media.ts';
import type { RunningEndpoint } from './types.ts';

export interface SentBody {
  readonly body: Uint8Array | RequestStream;
  /** As a record shows it. */
  recorded(): Uint8Array;
  /** Usage that this gateway asked for and the client did not. */
  readonly hides: AskedUsage | undefined;
}

/** Asks the vendor for the usage of a stream if a limit of the key needs it. */
export async function sentBody(
  { account, endpoint, request, exchange }: RunningEndpoint,
  target: Target,
  notes: Notes,
): Promise<SentBody> {
  const body = request.bodyFor(target.model);
  const plain = { body, recorded: () => request.recorded(target.model), hides: undefined };
  // Of these endpoints, completions alone have the option; other streams report usage in any case.
  const asks = endpoint.name === 'completions' ? exchange.protocol.usageIsAsked : undefined;
  if (asks === undefined || !request.stream || account?.needsUsage !== true) return plain;
  if (!(body instanceof Uint8Array)) return plain;
  const asked = await bodyAskingForUsage(body, target, asks, notes);
  if (asked === undefined) return plain;
  return { body: asked, recorded: () => withoutMedia(asked), hides: asks };
}

/** Only completions generate tokens. What is in a form (audio, images) is not counted in tokens beforehand. */
export function startOf(
  { exchange, endpoint, request }: RunningEndpoint,
  target: Target,
  upstreamKey: string | undefined,
  attempt: number,
): TryStart {
  const { model, stream, bytes, allowed } = request;
  const completes = endpoint.name === 'completions';
  return {
    target,
    model,
    upstreamKey,
    hop: 1,
    attempt,
    stream,
    inputTokens: exchange.form === undefined ? estimatedTokens(bytes) : 0,
    maxOutputTokens: completes ? allowed?.tokens : 0,
    choices: completes ? (allowed?.choices ?? 1) : 1,
    serviceTier: undefined,
  };
}
