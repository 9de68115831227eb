/** Traces and metrics for a collector: follows the configuration, and loads what sends them only where one is named. */

import type { Config } from '../../config/config.ts';
import type { TelemetryConfig } from '../../config/sections/telemetry.ts';
import type { Target } from '../../conversation/target.ts';
import type { Settings } from '../../conversation/types.ts';
import type { Summary } from '../../gateway/types.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import type { ExchangeRecord } from '../../telemetry/exchange.ts';
import type { GatewayMetrics } from '../../telemetry/gateway-metrics.ts';
import { event, type Log } from '../../telemetry/log.ts';
import type { TracedExchange } from '../../telemetry/otel/exchange-spans.ts';
import type { OpenTelemetry } from '../../telemetry/otel/index.ts';
import { addressOf, ExchangeTrace, readCaller, type ServerAddress } from '../../telemetry/trace.ts';
import { sameConfig } from '../../upstream/same-config.ts';
import { telemetryVendor } from '../../vendors/index.ts';

import { type ContentRules, contentRules, messageContent } from './message-content.ts';

export interface TelemetryOptions {
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  readonly version: string;
}

/** A provider as telemetry names it. */
interface Vendor {
  readonly name: string;
  readonly server: ServerAddress | undefined;
}

export class Telemetry {
  #providers: Config['providers'];
  #config: TelemetryConfig;
  #content: ContentRules | undefined;
  readonly #vendors = new Map<string, Vendor>();
  /** Loading or loaded; gives undefined where it could not be loaded. */
  #sending: Promise<OpenTelemetry | undefined> | undefined;
  /** Loaded. */
  #sender: OpenTelemetry | undefined;

  constructor(
    config: Config,
    private readonly options: TelemetryOptions,
  ) {
    this.#providers = config.providers;
    this.#config = config.telemetry;
    this.#content = rulesIn(config);
  }

  /** Do spans hold what was said? Then the answers of sampled exchanges are kept until their end. */
  get keepsContent(): boolean {
    return this.#content !== undefined;
  }

  /** The trace of an exchange that begins; undefined where none is sent. */
  readonly begin = (headers: ReadonlyHeaders): ExchangeTrace | undefined => {
    const { traces } = this.#config;
    if (traces === undefined) return undefined;
    const caller = readCaller(headers.get('traceparent'), headers.get('tracestate'));
    return new ExchangeTrace(traces, caller);
  };

  /** The conventions' name of the vendor behind a target. */
  readonly vendorOf = ({ provider }: Target): string => this.#vendor(provider).name;

  /** Sends the spans of an exchange that has ended, where it is sampled. */
  ended(record: ExchangeRecord, summary: Summary): void {
    const { trace } = summary.exchange;
    if (trace?.sampled === true) this.#send(trace, record, summary);
  }

  #send(trace: ExchangeTrace, record: ExchangeRecord, summary: Summary): void {
    const { exchange, request, finish, target } = summary;
    const traced: TracedExchange = {
      trace,
      record,
      started: exchange.started,
      path: exchange.path,
      server: target && this.#vendor(target.provider).server,
      vendorOf: (provider) => this.#vendor(provider),
      call: {
        ...(request?.settings && callSettings(request.settings)),
        ...(this.#content && messageContent(summary, this.#content)),
        conversation: exchange.sessionId || undefined,
        finishReasons: finish && [finish],
      },
    };
    if (this.#sender !== undefined) this.#sender.exchange(traced);
    else void this.#load()?.then((sender) => sender?.exchange(traced));
  }

  /** Loads what sends; until then it is loaded with the first exchange. */
  open(): void {
    void this.#load();
  }

  configure(config: Config): void {
    const { providers, telemetry } = config;
    this.#providers = providers;
    this.#content = rulesIn(config);
    this.#vendors.clear();
    if (sameConfig(telemetry, this.#config)) return;
    const loaded = this.#sending !== undefined;
    void this.close();
    this.#config = telemetry;
    if (loaded) this.open();
  }

  /** Sends what waits, for some seconds at most. */
  async close(): Promise<void> {
    const sending = this.#sending;
    this.#sending = undefined;
    this.#sender = undefined;
    await (await sending)?.close();
  }

  #load(): Promise<OpenTelemetry | undefined> | undefined {
    const config = this.#config;
    if (config.traces === undefined && config.metrics === undefined) return undefined;
    if (this.#sending !== undefined) return this.#sending;
    const sending = this.#start(config);
    this.#sending = sending;
    void sending.then((sender) => {
      if (this.#sending === sending) this.#sender = sender;
    });
    return sending;
  }

  async #start(config: TelemetryConfig): Promise<OpenTelemetry | undefined> {
    const { metrics, version, log } = this.options;
    const failed = (signal: string, message: string) =>
      event(log, 'otlp.failed', { signal, message }, 'warn');
    try {
      const { startOpenTelemetry } = await import('../../telemetry/otel/index.ts');
      return startOpenTelemetry({
        ...config,
        version,
        families: metrics.families,
        onState: (signal, failure) =>
          failure === undefined
            ? event(log, 'otlp.recovered', { signal })
            : failed(signal, failure),
      });
    } catch (thrown) {
      failed('all', String(thrown));
      return undefined;
    }
  }

  #vendor(provider: string): Vendor {
    const known = this.#vendors.get(provider);
    if (known !== undefined) return known;
    const server = addressOf(memberOf(this.#providers, provider)?.baseUrl ?? '');
    const vendor = { name: telemetryVendor(server?.host ?? '') ?? provider, server };
    this.#vendors.set(provider, vendor);
    return vendor;
  }
}

const rulesIn = (config: Config): ContentRules | undefined =>
  config.telemetry.traces?.content === true ? contentRules(config) : undefined;

/** What the client asked for, as attributes of the model call. */
const callSettings = (settings: Settings): TracedExchange['call'] => ({
  maxTokens: settings.maxTokens,
  temperature: settings.temperature,
  topP: settings.topP,
  topK: settings.topK,
  seed: settings.seed,
  stopSequences: settings.stop && [...settings.stop],
  choices: settings.n === 1 ? undefined : settings.n,
  frequencyPenalty: settings.frequencyPenalty,
  presencePenalty: settings.presencePenalty,
  reasoningLevel: settings.reasoning?.effort,
  previousResponse: settings.previousResponseId,
  outputType: settings.format && (settings.format.type === 'text' ? 'text' : 'json'),
});
