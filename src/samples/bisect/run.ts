/** Bisects a recorded request: finds the smallest request that fails the same way, and stores it as a sample. */

import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Codec } from '../../codecs/codec.ts';
import type { Config } from '../../config/config.ts';
import type { Principal } from '../../keys/principal.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { runAtOnce } from '../../lib/loop/steps.ts';
import type { InProcessGateway, SampleServices } from '../in-process-gateway.ts';
import { checkRecorded, checkTarget } from '../replay/known-target.ts';
import {
  type AnswerFailure,
  outcomeOf,
  type RequestOutcome,
  sameFailure,
} from '../replay/outcome.ts';
import { type SendableRequest, type SendResult, send } from '../replay/send.ts';
import { probeConfig } from '../replay/settings.ts';
import { bodyOf, type ReplaySource, withModel } from '../replay/source.ts';
import type { SampleStore } from '../sample.ts';
import { openSampleStore } from '../store/sample-store.ts';
import { bisect, keyOf } from './minimize.ts';
import type { BisectOptions, BisectReport, Verdict } from './types.ts';

/** Requests that are sent before more are asked for. */
export const DEFAULT_BUDGET = 20;

export interface BisectionOptions extends Pick<BisectOptions, 'budget' | 'more' | 'onProbe'> {
  readonly config: Config;
  readonly source: ReplaySource;
  /** Where both requests are stored as samples. */
  readonly store: SampleStore;
  /** One target, `provider/model`; left out: the target of the request. */
  readonly to?: string;
  readonly repair: boolean;
  /** Ignore the verdicts of an earlier run. */
  readonly fresh?: boolean;
  /** Called before the first probe with the number of known verdicts of an earlier run. */
  readonly onResume?: (known: number) => void;
  /** Ends the search early: the smallest request so far is the result. */
  readonly signal: AbortSignal;
  /** The key that requests are sent as; it owns the samples. */
  readonly as?: Principal;
}

/** Ids of the stored samples. */
export interface StoredSamples {
  readonly minimal: string | null;
  readonly passing: string | null;
}

export interface BisectionResult {
  readonly report: BisectReport;
  readonly samples: StoredSamples;
  /** The failure to reproduce, once it was known. */
  readonly wanted: RequestOutcome | undefined;
  /** A failure of another kind, the first one seen. */
  readonly other: RequestOutcome | undefined;
}

/** @throws GatewayError invalid_request for a body that is not a JSON object, or an unknown target */
export async function bisection(
  options: BisectionOptions,
  tools: SampleServices,
): Promise<BisectionResult> {
  const { config, source, budget, signal, as } = options;
  const repair = options.repair && !source.direct;
  // A single target: a fallback would hide the failure.
  if (options.to !== undefined) checkTarget(options.to, config);
  else if (source.target !== undefined) checkRecorded(source.target, config);
  const to = options.to ?? source.target;
  const body = bodyOf(source);
  const folder = join(tools.environment.home, 'bisect');
  const what = [body, to, repair, ...(as === undefined ? [] : [as.id])];
  const progress = new BisectProgress(folder, what, options.fresh === true);
  const samples = { ...config.samples, mode: 'all', dir: progress.samples, redact: [] } as const;
  const gateway = tools.gateway({
    config: probeConfig(config, samples),
    as,
    environment: tools.environment,
    repair,
  });
  const protocol = tools.protocols[source.protocol];
  const recorded = source.answer && outcomeOf(protocol, source.answer);
  const prober = new Prober({
    gateway,
    protocol,
    like: source,
    bytes: (candidate) => bytesToSend(candidate, body, source, to),
    recorded: recorded?.failure === undefined ? undefined : recorded,
    signal,
  });
  const known = [...progress.known.values()].reduce((sum, verdicts) => sum + verdicts.length, 0);
  if (known > 0) options.onResume?.(known);
  let report: BisectReport;
  try {
    report = await bisect({
      body,
      protocol: source.protocol,
      budget,
      more: options.more,
      known: progress.known,
      failure: () => prober.wanted?.failure?.message ?? '',
      isRefusal: recorded?.failure !== undefined && REFUSALS.has(recorded.status),
      signal,
      probe: (candidate) => prober.probe(candidate),
      onProbe: (probe) => {
        progress.add(probe.key, probe.verdict, prober.last?.id ?? '');
        options.onProbe?.(probe);
      },
    });
  } finally {
    await gateway.close();
  }
  const stored = storeSamples(options, progress, report);
  if (report.result !== 'partial') progress.remove();
  return { report, samples: stored, wanted: prober.wanted, other: prober.other };
}

/** The result of a bisection as JSON, for `--json` and the page. */
export function bisectionAsJson({ report, samples, wanted }: BisectionResult) {
  const { minimal, probes, cause, words, passing, ...rest } = report;
  const failure: AnswerFailure | null = wanted?.failure ?? null;
  return {
    minimal,
    probes,
    cause: cause ?? null,
    words,
    ...rest,
    passing: passing ?? null,
    samples,
    failure,
  };
}

