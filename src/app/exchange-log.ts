/** Turns the summary of an exchange into the record that telemetry logs and counts. */

import { type GatewayError, isClientGone } from '../conversation/errors.ts';
import { summarize } from '../conversation/notes.ts';
import { type Target, targetName } from '../conversation/target.ts';
import type { Summary } from '../gateway/types.ts';
import type { Who } from '../keys/principal.ts';
import type { TickTask } from '../lib/loop/tick-end.ts';
import type { ExchangeRecord } from '../telemetry/exchange.ts';
import { operationOf } from '../telemetry/gen-ai-names.ts';

/** Left out: the request did not become an exchange. */
export type ReportExchange = (record: ExchangeRecord, summary?: Summary) => void;

/** The conventions' name of the vendor behind a target. */
export type VendorOf = (target: Target) => string;

/** An exchange that has ended. It is logged with all others of this tick, even if the process exits now. */
export class EndedExchange implements TickTask {
  constructor(
    private readonly about: Summary | ExchangeRecord,
    private readonly report: ReportExchange,
    private readonly vendorOf: VendorOf,
  ) {}

  onTickEnd(): void {
    const about = this.about;
    if ('exchange' in about) this.report(exchangeRecord(about, this.vendorOf), about);
    else this.report(about);
  }

  onExit(): void {
    this.onTickEnd();
  }
}

function exchangeRecord(summary: Summary, vendorOf: VendorOf): ExchangeRecord {
  const { exchange, target, error } = summary;
  return {
    id: exchange.id,
    protocol: exchange.entry ?? exchange.protocol.name,
    userAgent: exchange.headers.get('user-agent') ?? undefined,
    address: exchange.address,
    key: exchange.owner,
    keyName: exchange.principal.name,
    target: target && targetName(target),
    status: summary.status,
    stream: summary.stream,
    websocket: exchange.lane !== undefined,
    timings: { queue: summary.queue, firstByte: summary.firstByte, total: summary.total },
    usage: summary.usage,
    cost: summary.cost,
    lost: summary.lost,
    hops: summary.hops,
    notes: summarize(summary.notes),
    error: error && told(error),
    aborted: summary.status === 499,
    genAi: target && {
      operation: operationOf(exchange.entry ?? exchange.protocol.name),
      provider: vendorOf(target),
      model: summary.model ?? target.model,
    },
    traceId: exchange.trace?.traceId,
  };
}

/** A request that was turned away before it became an exchange. */
export function refusedRecord(
  request: Request,
  protocol: { readonly name: string },
  id: string,
  error: GatewayError,
  { id: key, name: keyName }: Who,
  address: string | undefined,
  ms: number,
): ExchangeRecord {
  return {
    id,
    protocol: protocol.name,
    userAgent: request.headers.get('user-agent') ?? undefined,
    address,
    key,
    keyName,
    status: error.status,
    stream: false,
    timings: { total: ms },
    hops: 0,
    error: isClientGone(error) ? undefined : told(error),
    aborted: error.status === 499,
  };
}

// The place of the failure and its nearest callers.
const STACK_LINES = 4;
const CAUSE_CHARS = 600;

/** What the gateway itself failed of is for the log alone; what a vendor did is in the message already. */
function told(error: GatewayError): NonNullable<ExchangeRecord['error']> {
  const { kind, message, cause } = error;
  return kind === 'internal' && cause !== undefined
    ? { kind, message, cause: wordsOf(cause) }
    : { kind, message };
}

function wordsOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause).slice(0, CAUSE_CHARS);
  const words = `${cause.name}: ${cause.message}`.slice(0, CAUSE_CHARS / 2);
  const places = (cause.stack ?? '')
    .split('\n', STACK_LINES + 1)
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, STACK_LINES);
  return [words, ...places].join(' ').slice(0, CAUSE_CHARS);
}
