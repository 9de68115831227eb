/** Telemetry of one exchange: its log line and its counters, from one record. */

import { cutWords, withoutControls } from '../lib/text/printable-text.ts';
import { redactText } from '../lib/text/redact.ts';
import { usdText } from '../lib/text/usd.ts';
import { clientName } from './client-name.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import { type Log, maskedEvent, maskedFor } from './log.ts';

/** Everything that log and metrics need about an exchange that has ended. Times in milliseconds. */
export interface ExchangeRecord {
  /** `req_…` */
  readonly id: string;
  /** The client's protocol, e.g. `openai-chat`. */
  readonly protocol: string;
  /** The client's user agent, as sent. */
  readonly userAgent?: string;
  /** The client's address; left out where it is not asked for. */
  readonly address?: string | undefined;
  /** The id of the gateway key that the client sent; left out or '' without keys. */
  readonly key?: string;
  /** Its name, for people. */
  readonly keyName?: string;
  /** The `provider/model` that answered or was tried last; left out when none was chosen. */
  readonly target?: string;
  /** The HTTP status that the client got. */
  readonly status: number;
  readonly stream: boolean;
  /** It came on a WebSocket. */
  readonly websocket?: boolean;
  readonly timings: {
    /** From arrival until the first byte went upstream. */
    readonly queue?: number;
    /** From arrival until the first byte of the answer reached the client. */
    readonly firstByte?: number;
    readonly total: number;
  };
  /** Tokens; every count excludes the others. */
  readonly usage?: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead?: number;
    readonly cacheWrite?: number;
    readonly reasoning?: number;
  };
  /** Nano-USD of all tries at upstreams; left out: a price is unknown. */
  readonly cost?: number;
  /** Tokens of the prompt that a vendor's cache should have held and did not, and the nano-USD that this cost. */
  readonly lost?: { readonly tokens: number; readonly nanoUsd: number } | undefined;
  /** `name` or `name=count`, comma-separated; '' when nothing was changed. */
  readonly notes?: string;
  /** Upstream calls that made up the answer; 1 when left out. */
  readonly hops?: number;
  /** The error that the client got: its kind and message. */
  readonly error?: {
    readonly kind: string;
    readonly message?: string;
    /** The internal cause, for the log alone. */
    readonly cause?: string;
  };
  /** The client went away before the end. */
  readonly aborted?: boolean;
  /** What the conventions for generative AI call it; left out where no vendor was asked. */
  readonly genAi?: GenAiLabels;
  /** 32 hexadecimal digits; left out where exchanges are not traced. */
  readonly traceId?: string;
}

/** Labels of the metrics that follow the conventions for generative AI. */
export interface GenAiLabels {
  /** `chat`, `generate_content`, … */
  readonly operation: string;
  /** The vendor: `openai`, `anthropic`, …; of an unknown one its name in the configuration. */
  readonly provider: string;
  /** As the client asked for it. */
  readonly model: string;
}

// Beyond this, numbers are written with an exponent.
const MAX_TENTHS = 1e15;

/** As JSON, to a tenth. Whole numbers become text in a fraction of the time that others take. */
function ms(value: number): string {
  const tenths = Math.round(value * 10);
  const digit = tenths % 10;
  const whole = digit === 0 || !(tenths > 0 && tenths < MAX_TENTHS);
  return whole ? `${tenths / 10}` : `${(tenths - digit) / 10}.${digit}`;
}

/** A vendor's token count. JSON can hold 1e999, but not the Infinity that it becomes. */
const count = (tokens: number) => (Number.isFinite(tokens) ? tokens : null);

/** Writes the exchange's one line: info, warn from status 400 on, error from 500 on. */
export function logExchange(log: Log, record: ExchangeRecord): void {
  const { status, error } = record;
  const level = status >= 500 ? 'error' : status >= 400 || error !== undefined ? 'warn' : 'info';
  if (log.isLevelEnabled(level)) maskedEvent(log, 'exchange', membersOf(log, record), level);
}

