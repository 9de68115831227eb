/** An exporter whose results are reported: the packages only hand them to a log that is off. */

import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { isObject, tryParse } from '../../lib/json/json.ts';

interface Result {
  /** 0: all was taken. */
  readonly code: number;
  readonly error?: Error;
}

interface Exporter<T> {
  export(items: T, done: (result: Result) => void): void;
  forceFlush?(): Promise<void>;
  shutdown(): Promise<void>;
}

/** After the packages' own deadline, which each byte of an answer moves. */
const LATE_MS = 500;

export class WatchedExporter<T> implements Exporter<T> {
  readonly #exporter: Exporter<T>;
  readonly #timeoutMs: number;
  readonly #report: (failure: string | undefined) => void;

  constructor(
    exporter: Exporter<T>,
    timeoutMs: number,
    report: (failure: string | undefined) => void,
  ) {
    this.#exporter = exporter;
    this.#timeoutMs = timeoutMs;
    this.#report = report;
    diag.setLogger(REMARKS, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  }

  export(items: T, done: (result: Result) => void): void {
    let over = false;
    const end = (result: Result, failure: string | undefined) => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      this.#report(failure);
      done(result);
    };
    const timer = setTimeout(() => {
      const error = new Error(`no whole answer within ${this.#timeoutMs} ms`);
      end({ code: 1, error }, error.message);
    }, this.#timeoutMs + LATE_MS);
    timer.unref();
    this.#exporter.export(items, (result) => {
      const remark = takeRemark();
      const failure = result.code === 0 ? remark : result.error?.message || 'no answer';
      end(result, failure);
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

/** What the packages say of an answer with a status of success, in the turn in which they give the result. */
let remark: string | undefined;

function takeRemark(): string | undefined {
  const found = remark;
  remark = undefined;
  return found;
}

const ignore: DiagLogFunction = () => {};
const REMARKS = {
  error: ignore,
  warn: (_namespace: string, ...args: unknown[]) => {
    remark = refusalIn(args) ?? remark;
  },
  info: ignore,
  debug: ignore,
  verbose: ignore,
};

/** A partial success, as JSON, or an answer that is none of OTLP. */
function refusalIn(args: readonly unknown[]): string | undefined {
  for (const arg of args) {
    if (arg instanceof Uint8Array && Buffer.from(arg).toString('latin1').trimStart()[0] === '<') {
      return 'it answered with a web page';
    }
    const told = typeof arg === 'string' ? tryParse(arg) : undefined;
    if (!isObject(told)) continue;
    const count = Number(told.rejectedSpans ?? told.rejectedDataPoints ?? 0);
    if (count > 0) return `${count} were refused: ${told.errorMessage || 'it does not say why'}`;
  }
  return undefined;
}

// A collector that fails now and then must not fill the log.
const REPORT_MS = 60_000;
const MAX_MESSAGE = 200;

/** Reports the first failure, and the first success after a reported failure; at most one failure a minute. */
export function reporter(
  onState: (failure: string | undefined) => void,
): (failure: string | undefined) => void {
  let failing = false;
  let reported = Number.NEGATIVE_INFINITY;
  return (failure) => {
    const now = performance.now();
    if (failure === undefined) {
      if (failing) onState(undefined);
      failing = false;
    } else if (!failing && now - reported >= REPORT_MS) {
      failing = true;
      reported = now;
      onState(failure.slice(0, MAX_MESSAGE));
    }
  };
}
