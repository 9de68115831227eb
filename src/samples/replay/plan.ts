/** Says what a replay or a bisection may cost before it sends anything. */

import type { Codec } from '../../codecs/codec.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { totalInput, totalOutput, type Usage } from '../../conversation/usage.ts';
import { countRuns, type ReplayOptions } from './check-replay.ts';
import { costAt, type Prices } from './cost.ts';
import { outcomeOf } from './outcome.ts';
import type { ReplaySource } from './source.ts';
import type { SpendPlan } from './types.ts';

type Protocols = Readonly<Record<ProtocolName, Codec>>;

/** Bytes of a request for one token, and tokens of an answer that nothing is known of. */
const BYTES_A_TOKEN = 4;
const ANSWER_TOKENS = 500;

function usageFor(source: ReplaySource, protocols: Protocols): { usage: Usage; guessed: boolean } {
  const usage = source.answer && outcomeOf(protocols[source.protocol], source.answer).usage;
  if (usage !== undefined) return { usage, guessed: false };
  const input = Math.ceil(source.body.length / BYTES_A_TOKEN);
  return { usage: { input, output: ANSWER_TOKENS }, guessed: true };
}

/** As a vendor counts them that has nothing of the prompt in its cache. */
const cold = (usage: Usage): Usage => ({ input: totalInput(usage), output: totalOutput(usage) });

const sum = (amounts: readonly (number | null)[]) =>
  amounts.some((one) => one === null)
    ? null
    : amounts.reduce<number>((total, one) => total + (one ?? 0), 0);

/** What a replay costs about. */
export function planReplay(
  options: ReplayOptions,
  prices: Prices,
  protocols: Protocols,
): SpendPlan {
  const { sources, to = [], compare = [], repeat } = options;
  const counted = sources.map((source) => ({ source, ...usageFor(source, protocols) }));
  const named = to.length > 0 ? to : compare.flatMap(targetOf);
  const each = Math.max(1, compare.length, to.length) / Math.max(1, named.length);
  const at = named.length > 0 ? named : [...new Set(sources.map(({ target = '' }) => target))];
  const targets = at.map((target) => {
    const own = counted.filter(
      ({ source }) => named.length > 0 || (source.target ?? '') === target,
    );
    const times = repeat * (named.length > 0 ? each : Math.max(1, compare.length));
    const one = sum(
      own.map(({ source, usage }) =>
        costAt(prices, target, source.target === target ? usage : cold(usage)),
      ),
    );
    return { target, requests: own.length * times, usd: one === null ? null : one * times };
  });
  return {
    requests: countRuns(options),
    targets,
    usd: sum(targets.map(({ usd }) => usd)),
    guessed: counted.some(({ guessed }) => guessed),
  };
}

const targetOf = (setting: string) => (setting.startsWith('to=') ? [setting.slice(3)] : []);

/** The most that a bisection costs: each of its requests is at most the whole one, and a prompt that changes is in no cache. */
export function planBisection(
  source: ReplaySource,
  { to, budget }: { readonly to?: string | undefined; readonly budget: number },
  prices: Prices,
  protocols: Protocols,
): SpendPlan {
  const target = to ?? source.target ?? '';
  const { usage, guessed } = usageFor(source, protocols);
  const one = costAt(prices, target, cold(usage));
  const usd = one === null ? null : one * budget;
  return { requests: budget, targets: [{ target, requests: budget, usd }], usd, guessed };
}
