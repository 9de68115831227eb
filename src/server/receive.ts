/** From an HTTP request to an exchange. Whatever is wrong with the request is answered in its own protocol. */

import type { Codec } from '../codecs/codec.ts';
import type { Asked } from '../codecs/serve.ts';
import { asGatewayError, clientGone, cutBy, GatewayError } from '../conversation/errors.ts';
import type { EntryName } from '../conversation/models/endpoint-names.ts';
import { errorResponse } from '../gateway/error-response.ts';
import type { Exchange, FormSource, Gateway } from '../gateway/types.ts';
import { type Who, WITHOUT_KEY } from '../keys/principal.ts';
import { withoutByteOrderMark } from '../lib/bytes/bytes.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../lib/http/headers.ts';
import { tickEnd } from '../lib/loop/tick-end.ts';
import { requestId } from '../lib/text/ids.ts';
import type { ExchangeTrace } from '../telemetry/trace.ts';
import { type Access, refuseLoop } from './auth.ts';
import { readBody, readParsable } from './body.ts';
import type { Connections, Held } from './connections.ts';
import { askedAtDeployment, HttpExchange } from './http-exchange.ts';

export interface ReceiveSettings {
  readonly access: () => Access;
  readonly bodyBytes: () => number;
  readonly connections: Connections;
  /** By which a request that this gateway sent itself is known. */
  readonly gatewayId?: string | undefined;
  /** Begins the trace of an exchange; undefined where exchanges are not traced. */
  readonly trace?: (headers: ReadonlyHeaders) => ExchangeTrace | undefined;
  /** The address of the client, as far as it is asked for; left out: it never is. */
  readonly address?: (request: Request, headers: ReadonlyHeaders) => string | undefined;
  /** A request did not become an exchange, after `ms`. `who`: {@link WITHOUT_KEY} where it is not known. */
  readonly onRefused: (
    request: Request,
    codec: { readonly name: EntryName },
    id: string,
    error: GatewayError,
    who: Who,
    ms: number,
  ) => void;
}

/** Answers a request in the protocol of this codec, on a lane where it came on one; never rejects. */
export type Receiver = (
  request: Request,
  codec: Codec,
  asked?: Asked,
  lane?: Exchange['lane'],
) => Promise<Response>;

/** Where a client's key may stand. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];

export interface ReceiveOptions {
  /** The exchange goes on behind the response; {@link rested} is called at its end. */
  readonly goesOn?: boolean;
  /** As {@link Exchange.entry}. */
  readonly entry?: EntryName;
  /** The body, where it is a form that is to be read later; left out: every body is read whole. */
  readonly formOf?: (request: Request, headers: FlatHeaders, key: string) => FormSource | undefined;
}

/** A handler that opens an exchange and hands it on. Never rejects. */
export function receive(
  options: ReceiveSettings,
  handle: Gateway,
  { goesOn = false, entry, formOf }: ReceiveOptions = {},
): Receiver {
  const { connections, gatewayId } = options;
  // An exchange that goes on checks its body where it reads it.
  const readWith = goesOn ? readBody : readParsable;
  return async (request, protocol, given, lane) => {
    const asked = given ?? askedAtDeployment(request);
    const started = performance.now();
    const id = requestId();
    const { turn } = connections;
    let reading = false;
    let principal = WITHOUT_KEY;
    let held: Held | undefined;
    try {
      const headers = FlatHeaders.from(request.headers);
      // Where every check looks for a key, and from where none is forwarded.
      if (asked?.key !== undefined && !holdsKey(headers)) headers.set('x-goog-api-key', asked.key);
      const found = options.access()(headers);
      refuseLoop(headers, gatewayId);
      principal = found instanceof Promise ? await found : found;
      reading = true;
      const form = formOf?.(request, headers, principal.id);
      let read: ArrayBuffer | Uint8Array = NO_BODY;
      let atOnce = turn !== 0;
      if (form === undefined) {
        const whole = readWith(request, headers, options.bodyBytes(), connections, principal.id);
        whole.catch(ignored);
        // All requests of one tick go on together, and mostly their bodies came in it, too.
        await tickEnd();
        if (Bun.peek.status(whole) === 'fulfilled') read = Bun.peek(whole) as typeof read;
        else {
          read = await connections.uploaded(whole);
          atOnce = false;
          await tickEnd();
        }
        connections.working(request);
      } else await tickEnd();
      reading = false;
      // No client would get the answer, and the vendor would be paid for it.
      if (connections.closed(request, atOnce)) throw clientGone();
      const bytes = withoutByteOrderMark(read instanceof Uint8Array ? read : Buffer.from(read));
      const body = asked === undefined ? bytes : asked.body(bytes);
      held = connections.begun(request, principal.id, body.length);
      const exchange = new HttpExchange(request, protocol, {
        id,
        headers,
        entry,
        body,
        form,
        principal,
        started,
        held,
        address: lane === undefined ? options.address?.(request, headers) : lane.address,
        trace: options.trace?.(headers),
        lane,
        asked,
        cutting: connections.cutting,
      });
      const response = await handle(exchange);
      if (!goesOn) rested(connections, exchange);
      return response;
    } catch (thrown) {
      connections.ended(held);
      connections.resting(request);
      const error = errorOf(
        thrown,
        request.signal.aborted && (cutBy(connections.cutting) ?? clientGone()),
        reading,
      );
      options.onRefused(request, protocol, id, error, principal, performance.now() - started);
      return errorResponse(protocol, error, {
        requestId: id,
        target: undefined,
        notes: undefined,
      });
    }
  };
}

/** An exchange is over: its body is given up, and its connection waits for the next request. */
export function rested(connections: Connections, exchange: Exchange): void {
  if (!(exchange instanceof HttpExchange)) return;
  connections.ended(exchange.held);
  connections.resting(exchange.request);
}

const holdsKey = (headers: FlatHeaders): boolean => KEY_HEADERS.some((name) => headers.has(name));

/** A refusal in words stays one; of anything else, a client that left is the reason before all others. */
function errorOf(thrown: unknown, left: GatewayError | false, reading: boolean): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  // A body whose framing is broken looks the same: the runtime has answered it and closed the connection.
  if (left) return left;
  if (!reading) return asGatewayError(thrown);
  const words = 'The request body could not be read to its end.';
  return new GatewayError('invalid_request', words, { cause: thrown });
}

const ignored = () => {};
const NO_BODY = new Uint8Array(0);
