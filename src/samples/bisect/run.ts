/** Bisects a recorded request: finds the smallest request that fails the same way, and stores it as a sample. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import type { Principal } from '../../keys/principal.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { runAtOnce } from '../../lib/loop/steps.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import { checkRecorded, checkTarget } from '../replay/known-target.ts';
import { type AnswerFailure, outcomeOf, type RequestOutcome } from '../replay/outcome.ts';
import { probeConfig } from '../replay/settings.ts';
import { bodyOf, type ReplaySource, withModel } from '../replay/source.ts';
import type { SampleStore } from '../sample.ts';
import { Prober } from './prober.ts';
import { BisectProgress } from './progress.ts';
import type { BisectReport, ProbeReport } from './types.ts';

/** Requests that are sent before more are asked for. */
export const DEFAULT_BUDGET = 20;

export interface BisectionOptions {
  readonly config: Config;
  readonly source: ReplaySource;
  /** Where both requests are stored as samples. */
  readonly store: SampleStore;
  /** One target, `provider/model`; left out: the target of the request. */
  readonly to?: string;
  readonly repair: boolean;
  /** Requests that may be sent. */
  readonly budget: number;
  /** Asked when the budget is spent: how many more may be sent. */
  readonly more?: (spent: number) => Promise<number>;
  /** Ignore the verdicts of an earlier run. */
  readonly fresh?: boolean;
  /** Called before the first probe with the number of known verdicts of an earlier run. */
  readonly onResume?: (known: number) => void;
  readonly onProbe?: (probe: ProbeReport) => void;
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
    report = await tools.bisect({
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
  const stored = storeSamples(options, progress, report, tools);
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

const keyOf = (body: JsonObject) =>
  createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 16);

/** Stores both requests as samples, with the recordings of their probes. */
function storeSamples(
  { store, source, as }: BisectionOptions,
  progress: BisectProgress,
  report: BisectReport,
  tools: SampleServices,
): StoredSamples {
  const probes = tools.samples(progress.samples);
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