/** The line's members as JSON text, written directly, without an object for them. */
function membersOf(log: Log, record: ExchangeRecord): string {
  const { id, userAgent, protocol, key, target, timings, usage, cost, notes, error } = record;
  const client = userAgent === undefined ? wordsOf(protocol) : clientOf(userAgent, protocol);
  const from = record.address === undefined ? '' : `,"address":${jsonText(record.address)}`;
  const by =
    key === undefined || key === ''
      ? ''
      : `,"key":${keyOf(key)},"key_name":${keyOf(record.keyName ?? key)}`;
  const sentTo = target === undefined ? '' : `,"target":${targetOf(target)}`;
  const used = usage === undefined ? '' : `,"usage":${usageOf(usage)}`;
  const paid = cost === undefined ? '' : `,"cost_usd":${usdText(cost)}`;
  const { lost } = record;
  const missed =
    lost === undefined
      ? ''
      : `,"cache_lost":${count(lost.tokens)},"cache_lost_usd":${usdText(lost.nanoUsd)}`;
  const noted = notes === undefined || notes === '' ? '' : `,"notes":${wordsOf(notes)}`;
  const failed = error === undefined ? '' : `,"error":${jsonText(error.kind)}`;
  const why =
    error?.message === undefined ? '' : `,"error_message":${vendorText(log, error.message)}`;
  const within = error?.cause === undefined ? '' : `,"error_cause":${vendorText(log, error.cause)}`;
  const wire = record.websocket === true ? ',"websocket":true' : '';
  const left = record.aborted === true ? ',"aborted":true' : '';
  const trace = record.traceId === undefined ? '' : `,"trace_id":"${record.traceId}"`;
  return `"id":${JSON.stringify(id)},"client":${client}${from}${by}${sentTo},"status":${record.status},"stream":${record.stream}${wire},"timings":${timesOf(timings)}${used}${paid}${missed}${noted},"hops":${record.hops ?? 1}${failed}${why}${within}${left}${trace}`;
}

function timesOf({ queue, firstByte, total }: ExchangeRecord['timings']): string {
  const waited = queue === undefined ? '' : `"queue":${ms(queue)},`;
  const first = firstByte === undefined ? '' : `"first_byte":${ms(firstByte)},`;
  return `{${waited}${first}"total":${ms(total)}}`;
}

function usageOf(usage: NonNullable<ExchangeRecord['usage']>): string {
  const { input, output, cacheRead, cacheWrite, reasoning } = usage;
  const read = cacheRead === undefined ? '' : `,"cache_read":${count(cacheRead)}`;
  const written = cacheWrite === undefined ? '' : `,"cache_write":${count(cacheWrite)}`;
  const thought = reasoning === undefined ? '' : `,"reasoning":${count(reasoning)}`;
  return `{"input":${count(input)},"output":${count(output)}${read}${written}${thought}}`;
}

// Characters: a vendor's message can be a whole page.
const MAX_TEXT = 2000;

const jsonText = (text: string): string => withoutControls(JSON.stringify(text));
/** A text of a client or vendor, cut and with credentials masked. The rest of the line holds none. */
const quoted = (text: string): string => jsonText(redactText(cutWords(text, MAX_TEXT)).text);
/** A vendor's text, also without the secrets that this log knows: an error may repeat one. */
const vendorText = (log: Log, text: string): string =>
  jsonText(maskedFor(log, cutWords(text, MAX_TEXT)));

// Most exchanges have the same few. Clients choose them: above this number all are forgotten, and longer ones
// are not remembered.
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 256;

function remembered(make: (text: string, more: string) => string) {
  const all = new Map<string, Map<string, string>>();
  return (text: string, more = ''): string => {
    const before = all.get(more)?.get(text);
    if (before !== undefined) return before;
    const made = make(text, more);
    if (text.length > MAX_REMEMBERED_LENGTH) return made;
    const one = all.get(more) ?? new Map<string, string>();
    if (one.size >= MAX_REMEMBERED) one.clear();
    all.set(more, one.set(text, made));
    return made;
  };
}

