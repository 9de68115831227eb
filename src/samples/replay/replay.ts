/** Sends recorded requests again, under one setting or several in turn. */

import type { Codec } from '../../codecs/codec.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import { checkReplay, countRuns, KEEP, type ReplayOptions } from './check-replay.ts';
import { costAt, type Prices, pricesOf } from './cost.ts';
import { answerText, type CompleteAnswer, outcomeOf } from './outcome.ts';
import {
  type Comparison,
  compareRuns,
  type RecordedOutcome,
  type ReplayedRequest,
} from './runs.ts';
import { type SendableRequest, send } from './send.ts';
import { probeConfig, type ReplaySetup } from './settings.ts';
import { bodyOf, type ReplaySource, withModel } from './source.ts';

export interface ReplayReport {
  readonly runs: readonly ReplayedRequest[];
  readonly comparison: Comparison;
}

/**
 * Sends each source under each setting in turn, so that a temporary problem of a vendor affects all settings.
 * @throws GatewayError invalid_request, before anything is sent, for an unknown setting or target
 */
export async function replay(options: ReplayOptions, tools: SampleServices): Promise<ReplayReport> {
  const setups = checkReplay(options, tools);
  const prices = pricesOf(options.config);
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
      const before = source.answer && recordedOf(protocol, source, source.answer, prices);
      for (let i = 0; i < options.repeat; i++) {
        for (const { setup, whole, straight } of gateways) {
          if (signal?.aborted === true) break;
          const gateway = source.direct ? straight : whole;
          const what = sendable(source, setup);
          const sent = await send(gateway, protocol, what, signal).catch(
            undefinedIfAborted(signal),
          );
          if (sent === undefined) break;
          const cost = costAt(prices, sent.target, sent.usage);
          const of = { source: source.name, setting: setup.name, number: i + 1 };
          const run = { ...of, sent, before, cost };
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
  { body, totalMs, firstByteMs, target = '' }: ReplaySource,
  answer: CompleteAnswer,
  prices: Prices,
): RecordedOutcome {
  const outcome = outcomeOf(protocol, answer);
  return {
    ...outcome,
    answer: answerText(protocol, body, answer),
    total: totalMs,
    firstByte: firstByteMs,
    cost: costAt(prices, target, outcome.usage),
  };
}

const undefinedIfAborted = (signal: AbortSignal | undefined) => (thrown: unknown) => {
  if (signal?.aborted === true) return undefined;
  throw thrown;
};

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
