/** `bun bench/turns.ts --before BINARY`: CPU of each turn of agents' sessions, through the bare relay, an older program and this one. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { SessionDialect } from './agent-session.ts';
import { stopChildren, stopOnSignals } from './children.ts';
import { BINARY, startProduct, versionOf } from './product.ts';
import { machineName, table } from './report.ts';
import {
  newSession,
  pairName,
  REST_MS,
  runSession,
  SESSION_UPSTREAMS,
  type Server,
  type SessionPair,
  type Spent,
  sessionBodies,
  sessionPairs,
  warmUp,
} from './session-traffic.ts';
import { shuffled } from './statistics.ts';
import type { Bench } from './target.ts';
import { startMock, startTargets } from './targets.ts';
import {
  byContender,
  type Contender,
  mean,
  meanTurns,
  PANEL_HEAD,
  type Panel,
  panelRows,
  turnChart,
} from './turn-chart.ts';

const PICTURE = new URL('./turns.svg', import.meta.url).pathname;

const HELP = `bun bench/turns.ts --before BINARY [options]

  --before PATH    an older program to compare with; it must speak the protocols of the pairs
  --pairs NAMES    what clients speak, onto what, with commas (messages>messages,messages>chat)
  --sessions N     sessions of each line, after the warm-up (10)
  --picture PATH   where the picture goes (bench/turns.svg)
  --json           the mean of every turn as JSON instead of the table
`;

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    pairs: { type: 'string', default: 'messages>messages,messages>chat' },
    sessions: { type: 'string', default: '10' },
    picture: { type: 'string', default: PICTURE },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** One line of the chart; the relay's is the same for all pairs of a client. */
interface Line {
  readonly name: string;
  readonly server: Server;
  readonly client: SessionDialect;
  readonly sessions: Spent[];
}

const lineName = (contender: Contender, pair: SessionPair) =>
  contender === 'relay' ? `relay, ${pair.client}` : `${contender}, ${pairName(pair)}`;

/** Starts the relay once, and each program once for each upstream. */
async function startLines(
  bench: Bench,
  before: string,
  pairs: readonly SessionPair[],
): Promise<Map<string, Line>> {
  const { targets } = await startTargets(['relay'], bench);
  const relay = targets[0];
  if (relay === undefined) throw new Error('the relay does not start');
  const servers = new Map<string, Server>();
  const lines = new Map<string, Line>();
  const add = (contender: Contender, pair: SessionPair, server: Server) => {
    const name = lineName(contender, pair);
    if (!lines.has(name)) lines.set(name, { name, server, client: pair.client, sessions: [] });
  };
  for (const pair of pairs) {
    add('relay', pair, relay);
    for (const [contender, binary] of [
      ['before', before],
      ['now', BINARY],
    ] as const) {
      const name = `${contender}-${pair.upstream}`;
      let server = servers.get(name);
      if (server === undefined) {
        const upstream = SESSION_UPSTREAMS[pair.upstream];
        const { child, port } = await startProduct(bench, { upstream, name, binary });
        server = { pid: child.pid, port };
        servers.set(name, server);
      }
      add(contender, pair, server);
    }
  }
  return lines;
}

const TITLES: Readonly<Record<SessionDialect, string>> = {
  messages: 'Messages',
  chat: 'Chat',
  responses: 'Responses',
  gemini: 'Gemini',
};

function panelOf(pair: SessionPair, lines: ReadonlyMap<string, Line>): Panel {
  const of = (contender: Contender) => lines.get(lineName(contender, pair))!.sessions;
  return {
    title: `${TITLES[pair.client]} onto ${TITLES[pair.upstream]}`,
    kilobytes: sessionBodies(newSession(pair.client)).map((body) => Buffer.byteLength(body) / 1000),
    lines: byContender((name) => meanTurns(of(name).map((session) => session.turns))),
    rest: byContender((name) => mean(of(name).map((session) => session.rest))),
  };
}

/** The commit in what a program calls itself. */
const commitOf = (binary: string) => /\((\w{7})\w*/.exec(versionOf(binary))?.[1] ?? 'unknown';

async function main(dir: string): Promise<void> {
  const { before } = values;
  if (before === undefined) throw new Error(`--before is missing\n\n${HELP}`);
  const rounds = Number(values.sessions);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--sessions wants a whole number');
  const pairs = sessionPairs(values.pairs.split(',').map((name) => name.trim()));
  const mock = await startMock(dir);
  const say = (line: string) => console.error(line);
  const bench: Bench = { mockPort: mock.port, mockPid: mock.pid, dir, say };
  const lines = await startLines(bench, before, pairs);
  for (const { name, server, client } of lines.values()) {
    await warmUp(server, client);
    say(`warm: ${name}`);
  }
  for (let round = 0; round < rounds; round++) {
    for (const line of shuffled([...lines.values()])) {
      line.sessions.push(await runSession(line.server, line.client));
    }
    say(`sessions, round ${round + 1} of ${rounds}`);
  }
  const panels = pairs.map((pair) => panelOf(pair, lines));
  const date = new Date().toISOString().slice(0, 10);
  const [old, now] = [commitOf(before), commitOf(BINARY)];
  const about = `Milliseconds of CPU of each turn of an agent's session, through the bare relay, the commit ${old} (before) and ${now} (now): ${panels.map(({ title }) => title).join(', ')}.`;
  const foot = `CPU of all threads, mean of ${rounds} sessions, over the turn and the KB of its request; before: ${old}, now: ${now}; ${date}`;
  writeFileSync(values.picture, turnChart(panels, about, foot));
  say(`written to ${values.picture}`);
  if (values.json) {
    console.log(JSON.stringify({ date, before: old, now, sessions: rounds, panels }));
    return;
  }
  console.log(`- Machine: ${machineName()}; mock, client and gateways share the cores
- From one answer to the next; "rest": within ${REST_MS} ms behind the last one
- ${date}, before: \`${old}\`, now: \`${now}\`, Bun ${Bun.version}
- Command: \`bun bench/turns.ts --before hopgate-${old} --pairs "${values.pairs}" --sessions ${rounds}\``);
  for (const panel of panels)
    console.log(`\n### ${panel.title}\n\n${table(PANEL_HEAD, panelRows(panel))}`);
}

stopOnSignals();

if (values.help) {
  console.log(HELP);
} else {
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-bench-turns-'));
  try {
    await main(dir);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  } finally {
    await stopChildren();
    rmSync(dir, { recursive: true, force: true });
  }
  process.exit();
}
