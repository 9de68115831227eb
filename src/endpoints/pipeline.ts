/** The exchange of an endpoint beside the protocols: read → route → tries → answer, the body untouched both ways. */

import { asGatewayError, clientGone } from '../conversation/errors.ts';
import { ExchangeSummaryBuilder } from '../gateway/exchange-summary.ts';
import { errorOf, failedResponse } from '../gateway/responses.ts';
import { retry } from '../gateway/retry.ts';
import type {
  AttemptEvents,
  Exchange,
  FailedOutcome,
  FormSource,
  Services,
  Summary,
} from '../gateway/types.ts';
import { plainRequest, route } from '../routing/index.ts';
import type { RecordedExchange, Recording } from '../samples/recording.ts';
import { secretsOf } from '../upstream/secrets.ts';
import { attempt } from './attempt.ts';
import type { Endpoint } from './endpoint.ts';
import { FormReader } from './form/form-request.ts';
import { jsonRequest } from './json-request.ts';
import { withoutMedia } from './media.ts';
import { answerResponse } from './response.ts';
import type { EndpointRequest, RunningEndpoint } from './types.ts';

export interface EndpointOptions {
  readonly services: () => Services;
  /** Where samples are wanted, the recording of this exchange. */
  readonly record: (exchange: RecordedExchange) => Recording | undefined;
  readonly onRetry: (failed: FailedOutcome) => void;
  readonly onKeyRefused: AttemptEvents['onKeyRefused'];
  /** A stream to a client opens (true) or is over (false). */
  readonly onStream: (open: boolean) => void;
  readonly onEnd: (summary: Summary) => void;
  /** The folder for forms that do not fit into memory. */
  readonly folder: string;
}

/** Answers an exchange. Never rejects. */
export type ServeEndpoint = (exchange: Exchange, endpoint: Endpoint) => Promise<Response>;

export function createEndpoints(options: EndpointOptions): ServeEndpoint {
  return async (exchange, endpoint) => {
    const services = options.services();
    const form = exchange.form && formReader(exchange, exchange.form, services, options);
    let request: EndpointRequest | undefined;
    const begin = (body: Uint8Array) => {
      const { id, headers, search, owner } = exchange;
      const recording = options.record({ id, headers, search, owner, body, protocol: endpoint });
      return new ExchangeSummaryBuilder(exchange, recording, (summary) => {
        request?.close();
        form?.close();
        options.onEnd(summary);
      });
    };
    let summary: ExchangeSummaryBuilder | undefined;
    try {
      request = await (form?.read() ?? jsonRequest(exchange.body));
      summary = begin(request.recorded(request.model));
      summary.received(request);
      const admission = services.slots.take(exchange);
      summary.admitted(typeof admission === 'function' ? admission : await admission);
      return await answered({ exchange, endpoint, request, services, summary }, options);
    } catch (thrown) {
      const error = exchange.signal.aborted ? clientGone() : asGatewayError(thrown);
      summary ??= begin(form?.recorded() ?? withoutMedia(exchange.body));
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

async function answered(
  admitted: Omit<RunningEndpoint, 'secrets' | 'rule' | keyof AttemptEvents>,
  options: EndpointOptions,
): Promise<Response> {
  const { exchange, request, services, summary } = admitted;
  const decision = route(factsOf(exchange, request), services.table);
  if (!decision.ok) throw decision.error;
  const { rule, targets } = decision;
  summary.routed(rule);
  const secrets = secretsOf(services.table.config);
  const running: RunningEndpoint = {
    ...admitted,
    secrets,
    rule,
    onSend: () => summary.sent(),
    onKeyRefused: options.onKeyRefused,
  };
  const outcome = await retry(
    {
      signal: exchange.signal,
      upstream: services.upstream,
      attempt: (routed, number) => attempt(running, routed, number),
      canRepair: () => false,
      onRetry: options.onRetry,
      onOutcome: (outcome, tries) => summary.hopEnded(outcome, tries),
    },
    targets,
  );
  return outcome.kind === 'failed'
    ? failedResponse({ exchange, summary, secrets }, outcome)
    : answerResponse(running, outcome, options.onStream);
}

/** For rules these requests are of the OpenAI protocol; of their size only the length of the body is known. */
function factsOf(exchange: Exchange, { model, stream, bytes }: EndpointRequest) {
  const plain = plainRequest(model, 'openai-chat', Date.now());
  const { headers, id, form } = exchange;
  const tokens = form === undefined ? Math.ceil(bytes / BYTES_PER_TOKEN) : 0;
  return { ...plain, stream, headers, affinity: id, tokens };
}

const BYTES_PER_TOKEN = 4;
