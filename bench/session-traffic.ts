/** How a benchmark sends agents' sessions: addresses of the protocols, one turn, whole sessions, and the warm-up before any counts. */

import {
  AgentSession,
  SESSION_DIALECTS,
  SESSION_TURNS,
  type SessionDialect,
} from './agent-session.ts';
import { sleep } from './clock.ts';
import { cpuBetween, cpuSample } from './process-usage.ts';
import { CLIENT_HEADERS, type ProductOptions } from './product.ts';

export const SESSION_UPSTREAMS: Readonly<Record<SessionDialect, ProductOptions['upstream']>> = {
  messages: 'anthropic-messages',
  chat: 'openai-chat',
  responses: 'openai-responses',
  gemini: 'google-gemini',
};

export const SESSION_MODEL = 'json-1k';
const PATHS: Readonly<Record<SessionDialect, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  gemini: `/v1beta/models/${SESSION_MODEL}:generateContent`,
};

/** The process whose CPU counts, and where it listens. */
export interface Server {
  readonly pid: number;
  readonly port: number;
}

/** What clients speak, onto what. */
export interface SessionPair {
  readonly client: SessionDialect;
  readonly upstream: SessionDialect;
}

export const pairName = ({ client, upstream }: SessionPair) => `${client}>${upstream}`;

const ALL_PAIRS: readonly SessionPair[] = SESSION_DIALECTS.flatMap((client) =>
  SESSION_DIALECTS.map((upstream) => ({ client, upstream })),
);

/** The pairs of these names, `client>upstream`, or all sixteen. @throws on a name that is none of theirs */
export function sessionPairs(names?: readonly string[]): readonly SessionPair[] {
  return (
    names?.map((name) => {
      const pair = ALL_PAIRS.find((one) => pairName(one) === name);
      if (pair !== undefined) return pair;
      throw new Error(`unknown pair: ${name} (known: ${ALL_PAIRS.map(pairName).join(', ')})`);
    }) ?? ALL_PAIRS
  );
}

/** @throws when the answer is an error */
export async function sendTurn(port: number, dialect: SessionDialect, body: string): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}${PATHS[dialect]}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...CLIENT_HEADERS },
    body,
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${text.slice(0, 300)}`);
}

let seed = 1;
/** A session that no other of this process is like. */
export const newSession = (dialect: SessionDialect, turns = SESSION_TURNS) =>
  new AgentSession(dialect, seed++, turns);

/** The bodies of a whole session. */
export const sessionBodies = (session: AgentSession): string[] =>
  Array.from({ length: SESSION_TURNS }, (_, turn) => session.body(turn, SESSION_MODEL));

/** So long a server is looked at behind a session's last answer. */
export const REST_MS = 60;

/** Milliseconds of CPU of a session. */
export interface Spent {
  readonly turns: readonly number[];
  /** What was done within {@link REST_MS} behind the last answer. */
  readonly rest: number;
  /** All turns, and the last ten, each with the rest. */
  readonly all: number;
  readonly late: number;
  /** Those of the whole that the compilers' threads spent. */
  readonly compiling: number;
}

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

/**
 * Sends the turns one after the other. What a server does behind an answer counts with the next turn: a pause
 * after each would add what a process costs that comes back from rest.
 */
export async function runSession({ pid, port }: Server, dialect: SessionDialect): Promise<Spent> {
  // Made beforehand, so that making them takes no CPU from the turns.
  const bodies = sessionBodies(newSession(dialect));
  await sleep(20);
  const samples = [cpuSample(pid)];
  for (const body of bodies) {
    await sendTurn(port, dialect, body);
    samples.push(cpuSample(pid));
  }
  await sleep(REST_MS);
  const after = cpuSample(pid);
  const turns = bodies.map((_, turn) => cpuBetween(samples[turn]!, samples[turn + 1]!) / 1e6);
  const rest = cpuBetween(samples.at(-1)!, after) / 1e6;
  return {
    turns,
    rest,
    all: sum(turns) + rest,
    late: sum(turns.slice(-10)) + rest,
    compiling: cpuBetween(samples[0]!, after, COMPILER) / 1e6,
  };
}

const COMPILER = 'JITWorker';
const CALM_SHARE = 0.04;
const MAX_WARM_UPS = 40;

/** Runs sessions until in two of them hardly anything was compiled. */
export async function warmUp(server: Server, dialect: SessionDialect): Promise<void> {
  for (let run = 0, calm = 0; run < MAX_WARM_UPS && calm < 2; run++) {
    const { all, compiling } = await runSession(server, dialect);
    calm = compiling < all * CALM_SHARE ? calm + 1 : 0;
  }
}
