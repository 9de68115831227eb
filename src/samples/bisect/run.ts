/** Finds the smallest request that still fails as a recorded one did, and keeps it as a sample. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { checkRecorded, checkTarget } from '../replay/known-target.ts';
import { type AnswerFailure, outcomeOf, type RequestOutcome } from '../replay/outcome.ts';
import { type Caller, probeConfig } from '../replay/settings.ts';
import { bodyOf, type ReplaySource, withModel } from '../replay/source.ts';
import type { SampleServices } from '../replay/tools.ts';
import type { SampleStore } from '../sample.ts';
import { createProber } from './probe.ts';
import { type BisectProgress, openProgress } from './progress.ts';
import type { BisectReport, ProbeReport } from './types.ts';

export const DEFAULT_BUDGET = 100;

export interface BisectionOptions {
  readonly config: Config;
  readonly source: ReplaySource;
  /** Where both requests are kept. */
  readonly store: SampleStore;
  /** One target, `provider/model`; left out: where the request went. */
  readonly to?: string;
  readonly repair: boolean;
  /** Requests that may be sent. */
  readonly budget: number;
  /** Forget what an earlier run of the same found. */
  readonly fresh?: boolean;
  /** Told before the first probe: so many answers of an earlier run are known. */
  readonly onResume?: (known: number) => void;
  readonly onProbe?: (probe: ProbeReport) => void;
  /** Asks for an early end: what is known by then is the result. */
  readonly signal: AbortSignal;
  /** In whose name it is sent; the samples are theirs. */
  readonly as?: Caller;
}

/** Ids of the samples that were kept. */
export interface StoredSamples {
  readonly minimal: string | null;
  readonly passing: string | null;
}

export interface BisectionResult {
  readonly report: BisectReport;
  readonly samples: StoredSamples;
  /** The failure that was looked for, once it was known. */
  readonly wanted: RequestOutcome | undefined;
  /** A failure of another kind, the first one seen. */
  readonly other: RequestOutcome | undefined;
}

/** @throws GatewayError invalid_request for a body that is no JSON object, or a target that there is not */
export async function bisection(
  options: BisectionOptions,
  tools: SampleServices,
): Promise<BisectionResult> {
  const { config, source, budget, signal, as } = options;
  const repair = options.repair && !source.direct;
  // One target: a fallback would hide the failure that is looked for.
  if (options.to !== undefined) checkTarget(options.to, config);
  else if (source.target !== undefined) checkRecorded(source.target, config);
  const to = options.to ?? source.target;
  const body = bodyOf(source);
  const folder = join(tools.environment.home, 'bisect');
  const what = [body, to, repair, ...(as === undefined ? [] : [as.name])];
  const work = openProgress(folder, what, options.fresh === true);
  const samples = { ...config.samples, mode: 'all', dir: work.samples, redact: [] } as const;
  const gateway = tools.gateway({
    config: probeConfig(config, samples, as),
    environment: tools.environment,
    repair,
  });
  const protocol = tools.protocols[source.protocol];
  const recorded = source.answer && outcomeOf(protocol, source.answer);
  const asked = createProber({
    gateway,
    protocol,
    like: { ...source, as },
    bytes: (candidate) => bytesToSend(candidate, body, source, to),
    recorded: recorded?.failure === undefined ? undefined : recorded,
    signal,
  });
  const known = [...work.known.values()].reduce((sum, verdicts) => sum + verdicts.length, 0);
  if (known > 0) options.onResume?.(known);
  let report: BisectReport;
  try {
    report = await tools.bisect({
      body,
      protocol: source.protocol,
      budget,
      known: work.known,
      signal,
      probe: (candidate) => asked.probe(candidate),
      onProbe: (probe) => {
        work.add(probe.key, probe.verdict, asked.last?.id ?? '');
        options.onProbe?.(probe);
      },
    });
  } finally {
    await gateway.close();
  }
  const kept = storeSamples(options, work, report, tools);
  if (report.result !== 'partial') work.remove();
  return { report, samples: kept, wanted: asked.wanted, other: asked.other };
}

/** What a bisection found, as `--json` and the browser show it. */
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

/** The very bytes for the whole request; the target put in where there is one. */
function bytesToSend(
  candidate: JsonObject,
  whole: JsonObject,
  source: ReplaySource,
  to: string | undefined,
): Uint8Array {
  const own = candidate === whole ? source.body : Buffer.from(JSON.stringify(candidate));
  return to === undefined ? own : withModel(own, to);
}

const keyOf = (body: JsonObject) =>
  createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 16);

/** Both requests become samples, with everything that was recorded of their probes. */
function storeSamples(
  { store, source, as }: BisectionOptions,
  work: BisectProgress,
  report: BisectReport,
  tools: SampleServices,
): StoredSamples {
  const probes = tools.samples(work.samples);
  const carry = (id: string | undefined, about: string): string | null => {
    const meta = id === undefined ? undefined : probes.find(id);
    if (meta === undefined) return null;
    const exported = probes.export(meta, false);
    const told = { ...exported.meta, owner: as?.name, about };
    return store.import({ ...exported, meta: told }).id;
  };
  try {
    const { result, minimal, passing } = report;
    if (result === 'does-not-fail') return { minimal: null, passing: null };
    const fails = `The smallest request that fails as ${source.name} does.`;
    const passes = `The nearest request to it that passes (${source.name}).`;
    return {
      minimal: carry(work.idOf(keyOf(minimal), 'same'), fails),
      passing: passing === undefined ? null : carry(work.idOf(keyOf(passing), 'passes'), passes),
    };
  } finally {
    probes.close();
  }
}
