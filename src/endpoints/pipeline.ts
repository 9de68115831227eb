/** The exchange of an endpoint beside the protocols: read → route → tries → answer, the body untouched both ways. */

import { asGatewayError, clientGone } from '../conversation/errors.ts';
import { ExchangeSummaryBuilder } from '../gateway/exchange-summary.ts';
import type { Services } from '../gateway/reloadable.ts';
import { errorOf, failedResponse } from '../gateway/responses.ts';
import { ExchangeSession } from '../gateway/tries/exchange-session.ts';
import { retry } from '../gateway/tries/retry.ts';
import type {
  AttemptEvents,
  Exchange,
  FailedOutcome,
  FormSource,
  Summary,
} from '../gateway/types.ts';
import { permittedTargets, plainRequest, route } from '../routing/index.ts';
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
  readonly record: (recorded: RecordedExchange, exchange: Exchange) => Recording | undefined;
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
      const recorded = { id, headers, search, owner, body, protocol: endpoint };
      const recording = options.record(recorded, exchange);
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
  admitted: Omit<RunningEndpoint, 'session' | 'secrets' | 'rule' | keyof AttemptEvents>,
  options: EndpointOptions,
): Promise<Response> {
  const { exchange, request, services, summary } = admitted;
  const session = new ExchangeSession(exchange, exchange.body);
  const decision = route(factsOf(exchange, request, session), services.table);
  if (!decision.ok) throw decision.error;
  const { rule } = decision;
  const all = decision.targets;
  const targets = permittedTargets(exchange.principal, request.model, rule, all);
  const shared = all.slice(0, decision.equals);
  const equals = shared.filter((target) => targets.includes(target)).length;
  summary.routed(rule);
  const secrets = secretsOf(services.table.config);
  const running: RunningEndpoint = {
    ...admitted,
    session,
    secrets,
    rule,
    onSend: () => summary.sent(),
    onKeyRefused: options.onKeyRefused,
  };
  const outcome = await retry(
    {
      signal: exchange.signal,
      session,
      upstream: services.upstream,
      room: services.room,
      attempt: (routed, loan, number) => attempt(running, routed, loan, number),
      mayHedge: false,
      onHedge: () => {},
      canRepair: () => false,
      onRetry: options.onRetry,
      onOutcome: (outcome, tries) => summary.hopEnded(outcome, tries),
    },
    targets,
    equals,
  );
  return outcome.kind === 'failed'
    ? failedResponse({ exchange, summary, secrets }, outcome)
    : answerResponse(running, outcome, options.onStream);
}

/** For rules these requests are of the OpenAI protocol; of their size only the length of the body is known. */
function factsOf(
  exchange: Exchange,
  { model, stream, bytes }: EndpointRequest,
  session: ExchangeSession,
) {
  const plain = plainRequest(model, 'openai-chat', Date.now());
  const { headers, form } = exchange;
  const tokens = form === undefined ? Math.ceil(bytes / BYTES_PER_TOKEN) : 0;
  return {
    ...plain,
    stream,
    headers,
    get affinity() {
      return session.affinity;
    },
    tokens,
  };
}

const BYTES_PER_TOKEN = 4;
