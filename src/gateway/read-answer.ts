/** Reads the answer of an upstream, streamed or whole, until its outcome is known. */

import type { ClientContext } from '../codecs/codec.ts';
import type { TryAccount } from '../conversation/account/payer.ts';
import { asGatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Conversation } from '../conversation/types.ts';
import type { Abort } from '../lib/loop/abort.ts';
import type { HopRecording } from '../samples/recording.ts';
import type { UpstreamAnswer } from '../upstream/transport.ts';
import type { ClientRequest } from './client-request.ts';
import { decoded } from './response-body.ts';
import { openStream } from './stream/open.ts';
import { isEvents } from './stream/quiet-bytes.ts';
import { UpstreamBody } from './stream/upstream-body.ts';
import type { Attempt, Outcome, Prepared, Reading } from './types.ts';
import { wholeAnswer } from './whole/read-whole.ts';

interface ArrivedAnswer {
  readonly attempt: Attempt;
  readonly prepared: Prepared;
  readonly answer: UpstreamAnswer;
  readonly notes: Notes;
  readonly abort: Abort;
  readonly call: { release(): void };
  readonly recorded: HopRecording | undefined;
  readonly account: TryAccount | undefined;
}

/** @throws GatewayError if the answer breaks off or cannot be read */
export function readAnswer(arrived: ArrivedAnswer): Outcome | Promise<Outcome> {
  const { attempt, prepared, answer, notes, abort, call, recorded, account } = arrived;
  const { request, upstream } = attempt;
  const { target } = attempt.routed;
  const { headers, body } = decoded(answer);
  const source = new UpstreamBody(body, {
    provider: target.provider,
    idleMs: upstream.config.timeouts.idleMs,
    mostBytes: upstream.config.answers.bytes,
    abort,
    call,
    recording: recorded,
    watch: prepared.watch,
  });
  const client = new AttemptClientContext(attempt, notes);
  const common = {
    target,
    notes,
    headers,
    same: attempt.protocol === request.protocol && !request.readsOther,
  } as const;
  const reading: Reading = { attempt, prepared, source, client, common, account };
  const type = headers.get('content-type') ?? '';
  try {
    const outcome = request.stream
      ? streamOrWhole(reading, type, answer.status)
      : wholeAnswer(reading, type, answer.status);
    return outcome instanceof Promise ? outcomeLater(outcome, source) : outcome;
  } catch (thrown) {
    return giveUp(source, thrown);
  }
}

async function outcomeLater(outcome: Promise<Outcome>, source: UpstreamBody): Promise<Outcome> {
  try {
    return await outcome;
  } catch (thrown) {
    return giveUp(source, thrown);
  }
}

/** The idle timer of a body that is not finished would keep it, and what was recorded of it, for ever. */
function giveUp(source: UpstreamBody, thrown: unknown): never {
  source.giveUp(asGatewayError(thrown));
  throw thrown;
}

/** A stream was asked for; whether one came shows in its first bytes. */
function streamOrWhole(reading: Reading, type: string, status: number): Outcome | Promise<Outcome> {
  const first = reading.source.peek();
  return first instanceof Promise
    ? openLater(reading, type, status, first)
    : open(reading, type, status, first);
}

type First = readonly Uint8Array[] | undefined;

async function openLater(
  reading: Reading,
  type: string,
  status: number,
  first: Promise<First>,
): Promise<Outcome> {
  return open(reading, type, status, await first);
}

const open = (reading: Reading, type: string, status: number, first: First) =>
  isEvents(type, first?.[0]) ? openStream(reading) : wholeAnswer(reading, type, status);

class AttemptClientContext implements ClientContext {
  readonly requestId: string;
  readonly provider: string;
  readonly #request: ClientRequest;
  readonly #facts: Attempt['facts'];

  constructor(
    { exchange, request, routed, facts }: Attempt,
    readonly notes: Notes,
  ) {
    this.requestId = exchange.id;
    this.provider = routed.target.provider;
    this.#request = request;
    this.#facts = facts;
  }

  get promptTokens(): number {
    return this.#facts.tokens;
  }

  // A getter: a large body is decoded only where an encoder needs it.
  get request(): Conversation {
    return this.#request.conversation;
  }
}
