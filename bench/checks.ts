/** The separate checks, one after the other, on the targets that they say something about. */

import {
  enginesCost,
  freshMemory,
  manyStreams,
  PACED_STREAMS,
  pacedStreams,
  soak,
  stalledReader,
  workers,
} from './check-capacity.ts';
import { aborts, loopBlocks, startup } from './check-latency.ts';
import { agentSessions } from './check-sessions.ts';
import { idleSockets, pacedSockets } from './check-websocket.ts';
import { coresOf } from './children.ts';
import type { Generator } from './generator.ts';
import { startGenerator } from './generator.ts';
import type { Checks } from './goals.ts';
import type { Bench, Target, TargetName } from './target.ts';
import { isPeer, speaksGemini } from './targets.ts';

export interface CheckOptions {
  readonly checks: boolean;
  readonly soak: boolean;
  readonly sessions: boolean;
  /** Rounds of sessions. */
  readonly rounds: number;
  /** `client>upstream`; left out: all pairs. */
  readonly pairs?: readonly string[] | undefined;
  readonly quick: boolean;
}

const LARGE = 2_000_000;

type PerTarget<T> = Partial<Record<TargetName, T>>;

/** Runs what was asked for; a check that fails is reported and left out, the others go on. */
export async function runChecks(
  bench: Bench,
  generator: Generator,
  targets: readonly Target[],
  options: CheckOptions,
): Promise<Checks> {
  const found: Checks = {};
  // What recording, limits and tracing cost is read off the scenarios.
  const spared = (name: TargetName) =>
    ['direct', 'hopgate-recording', 'hopgate-limited', 'hopgate-traced'].includes(name) ||
    speaksGemini(name);
  const gateways = targets.filter(({ name }) => !isPeer(name) && !spared(name));
  const product = gateways.filter((target) => target.name.startsWith('hopgate'));
  const attempt = async (what: string, work: () => Promise<void>) => {
    const began = Date.now();
    try {
      await work();
      bench.say(`${what}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
    } catch (error) {
      bench.say(`!! CHECK FAILED ${what}: ${error instanceof Error ? error.message : error}`);
    }
  };
  const each = async <T>(
    what: string,
    on: readonly Target[],
    work: (target: Target) => Promise<T>,
  ): Promise<PerTarget<T>> => {
    const results: PerTarget<T> = {};
    for (const target of on) {
      await attempt(`${what}, ${target.name}`, async () => {
        results[target.name] = await work(target);
      });
    }
    return results;
  };

  if (options.checks) {
    const times = options.quick ? 5 : 15;
    if (product.length > 0) {
      await attempt('startup', async () => {
        found.startupMs = await startup(bench, times);
      });
      found.aborts = await each('aborts', product, (t) => aborts(bench, generator, t, times));
      found.workers = {};
      for (const count of options.quick ? [2] : [1, 2, 4]) {
        await attempt(`workers ${count}`, async () => {
          if (count > coresOf('gateway')) throw new Error(`it needs ${count} cores`);
          found.workers![count] = await workers(bench, generator, count);
        });
      }
      if (!options.quick) {
        await attempt('engines', async () => {
          found.engines = await enginesCost(bench, generator, 15);
        });
      }
      await attempt('WebSocket, paced', async () => {
        const paced = { streams: 500, rounds: options.quick ? 1 : 5 };
        found.sockets = {
          same: await pacedSockets(bench, 'openai-responses', paced),
          converting: await pacedSockets(bench, 'openai-chat', paced),
        };
      });
      await attempt('WebSocket, idle', async () => {
        found.idleSockets = await idleSockets(bench, 2000);
      });
    }
    const same = gateways.filter((target) => /^(relay|hopgate|hopgate-armed)$/.test(target.name));
    const pinger = startGenerator(`${bench.dir}/pinger.log`);
    await attempt('large requests', async () => {
      found.blocks = await loopBlocks(generator, pinger, same, LARGE, options.quick ? 2 : 6);
    });
    await pinger.child.stop();
    if (!options.quick) {
      const paced = same.filter(({ name }) => name !== 'hopgate-armed');
      found.paced = await each('10,000 paced streams', paced, (target) =>
        pacedStreams(generator, target, PACED_STREAMS),
      );
    }
    found.memory = await each('memory', product, ({ name }) => freshMemory(bench, generator, name));
    const held = options.quick ? product.slice(0, 1) : product;
    found.many = await each('many streams', held, (target) => manyStreams(generator, target, 600));
    found.stalled = await each('stalled reader', options.quick ? held : gateways, (target) =>
      stalledReader(generator, target),
    );
  }
  if (options.sessions) {
    const pinger = startGenerator(`${bench.dir}/session-pinger.log`);
    await attempt('sessions', async () => {
      const { rounds, pairs, quick } = options;
      found.sessions = await agentSessions(bench, pinger, { rounds, pairs, memory: !quick });
    });
    await pinger.child.stop();
  }
  if (options.soak) {
    const long = gateways.filter((t) => t.name !== 'nginx' && t.name !== 'hopgate-armed');
    found.soak = await each('soak', long, (target) => soak(generator, target, 100_000, 1000));
  }
  return found;
}
