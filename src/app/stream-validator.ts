/** Validates the streams that clients get. A violation is logged and counted; the stream goes on. */

import type { Finding } from '../codecs/lint.ts';
import type { Config } from '../config/config.ts';
import { protocolOf } from '../conversation/models/endpoint-names.ts';
import { targetName } from '../conversation/target.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { SseParser } from '../lib/bytes/sse.ts';
import type { HopRecording, RecordedExchange, Recording } from '../samples/recording.ts';
import type { GatewayMetrics } from '../telemetry/gateway-metrics.ts';
import { event, type Log } from '../telemetry/log.ts';
import { LINT } from './linters.ts';

// One in so many when `validate: sample`.
const SAMPLE = 20;
// One rule broken at every event would fill the log.
const MAX_TOLD = 5;

const NOTHING: HopRecording = { connected() {}, start() {}, chunk() {}, end() {} };

/** A validator for one exchange, or undefined when it is not to be checked. */
export function streamValidator(
  mode: Config['validate'],
  exchange: RecordedExchange,
  log: Log,
  metrics: GatewayMetrics,
): Recording | undefined {
  if (mode === 'off' || (mode === 'sample' && Math.random() * SAMPLE >= 1)) return undefined;
  const protocol = protocolOf(exchange.protocol.name);
  return protocol && validatorOf(protocol, exchange, log, metrics);
}

function validatorOf(
  protocol: ProtocolName,
  exchange: RecordedExchange,
  log: Log,
  metrics: GatewayMetrics,
): Recording {
  const linter = LINT.linters[protocol].stream();
  const parser = new SseParser();
  const found: Finding[] = [];
  let streaming = false;
  return {
    hop: () => NOTHING,
    clientStart(status, headers) {
      streaming = status === 200 && (headers.get('content-type') ?? '').includes('event-stream');
    },
    clientChunk(chunk) {
      if (!streaming) return;
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      for (const frame of parser.push(bytes)) found.push(...linter.push(frame));
    },
    end({ error, status, target }) {
      // A stream that was cut off ends with an error event on purpose.
      if (!streaming || error !== undefined || status === 499) return;
      for (const frame of parser.end()) found.push(...linter.push(frame));
      found.push(...linter.end());
      for (const { rule } of found) metrics.violations.add(1, protocol, rule);
      for (const { at, rule, message } of found.slice(0, MAX_TOLD)) {
        const where = target && targetName(target);
        const fields = { id: exchange.id, protocol, target: where, at, rule, message };
        event(log, 'stream.violation', fields, 'error');
      }
    },
  };
}

/** Two recordings as one; undefined when there is none. */
export function joined(a: Recording | undefined, b: Recording | undefined): Recording | undefined {
  return a === undefined || b === undefined ? (a ?? b) : both([a, b]);
}

function both(some: readonly Recording[]): Recording {
  return {
    tool(run) {
      for (const one of some) one.tool?.(run);
    },
    space(space) {
      for (const one of some) one.space?.(space);
    },
    hop(hop, attempt, sent) {
      const hops = some.map((one) => one.hop(hop, attempt, sent));
      return {
        connected: () => {
          for (const one of hops) one.connected();
        },
        start: (status, headers) => {
          for (const one of hops) one.start(status, headers);
        },
        chunk: (chunk) => {
          for (const one of hops) one.chunk(chunk);
        },
        end: (error) => {
          for (const one of hops) one.end(error);
        },
      };
    },
    clientStart(status, headers) {
      for (const one of some) one.clientStart(status, headers);
    },
    clientChunk(chunk) {
      for (const one of some) one.clientChunk(chunk);
    },
    end(told) {
      for (const one of some) one.end(told);
    },
  };
}
