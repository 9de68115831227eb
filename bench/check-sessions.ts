/** Checks of agents' sessions that grow to 1 MB: CPU of a turn beside the bare relay, the longest stall, memory of many sessions. */

import { type AgentSession, SESSION_TURNS, type SessionDialect } from './agent-session.ts';
import { singlePlan } from './check-latency.ts';
import { nanoseconds, sleep } from './clock.ts';
import type { Generator } from './generator.ts';
import { residentMegabytes } from './process-usage.ts';
import { startProduct } from './product.ts';
import {
  newSession,
  pairName,
  runSession,
  SESSION_MODEL,
  SESSION_UPSTREAMS,
  type Server,
  type SessionPair,
  type Spent,
  sendTurn,
  sessionPairs,
  warmUp,
} from './session-traffic.ts';
import { median, shuffled } from './statistics.ts';
import type { Bench } from './target.ts';
import { startTargets } from './targets.ts';

/** What a pair of protocols costs. */
export interface PairCost extends SessionPair {
  /** Milliseconds of CPU of a turn, the mean over a session; of each of the last ten turns. */
  readonly turn: number;
  readonly late: number;
  /** CPU of a session by that of the relay in the same round. */
  readonly ratio: number;
}

export interface Sessions {
  readonly relay: { readonly turn: number; readonly late: number };
  readonly pairs: readonly PairCost[];
  /** Milliseconds that a small request waited while a turn of 1 MB went through: medians, that of the relay taken off. */
  readonly stall: { readonly known: number; readonly first: number };
  /** Megabytes that 200 sessions of 1 MB add. */
  readonly memory: { readonly same: number; readonly converting: number };
}

/** The longest wait of a small request while `work` runs, milliseconds: the median over `times`. */
async function waits(
  pinger: Generator,
  server: Server,
  times: number,
  work: (time: number) => Promise<void>,
): Promise<number> {
  const entrance = {
    port: server.port,
    dialect: 'chat' as const,
    headers: {},
    model: (m: string) => m,
  };
  const ping = {
    ...singlePlan(entrance, SESSION_MODEL, false),
    path: '/healthz',
    body: '',
    maxRequests: 1_000_000,
    log: true,
    durationMs: 300 + times * 60,
  };
  const pinging = pinger.run(ping);
  await sleep(200);
  const windows: [number, number][] = [];
  for (let time = 0; time < times; time++) {
    const from = nanoseconds();
    await work(time);
    windows.push([from, nanoseconds()]);
    await sleep(25);
  }
  const log = (await pinging).log ?? [];
  const longest = windows.map(([from, to]) => {
    let worst = 0;
    for (let i = 0; i + 1 < log.length; i += 2) {
      if (log[i]! < to && log[i]! + log[i + 1]! * 1000 > from) worst = Math.max(worst, log[i + 1]!);
    }
    return worst / 1000;
  });
  return median(longest);
}

/** Longest waits for turns of 1 MB: of sessions that are known, and of others. */
async function stalls(
  pinger: Generator,
  server: Server,
): Promise<{ known: number; first: number }> {
  const times = 10;
  const known = newSession('messages', SESSION_TURNS + times);
  const grown = Array.from({ length: times + 1 }, (_, i) =>
    known.body(SESSION_TURNS - 1 + i, SESSION_MODEL),
  );
  const fresh = Array.from({ length: times }, () =>
    newSession('messages').body(SESSION_TURNS - 1, SESSION_MODEL),
  );
  await sendTurn(server.port, 'messages', grown[0]!);
  return {
    known: await waits(pinger, server, times, (i) =>
      sendTurn(server.port, 'messages', grown[i + 1]!),
    ),
    first: await waits(pinger, server, times, (i) => sendTurn(server.port, 'messages', fresh[i]!)),
  };
}

const MANY = 200;