const targetOf = remembered(quoted);
const keyOf = remembered(quoted);
const wordsOf = remembered(quoted);
const clientOf = remembered((userAgent, protocol) => jsonText(clientName(userAgent, protocol)));

export function countExchange(metrics: GatewayMetrics, record: ExchangeRecord): void {
  const { protocol, target = '', usage, timings } = record;
  metrics.requests.add(1, protocol, target, STATUS_TEXT[record.status] ?? String(record.status));
  metrics.requestSeconds.observe(timings.total / 1000, protocol, target);
  if (timings.firstByte !== undefined) {
    metrics.firstByteSeconds.observe(timings.firstByte / 1000, protocol, target);
  }
  const { key, error } = record;
  if (error !== undefined && record.aborted !== true) metrics.errors.add(1, error.kind);
  if (key !== undefined && key !== '') countForKey(metrics, record, key);
  if (usage !== undefined) {
    metrics.tokens.add(usage.input, target, 'input');
    metrics.tokens.add(usage.output, target, 'output');
    if (usage.cacheRead) metrics.tokens.add(usage.cacheRead, target, 'cache_read');
    if (usage.cacheWrite) metrics.tokens.add(usage.cacheWrite, target, 'cache_write');
    if (usage.reasoning) metrics.tokens.add(usage.reasoning, target, 'reasoning');
  }
  countConventions(metrics, record);
  if (record.notes) {
    for (const note of record.notes.split(',')) {
      const [name = '', count] = note.split('=');
      const counted = COUNTED_NOTE.exec(name);
      if (counted !== null) metrics.notes.add(Number(counted[2]), counted[1]! + counted[3]!);
      else metrics.notes.add(count === undefined ? 1 : Number(count), name);
    }
  }
}

/** Four notes carry their count in the name, `stripped_3_thinking_blocks`; a metric's label must not. */
const COUNTED_NOTE =
  /^(stripped|removed|rewritten)_(\d{1,9})(_(?:thinking_blocks|vendor_blocks|cache_control_fields|srvtoolu_ids))$/;

/** The histograms that the conventions for generative AI ask for; exchanges that reached no vendor have none. */
function countConventions(
  metrics: GatewayMetrics,
  { genAi, timings, usage, stream }: ExchangeRecord,
) {
  if (genAi === undefined) return;
  const { operation, provider, model } = genAi;
  metrics.inferenceSeconds.observe(timings.total / 1000, operation, provider, model);
  if (stream && timings.firstByte !== undefined) {
    metrics.firstChunkSeconds.observe(timings.firstByte / 1000, operation, provider, model);
  }
  if (usage === undefined) return;
  const { input, output, cacheRead = 0, cacheWrite = 0, reasoning = 0 } = usage;
  metrics.inputTokens.observe(input + cacheRead + cacheWrite, operation, provider, model);
  metrics.outputTokens.observe(output + reasoning, operation, provider, model);
}

function countForKey(metrics: GatewayMetrics, record: ExchangeRecord, key: string) {
  const { status, usage, keyName = key } = record;
  metrics.keyRequests.add(1, key, keyName, STATUS_TEXT[status] ?? String(status));
  if (usage === undefined) return;
  metrics.keyTokens.add(usage.input, key, keyName, 'input');
  metrics.keyTokens.add(usage.output, key, keyName, 'output');
  if (usage.cacheRead) metrics.keyTokens.add(usage.cacheRead, key, keyName, 'cache_read');
  if (usage.cacheWrite) metrics.keyTokens.add(usage.cacheWrite, key, keyName, 'cache_write');
  if (usage.reasoning) metrics.keyTokens.add(usage.reasoning, key, keyName, 'reasoning');
}

// For the common ones, counting allocates no string.
const STATUS_TEXT: Readonly<Record<number, string>> = { 200: '200', 400: '400', 429: '429' };
