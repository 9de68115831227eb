/** The exchange of an endpoint beside the protocols: read → route → tries → answer; the body stays, but for vectors of another API. */

import type { Codec } from '../codecs/codec.ts';
import { asGatewayError, departure } from '../conversation/errors.ts';
import type { ProtocolName } from '../conversation/protocol-names.ts';
import { checkVendorIdsOf, type ForeignIds } from '../conversation/vendor-ids.ts';
import type { Account, Accounts } from '../gateway/account.ts';
import { ExchangeSummaryBuilder } from '../gateway/exchange-summary.ts';
import type { Services } from '../gateway/reloadable.ts';
import { errorOf } from '../gateway/responses.ts';
import { accountOf } from '../gateway/tries/open-account.ts';
import type {
  AttemptEvents,
  Exchange,
  FailedOutcome,
  FormSource,
  Summary,
} from '../gateway/types.ts';
import type { RecordedExchange, Recording } from '../samples/recording.ts';
import type { Endpoint } from './endpoint.ts';
import { FormReader } from './form/form-request.ts';
import { jsonRequest } from './json-request.ts';
import { withoutMedia } from './media.ts';
import { answered } from './run-request.ts';
import type { EndpointRequest } from './types.ts';

export interface EndpointOptions {
  readonly services: () => Services;
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  /** Whose account the tries go on; left out: nothing is counted. */
  readonly accounts?: Accounts;
  /** Where samples are wanted, the recording of this exchange. */
  readonly record: (recorded: RecordedExchange, exchange: Exchange) => Recording | undefined;
  readonly onRetry: (failed: FailedOutcome) => void;
  readonly onKeyRefused: AttemptEvents['onKeyRefused'];
  /** A stream to a client opens (true) or is over (false). */
  readonly onStream: (open: boolean) => void;
  readonly onEnd: (summary: Summary) => void;
  readonly foreignIds: ForeignIds;
  /** The folder for forms that do not fit into memory. */
  readonly folder: string;
}

/** What is known of the request before a form is read. */
const FORM = { model: undefined, stream: false };

/** Answers an exchange. Never rejects. */
export type ServeEndpoint = (exchange: Exchange, endpoint: Endpoint) => Promise<Response>;

export function createEndpoints(options: EndpointOptions): ServeEndpoint {
  return async (exchange, endpoint) => {
    const services = options.services();
    const form = exchange.form && formReader(exchange, exchange.form, services, options);
    let request: EndpointRequest | undefined;
    const begin = (body: Uint8Array) => {
      const { id, headers, sessionId, search, owner, address } = exchange;
      const recorded = { id, headers, sessionId, search, owner, address, body, protocol: endpoint };
      const recording = options.record(recorded, exchange);
      return new ExchangeSummaryBuilder(exchange, recording, (summary) => {
        request?.close();
        form?.close();
        options.onEnd(summary);
      });
    };
    let summary: ExchangeSummaryBuilder | undefined;
    let account: Account | undefined;
    try {
      // What a form takes while it comes is limited by the key's exchanges at a time.
      if (form !== undefined) account = await accountOf(exchange, FORM, options.accounts);
      request = await (form?.read() ?? jsonRequest(exchange.body, endpoint.defaultModel));
      summary = begin(request.recorded(request.model));
      summary.received(request);
      if (form === undefined) account = await accountOf(exchange, request, options.accounts);
      if (account !== undefined) summary.opened(account);
      if (form === undefined) {
        await checkVendorIdsOf(exchange.body, exchange.owner, options.foreignIds);
      }
      const admission = services.slots.take(exchange);
      summary.admitted(typeof admission === 'function' ? admission : await admission);
      const { protocols } = options;
      const admitted = { exchange, endpoint, request, services, protocols, account, summary };
      return await answered(admitted, options);
    } catch (thrown) {
      const error = exchange.signal.aborted ? departure(exchange.signal) : asGatewayError(thrown);
      if (summary === undefined) {
        summary = begin(form?.recorded() ?? withoutMedia(exchange.body));
        if (account !== undefined) summary.opened(account);
      }
      return errorOf(exchange, error, summary);
    }
  };
}

function formReader(
  { headers }: Exchange,
  source: FormSource,
  { table }: Services,
  { folder }: EndpointOptions,
): FormReader {
  return new FormReader(source, {
    contentType: headers.get('content-type') ?? '',
    spoolBytes: table.config.limits.formSpoolBytes,
    folder,
  });
}