/** Megabytes that so many sessions of 1 MB add to a process that has served one already. */
async function memoryOf(
  bench: Bench,
  dialect: SessionDialect,
  upstream: SessionDialect,
): Promise<number> {
  const { child, port } = await startProduct(bench, {
    upstream: SESSION_UPSTREAMS[upstream],
    name: `many-${dialect}-${upstream}`,
  });
  try {
    const turn = async (session: AgentSession, at: number) =>
      sendTurn(port, dialect, session.body(at, SESSION_MODEL));
    await turn(newSession(dialect), 0);
    await sleep(500);
    const before = residentMegabytes(child.pid);
    for (let i = 0; i < MANY; i++) {
      const session = newSession(dialect);
      await turn(session, SESSION_TURNS - 2);
      await turn(session, SESSION_TURNS - 1);
    }
    await sleep(15_000);
    return residentMegabytes(child.pid) - before;
  } finally {
    await child.stop();
  }
}

export interface SessionOptions {
  readonly rounds: number;
  /** `client>upstream`; left out: all sixteen. */
  readonly pairs?: readonly string[];
  readonly memory: boolean;
}

/** Sessions of every client onto every upstream, in rounds of another order each time. */
export async function agentSessions(
  bench: Bench,
  pinger: Generator,
  { rounds, pairs, memory }: SessionOptions,
): Promise<Sessions> {
  const { targets } = await startTargets(['relay'], bench);
  const relay = targets[0];
  if (relay === undefined) throw new Error('the relay does not start');
  const chosen = sessionPairs(pairs);
  const gateways = new Map<SessionDialect, Server & { stop(): Promise<void> }>();
  for (const upstream of new Set(chosen.map((pair) => pair.upstream))) {
    const name = `sessions-${upstream}`;
    const { child, port } = await startProduct(bench, {
      upstream: SESSION_UPSTREAMS[upstream],
      name,
    });
    gateways.set(upstream, { pid: child.pid, port, stop: () => child.stop() });
  }
  const spent = new Map<string, Spent[]>();
  const relayed: Pick<Spent, 'all' | 'late'>[] = [];
  await warmUp(relay, 'chat');
  for (const { client, upstream } of chosen) await warmUp(gateways.get(upstream)!, client);
  for (let round = 0; round < rounds; round++) {
    const one = await runSession(relay, 'chat');
    for (const pair of shuffled(chosen)) {
      const cost = await runSession(gateways.get(pair.upstream)!, pair.client);
      spent.set(pairName(pair), [...(spent.get(pairName(pair)) ?? []), cost]);
    }
    const other = await runSession(relay, 'chat');
    relayed.push({ all: (one.all + other.all) / 2, late: (one.late + other.late) / 2 });
    bench.say(`sessions, round ${round + 1} of ${rounds}`);
  }
  const costs = chosen.map((pair) => {
    const runs = spent.get(pairName(pair))!;
    return {
      ...pair,
      turn: median(runs.map((run) => run.all)) / SESSION_TURNS,
      late: median(runs.map((run) => run.late)) / 10,
      ratio: median(runs.map((run, i) => run.all / relayed[i]!.all)),
    };
  });
  const base = await stalls(pinger, relay);
  const each = [];
  for (const gateway of gateways.values()) each.push(await stalls(pinger, gateway));
  for (const gateway of gateways.values()) await gateway.stop();
  return {
    relay: {
      turn: median(relayed.map((run) => run.all)) / SESSION_TURNS,
      late: median(relayed.map((run) => run.late)) / 10,
    },
    pairs: costs,
    stall: {
      known: Math.max(...each.map((stall) => stall.known - base.known)),
      first: Math.max(...each.map((stall) => stall.first - base.first)),
    },
    memory: memory
      ? {
          same: await memoryOf(bench, 'messages', 'messages'),
          converting: await memoryOf(bench, 'messages', 'chat'),
        }
      : { same: Number.NaN, converting: Number.NaN },
  };
}
