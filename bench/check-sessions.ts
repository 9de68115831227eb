/** Checks of agents' sessions that grow to 1 MB: CPU of a turn beside the bare relay, the longest stall, memory of many sessions. */

import {
  AgentSession,
  SESSION_DIALECTS,
  SESSION_TURNS,
  type SessionDialect,
} from './agent-session.ts';
import { singlePlan } from './check-latency.ts';
import { nanoseconds, sleep } from './clock.ts';
import type { Generator } from './generator.ts';
import { cpuBetween, cpuSample, residentMegabytes } from './process-usage.ts';
import { CLIENT_HEADERS, type ProductOptions, startProduct } from './product.ts';
import { median, shuffled } from './statistics.ts';
import type { Bench } from './target.ts';
import { startTargets } from './targets.ts';

type Upstream = ProductOptions['upstream'];

const UPSTREAMS: Readonly<Record<SessionDialect, Upstream>> = {
  messages: 'anthropic-messages',
  chat: 'openai-chat',
  responses: 'openai-responses',
  gemini: 'google-gemini',
};

const MODEL = 'json-1k';
const PATHS: Readonly<Record<SessionDialect, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  gemini: `/v1beta/models/${MODEL}:generateContent`,
};

interface Server {
  readonly pid: number;
  readonly port: number;
}

/** What a pair of protocols costs. */
export interface PairCost {
  readonly client: SessionDialect;
  readonly upstream: SessionDialect;
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

async function send(port: number, dialect: SessionDialect, body: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}${PATHS[dialect]}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...CLIENT_HEADERS },
    body,
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${text.slice(0, 300)}`);
}

interface Spent {
  /** Milliseconds of CPU of the whole session, and of its last ten turns. */
  readonly all: number;
  readonly late: number;
  /** Milliseconds of the whole that the compilers' threads spent. */
  readonly compiling: number;
}

async function runSession(
  { pid, port }: Server,
  session: AgentSession,
  dialect: SessionDialect,
): Promise<Spent> {
  const bodies = Array.from({ length: SESSION_TURNS }, (_, turn) => session.body(turn, MODEL));
  await sleep(20);
  const before = cpuSample(pid);
  let middle = before;
  for (const [turn, body] of bodies.entries()) {
    if (turn === SESSION_TURNS - 10) middle = cpuSample(pid);
    await send(port, dialect, body);
  }
  // What is done behind the answers counts.
  await sleep(60);
  const after = cpuSample(pid);
  return {
    all: cpuBetween(before, after) / 1e6,
    late: cpuBetween(middle, after) / 1e6,
    compiling: cpuBetween(before, after, COMPILER) / 1e6,
  };
}

const COMPILER = 'JITWorker';
const CALM_SHARE = 0.04;
const MOST_WARM_UPS = 40;

/** Runs sessions until in two of them hardly anything was compiled. */
async function warmUp(server: Server, dialect: SessionDialect): Promise<void> {
  for (let run = 0, calm = 0; run < MOST_WARM_UPS && calm < 2; run++) {
    const { all, compiling } = await runSession(server, newSession(dialect), dialect);
    calm = compiling < all * CALM_SHARE ? calm + 1 : 0;
  }
}

let seed = 1;
const newSession = (dialect: SessionDialect, turns = SESSION_TURNS) =>
  new AgentSession(dialect, seed++, turns);

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
    ...singlePlan(entrance, MODEL, false),
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
    known.body(SESSION_TURNS - 1 + i, MODEL),
  );
  const fresh = Array.from({ length: times }, () =>
    newSession('messages').body(SESSION_TURNS - 1, MODEL),
  );
  await send(server.port, 'messages', grown[0]!);
  return {
    known: await waits(pinger, server, times, (i) => send(server.port, 'messages', grown[i + 1]!)),
    first: await waits(pinger, server, times, (i) => send(server.port, 'messages', fresh[i]!)),
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
    upstream: UPSTREAMS[upstream],
    name: `many-${dialect}-${upstream}`,
  });
  try {
    const turn = async (session: AgentSession, at: number) =>
      send(port, dialect, session.body(at, MODEL));
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
  const chosen = SESSION_DIALECTS.flatMap((client) =>
    SESSION_DIALECTS.map((upstream) => ({ client, upstream })),
  ).filter(({ client, upstream }) => pairs?.includes(`${client}>${upstream}`) ?? true);
  const gateways = new Map<SessionDialect, Server & { stop(): Promise<void> }>();
  for (const upstream of new Set(chosen.map((pair) => pair.upstream))) {
    const name = `sessions-${upstream}`;
    const { child, port } = await startProduct(bench, { upstream: UPSTREAMS[upstream], name });
    gateways.set(upstream, { pid: child.pid, port, stop: () => child.stop() });
  }
  const spent = new Map<string, Spent[]>();
  const relayed: Spent[] = [];
  await warmUp(relay, 'chat');
  for (const { client, upstream } of chosen) await warmUp(gateways.get(upstream)!, client);
  for (let round = 0; round < rounds; round++) {
    const one = await runSession(relay, newSession('chat'), 'chat');
    for (const { client, upstream } of shuffled(chosen)) {
      const cost = await runSession(gateways.get(upstream)!, newSession(client), client);
      const key = `${client}>${upstream}`;
      spent.set(key, [...(spent.get(key) ?? []), cost]);
    }
    const other = await runSession(relay, newSession('chat'), 'chat');
    relayed.push({
      all: (one.all + other.all) / 2,
      late: (one.late + other.late) / 2,
      compiling: 0,
    });
    bench.say(`sessions, round ${round + 1} of ${rounds}`);
  }
  const costs = chosen.map(({ client, upstream }) => {
    const runs = spent.get(`${client}>${upstream}`)!;
    return {
      client,
      upstream,
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
