/** Sends recorded requests again, under one setting or several in turn. */

import type { Codec } from '../../codecs/codec.ts';
import type { Config } from '../../config/config.ts';
import type { Principal } from '../../keys/principal.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import { answerText } from './answer-text.ts';
import { checkRecorded, checkTarget } from './known-target.ts';
import { type CompleteAnswer, outcomeOf } from './outcome.ts';
import {
  type Comparison,
  compareRuns,
  type RecordedOutcome,
  type ReplayedRequest,
} from './runs.ts';
import { type SendableRequest, send } from './send.ts';
import { probeConfig, type ReplaySetup, withSetting } from './settings.ts';
import { bodyOf, type ReplaySource, withModel } from './source.ts';

export interface ReplayOptions {
  readonly config: Config;
  readonly sources: readonly ReplaySource[];
  /** `provider/model`; left out: the model of the request, or the target it went to. */
  readonly to?: string;
  readonly repair: boolean;
  /** Settings to compare, `KEY=VALUE`; none: the configuration as it is. */
  readonly compare?: readonly string[];
  /** Requests for each source and setting. */
  readonly repeat: number;
  /** Called for every answer, with the number of answers so far and in total. */
  readonly onRun?: (run: ReplayedRequest, done: number, total: number) => void;
  /** Ends the replay early: the runs so far are the result. */
  readonly signal?: AbortSignal;
  /** The key that requests are sent as. */
  readonly as?: Principal;
}

export interface ReplayReport {
  readonly runs: readonly ReplayedRequest[];
  readonly comparison: Comparison;
}

/** Requests that a replay will send. */
export const countRuns = ({ sources, compare = [], repeat }: ReplayOptions) =>
  sources.length * Math.max(1, compare.length) * repeat;

/**
 * Sends each source under each setting in turn, so that a temporary problem of a vendor affects all settings.
 * @throws GatewayError invalid_request, before anything is sent, for an unknown setting or target
 */
export async function replay(options: ReplayOptions, tools: SampleServices): Promise<ReplayReport> {
  const setups = setupsOf(options);
  for (const { direct, target } of options.sources) {
    // It is sent to the target it went to.
    const back = direct && target !== undefined && setups.some(({ to }) => to === undefined);
    if (back) checkRecorded(target, options.config);
  }
  const runs: ReplayedRequest[] = [];
  const total = countRuns(options);
  const { signal, as } = options;
  // A vendor's request is sent again without any repair.
  const open = ({ config }: ReplaySetup, repair: boolean) =>
    tools.gateway({
      config: probeConfig(config),
      as,
      environment: tools.environment,
      repair,
    });
  const gateways = setups.map((setup) => ({
    setup,
    whole: open(setup, setup.repair),
    straight: open(setup, false),
  }));
  try {
    for (const source of options.sources) {
      const protocol = tools.protocols[source.protocol];
      const before = source.answer && recordedOf(protocol, source, source.answer);
      for (let i = 0; i < options.repeat; i++) {
        for (const { setup, whole, straight } of gateways) {
          if (signal?.aborted === true) break;
          const gateway = source.direct ? straight : whole;
          const what = sendable(source, setup);
          const sent = await send(gateway, protocol, what, signal).catch(
            undefinedIfAborted(signal),
          );
          if (sent === undefined) break;
          const run = { source: source.name, setting: setup.name, number: i + 1, sent, before };
          runs.push(run);
          options.onRun?.(run, runs.length, total);
        }
      }
    }
  } finally {
    await Promise.all(gateways.flatMap(({ whole, straight }) => [whole.close(), straight.close()]));
  }
  const names = setups.map(({ name }) => name);
  return { runs, comparison: compareRuns(names, runs) };
}

function recordedOf(
  protocol: Codec,
  { body, totalMs }: ReplaySource,
  answer: CompleteAnswer,
): RecordedOutcome {
  return {
    ...outcomeOf(protocol, answer),
    answer: answerText(protocol, body, answer),
    total: totalMs,
  };
}

const undefinedIfAborted = (signal: AbortSignal | undefined) => (thrown: unknown) => {
  if (signal?.aborted === true) return undefined;
  throw thrown;
};

function setupsOf({ config, repair, to, compare = [] }: ReplayOptions): readonly ReplaySetup[] {
  if (to !== undefined) checkTarget(to, config);
  const base: ReplaySetup = { name: '', config, repair, to, edit: KEEP };
  return compare.length === 0 ? [base] : compare.map((one) => withSetting(base, one));
}

/** The request to send: the recorded bytes, unless the setup changes the target or the body. */
function sendable(source: ReplaySource, setup: Pick<ReplaySetup, 'to' | 'edit'>): SendableRequest {
  const to = setup.to ?? (source.direct ? source.target : undefined);
  const value = setup.edit === KEEP ? undefined : bodyOf(source);
  const edited = value === undefined ? undefined : setup.edit(value);
  const body =
    edited === undefined || edited === value ? source.body : Buffer.from(JSON.stringify(edited));
  const { protocol, headers, search } = source;
  return { protocol, headers, search, body: to === undefined ? body : withModel(body, to) };
}

/** Leaves the body as it is, unparsed. */
const KEEP = (body: JsonObject) => body;
