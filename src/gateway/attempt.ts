/** One attempt at one target: prepare the request, send it, and read until the outcome is known. */

import type { Codec } from '../codecs/codec.ts';
import type { TryAccount } from '../conversation/account/payer.ts';
import { asGatewayError, departure, isClientGone } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { Abort } from '../lib/loop/abort.ts';
import type { HopRecording, Recording } from '../samples/recording.ts';
import { remedyForError } from '../upstream/classify.ts';
import type { UpstreamCall } from '../upstream/upstream.ts';
import { shapeHeaders } from './parameters.ts';
import { prepare } from './prepare.ts';
import { readAnswer } from './read-answer.ts';
import { readRefusal } from './read-refusal.ts';
import { askedForUsage } from './tries/asked-usage.ts';
import { endFailedTry, endOf, endRefusedTry, endTry, StartOfTry } from './tries/try-account.ts';
import type { Attempt, Outcome, Prepared, StreamOutcome } from './types.ts';

/** Never rejects: whatever goes wrong is a failed outcome that says what may be tried next. */
export async function attempt(options: Attempt): Promise<Outcome> {
  const { exchange, request, protocol, upstream, features, hop, refusals, recording } = options;
  const { target } = options.routed;
  const notes = new Notes();
  if (options.standIn !== undefined) {
    notes.add(
      'family_facts',
      'model',
      `newer than the facts of models: asked as ${options.standIn}`,
    );
  }
  if (options.overResponses === true) {
    notes.add('parameter_mapped', 'tools', 'to /responses: over Chat no tools beside reasoning');
  }
  const abort = options.abort ?? new Abort();
  // At the first attempt the client was there a moment ago.
  if (hop.number === 1 && options.number === 1) abort.followLater(exchange);
  else abort.follow(exchange.signal);
  let call: UpstreamCall | undefined;
  let recorder: TryRecorder | undefined;
  let account: TryAccount | undefined;
  try {
    if (abort.aborted) throw departure(exchange.signal);
    const { payer } = options;
    const preparing = prepare({
      request,
      target,
      protocol,
      features,
      notes,
      hop,
      refusals,
      payer: options.sidePayer,
      owner: exchange.owner,
      abort,
    });
    const made = preparing instanceof Promise ? await preparing : preparing;
    const asking = payer?.needsUsage === true ? askedForUsage(options, target, made, notes) : made;
    const prepared = asking instanceof Promise ? await asking : asking;
    recorder = recording && new TryRecorder(recording, options, prepared.body);
    // The steps of `Upstream.send`: every exchange takes this way, and one more async function costs time.
    const acquiring = upstream.acquire(abort, options.lease, options.session);
    call = acquiring instanceof Promise ? await acquiring : acquiring;
    if (payer !== undefined) {
      const start = new StartOfTry(options, call.key.label, prepared.body.length);
      const begun = payer.beginTry(start);
      account = begun instanceof Promise ? await begun : begun;
    }
    const { stream = request.stream } = prepared;
    const kind = stream ? 'stream' : 'whole';
    const address = protocol.addressed?.(prepared.body, target.model, kind);
    const same = protocol === request.protocol;
    const { headers } = exchange;
    const sent = {
      path: address?.path ?? protocol.upstreamPath,
      query: address?.query,
      search: prepared.search ?? exchange.search,
      body: address?.body ?? prepared.body,
      clientHeaders: same
        ? shapeHeaders(headers, target, notes, request, exchange.lane?.turnState)
        : headers,
      owner: exchange.owner,
      sameProtocol: same,
      session: options.session,
      beta: prepared.beta,
      stream,
      abort,
      onSend: recorder?.onSend,
      trace: exchange.trace,
      onConnected: recorder?.onConnected,
    };
    options.events?.onSend();
    let answer: Awaited<ReturnType<typeof upstream.sendRequest>>;
    try {
      answer = await upstream.sendRequest(call, sent);
    } catch (thrown) {
      throw call.failed(thrown);
    }
    call.answered(answer.headers);
    account?.answered(answer.status, answer.headers);
    if (answer.detour !== undefined) notes.add('websocket_unavailable', undefined, answer.detour);
    const recorded = recorder?.hop;
    recorded?.start(answer.status, answer.headers);
    if (answer.status < 200 || answer.status > 299) {
      const onText = account && refusedTry(account, protocol);
      const { body, search } = sent;
      const words = { body, search, headers };
      const failure = await readRefusal(options, call, answer, notes, words, recorded, onText);
      abort.unfollow();
      call.release();
      return failure;
    }
    const reading = readAnswer({
      attempt: options,
      prepared,
      answer,
      notes,
      abort,
      call,
      recorded,
      account,
    });
    return reading instanceof Promise ? await reading : reading;
  } catch (thrown) {
    abort.unfollow();
    call?.release();
    abort.abort();
    const left = exchange.signal.aborted;
    const error = asGatewayError(left ? departure(exchange.signal) : thrown);
    recorder?.hop?.end(isClientGone(error) ? undefined : error);
    if (account !== undefined) endFailedTry(account, endOf(error));
    return { kind: 'failed', error, remedy: left ? 'never' : remedyForError(error), target, notes };
  }
}

const refusedTry = (account: TryAccount, protocol: Codec) => (text: string) =>
  endRefusedTry(account, protocol, text);

/** The recording of a try, from the moment when its request goes out. */
class TryRecorder {
  hop: HopRecording | undefined;
  readonly onSend: (url: string, headers: ReadonlyHeaders) => void;
  readonly onConnected = () => this.hop?.connected();

  constructor(
    recording: Recording,
    { hop, number, routed: { target }, request: { model }, routeName: route }: Attempt,
    body: Prepared['body'],
  ) {
    this.onSend = (url, headers) => {
      this.hop = recording.hop(hop.number, number, { target, model, route, url, headers, body });
    };
  }
}

/** Cancels an answer that no client receives, because another try was faster. */
export function discardStream({ account, pipeline, source, bytes = 0 }: StreamOutcome): void {
  source?.cancel();
  if (account === undefined) return;
  endTry(account, 'hedge_lost', pipeline.digest, bytes - pipeline.terminalBytes);
}
