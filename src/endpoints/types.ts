import type { Codec } from '../codecs/codec.ts';
import type { AllowedOutput } from '../conversation/account/allowed-output.ts';
import type { TryAccount } from '../conversation/account/payer.ts';
import type { Notes } from '../conversation/notes.ts';
import type { ProtocolName } from '../conversation/protocol-names.ts';
import type { Target } from '../conversation/target.ts';
import type { ExchangeSummaryBuilder } from '../gateway/exchange-summary.ts';
import type { Services } from '../gateway/reloadable.ts';
import type { UpstreamBody } from '../gateway/stream/upstream-body.ts';
import type { ExchangeSession } from '../gateway/tries/exchange-session.ts';
import type { Account, AttemptEvents, Exchange } from '../gateway/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { RoutedTarget } from '../routing/index.ts';
import type { RequestStream } from '../upstream/transport.ts';
import type { Endpoint } from './endpoint.ts';
import type { ChunkFilter } from './event-filters.ts';
import type { StreamEnd } from './stream-end.ts';
import type { UsageScan } from './usage.ts';

/** What a client asks of an endpoint, whether its body is JSON or a form. */
export interface EndpointRequest {
  /** As the client spelled it. */
  readonly model: string;
  /** The client named none. */
  readonly isDefaultModel?: boolean;
  /** The client asked for a stream. */
  readonly stream: boolean;
  /** Vectors of floats are wanted as base64. */
  readonly wantsBase64?: boolean;
  /** Forms set no limit of tokens. */
  readonly allowed?: AllowedOutput;
  /** Of the text in `input`: speech may be paid by the character. */
  readonly characters?: number | undefined;
  /** Bytes of the body, as far as they are known when the targets are chosen. */
  readonly bytes: number;
  /** What goes out as `content-type`. */
  readonly contentType: string;
  /** A body that has begun to go out cannot be sent a second time. */
  readonly spent: boolean;
  /** Left out: `POST`. */
  readonly method?: 'GET' | 'POST' | 'DELETE';
  /** What a vendor may have made of it is not made twice: after it went out, only a refusal leads to another try. */
  readonly once?: boolean;
  /** The vendor has answered, with any status. */
  onStatus?(status: number): void;
  /** What a try may cost; undefined: nothing. Left out: as of one request to the endpoint. */
  beginTry?(target: Target, key: string | undefined, number: number): MaybeTry | Promise<MaybeTry>;
  /** The client's bytes with another model name, or the very bytes where it is the same; undefined: no body. */
  bodyFor(target: Pick<Target, 'model' | 'provider'>): SentBytes | Promise<SentBytes>;
  /** The body as a record shows it: without media. */
  recorded(model: string): Uint8Array;
  /** The exchange is over. */
  close(): void;
}

type MaybeTry = TryAccount | undefined;
type SentBytes = Uint8Array | RequestStream | undefined;

/** What all tries of one exchange share. */
export interface RunningEndpoint extends AttemptEvents {
  readonly exchange: Exchange;
  readonly endpoint: Endpoint;
  readonly request: EndpointRequest;
  readonly services: Services;
  /** Of targets whose protocol is not the client's; left out: there are none. */
  readonly protocols?: Readonly<Record<ProtocolName, Codec>>;
  /** Who pays for the tries; undefined: they are not counted. */
  readonly account: Account | undefined;
  /** By which targets and keys are chosen. */
  readonly session: ExchangeSession;
  readonly summary: ExchangeSummaryBuilder;
  readonly secrets: readonly string[];
  /** The route that chose the targets. */
  readonly routeName: string | undefined;
}

/** An answer that has begun: from here on there is no other try. */
export interface AnswerOutcome {
  readonly kind: 'answer';
  readonly status: number;
  readonly headers: ReadonlyHeaders;
  readonly target: RoutedTarget['target'];
  /** The name of the provider's key. */
  readonly upstreamKey: string | undefined;
  readonly notes: Notes;
  /** What has come of the body. */
  readonly first: readonly Uint8Array[];
  /** The rest; undefined: `first` is all. */
  readonly source: UpstreamBody | undefined;
  readonly usage: UsageScan;
  /** Of an event stream: whether it has come to its end. */
  readonly end: StreamEnd | undefined;
  /** Through which the body goes out, in this order. */
  readonly filters: readonly ChunkFilter[];
  /** On which the try goes; ended with the answer. */
  readonly paid: TryAccount | undefined;
}