/** The recorded bytes for the whole request, JSON for a candidate, with the target as the model where there is one. */
function bytesToSend(
  candidate: JsonObject,
  whole: JsonObject,
  source: ReplaySource,
  to: string | undefined,
): Uint8Array {
  const own = candidate === whole ? source.body : Buffer.from(JSON.stringify(candidate));
  return to === undefined ? own : withModel(own, to);
}

/** Statuses of a request that the vendor will never accept. */
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 405, 413, 415, 422]);

function storeSamples(
  { store, source, as }: BisectionOptions,
  progress: BisectProgress,
  report: BisectReport,
): StoredSamples {
  const probes = openSampleStore(progress.samples);
  const copySample = (id: string | undefined, about: string): string | null => {
    const meta = id === undefined ? undefined : probes.find(id);
    if (meta === undefined) return null;
    const exported = runAtOnce(probes.export(meta, false));
    // Not a turn of the session: the request is not the client's.
    const { session: _, ...own } = exported.meta;
    const copiedMeta = { ...own, owner: as?.name, about, made_by: 'bisect' } as const;
    return store.import({ ...exported, meta: copiedMeta }).id;
  };
  try {
    const { result, minimal, passing } = report;
    if (result === 'does-not-fail') return { minimal: null, passing: null };
    const fails = `The smallest request that fails as ${source.name} does.`;
    const passes = `The nearest request to it that passes (${source.name}).`;
    return {
      minimal: copySample(progress.idOf(keyOf(minimal), 'same'), fails),
      passing:
        passing === undefined ? null : copySample(progress.idOf(keyOf(passing), 'passes'), passes),
    };
  } finally {
    probes.close();
  }
}

export class BisectProgress {
  /** Verdicts of earlier runs, by the key of the candidate. */
  readonly known: ReadonlyMap<string, readonly Verdict[]>;
  /** Folder in which its requests are recorded. */
  readonly samples: string;
  readonly #folder: string;
  readonly #path: string;
  /** Request ids of the latest probes, by key and verdict. */
  readonly #ids = new Map<string, string>();

  /**
   * @param folder of all bisections
   * @param what identifies the run: body, target, whether it is repaired
   */
  constructor(folder: string, what: readonly unknown[], fresh: boolean) {
    this.#folder = join(folder, keyOf(what));
    this.#path = join(this.#folder, 'probes.jsonl');
    this.samples = join(this.#folder, 'samples');
    if (fresh) this.remove();
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const known = new Map<string, Verdict[]>();
    for (const line of read(this.#path).split('\n')) {
      // The last line of a killed run may be incomplete.
      const probe = tryParse(line);
      if (!isObject(probe)) continue;
      const [key, verdict] = [String(probe.key), probe.verdict as Verdict];
      known.set(key, [...(known.get(key) ?? []), verdict]);
      this.#ids.set(`${key} ${verdict}`, String(probe.id));
    }
    this.known = known;
  }

  add(key: string, verdict: Verdict, id: string): void {
    this.#ids.set(`${key} ${verdict}`, id);
    appendFileSync(this.#path, `${JSON.stringify({ key, verdict, id })}\n`, { mode: 0o600 });
  }

  /** The request id of the latest probe with this verdict. */
  idOf(key: string, verdict: Verdict): string | undefined {
    return this.#ids.get(`${key} ${verdict}`);
  }

  /** Removes everything from the disk. */
  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export interface ProberOptions {
  readonly gateway: InProcessGateway;
  readonly protocol: Codec;
  readonly like: Omit<SendableRequest, 'body'>;
  /** The bytes to send for a candidate. */
  readonly bytes: (body: JsonObject) => Uint8Array;
  /** The failure to reproduce; undefined: the first one that occurs. */
  readonly recorded: RequestOutcome | undefined;
  readonly signal: AbortSignal;
}

/** Longest pause after a rate limit, in seconds. */
const MAX_PAUSE = 30;
const MAX_PAUSES = 4;

export class Prober {
  /** The latest answer. */
  last: SendResult | undefined;
  /** The failure to reproduce, once it is known. */
  wanted: RequestOutcome | undefined;
  /** A failure of another kind, the first one seen. */
  other: RequestOutcome | undefined;

  constructor(private readonly options: ProberOptions) {
    this.wanted = options.recorded;
  }

  async probe(body: JsonObject): Promise<Verdict> {
    const bytes = this.options.bytes(body);
    const sent = await sendWaitingOutLimits(this.options, bytes, this.wanted?.status === 429);
    this.last = sent;
    if (sent.failure === undefined) return 'passes';
    this.wanted ??= sent;
    if (sameFailure(this.wanted, sent)) return 'same';
    this.other ??= sent;
    return 'other';
  }
}

/** A rate limit says nothing about the candidate: waits and sends it again. */
async function sendWaitingOutLimits(
  options: ProberOptions,
  body: Uint8Array,
  limited: boolean,
): Promise<SendResult> {
  const { gateway, protocol, like, signal } = options;
  for (let pause = 1; ; pause++) {
    const sent = await send(gateway, protocol, { ...like, body }, signal);
    if (limited || sent.status !== 429 || pause > MAX_PAUSES) return sent;
    await sleep(Math.min(MAX_PAUSE, sent.retryAfter ?? 2 ** pause) * 1000, undefined, {
      signal,
    });
  }
}
