/** The goals of the product, each with the measurement that decides it. */

import type {
  EnginesCost,
  FreshMemory,
  ManyStreams,
  PacedStreams,
  Soak,
  Workers,
} from './check-capacity.ts';
import type { AbortTimes, Block } from './check-latency.ts';
import type { PairCost, Sessions } from './check-sessions.ts';
import type { IdleSockets, PacedSockets } from './check-websocket.ts';
import { type Cell, faults, medianOf, medianRatio, type Rounds } from './rounds.ts';
import type { TargetName } from './target.ts';

/** Results of the separate checks; what did not run is absent. */
export interface Checks {
  startupMs?: number;
  aborts?: Partial<Record<TargetName, AbortTimes>>;
  blocks?: Partial<Record<TargetName, Block>>;
  many?: Partial<Record<TargetName, ManyStreams>>;
  memory?: Partial<Record<TargetName, FreshMemory>>;
  stalled?: Partial<Record<TargetName, number>>;
  /** By their number. */
  workers?: Record<number, Workers>;
  engines?: EnginesCost;
  paced?: Partial<Record<TargetName, PacedStreams>>;
  sockets?: { readonly same: PacedSockets; readonly converting: PacedSockets };
  idleSockets?: IdleSockets;
  soak?: Partial<Record<TargetName, Soak>>;
  sessions?: Sessions;
}

export interface Verdict {
  readonly goal: string;
  readonly must: string;
  readonly aim: string;
  readonly measured: string;
  /** undefined: not measured in this run. */
  readonly pass: boolean | undefined;
}

type Limit = { readonly atMost: number } | { readonly atLeast: number };

const shown = (value: number, unit: string) =>
  `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)}${unit}`;

function limitText(limit: Limit, unit: string): string {
  return 'atMost' in limit ? `≤ ${limit.atMost}${unit}` : `≥ ${limit.atLeast}${unit}`;
}

function judge(
  goal: string,
  limit: Limit,
  aim: string,
  unit: string,
  value: number | undefined,
  more = '',
): Verdict {
  const known = value !== undefined && !Number.isNaN(value);
  const pass = known
    ? 'atMost' in limit
      ? value <= limit.atMost
      : value >= limit.atLeast
    : undefined;
  const measured = known ? shown(value, unit) + (more === '' ? '' : `; ${more}`) : 'not measured';
  return { goal, must: limitText(limit, unit), aim, measured, pass };
}

const worse = (a: number, b: number) =>
  Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.max(a, b);
const CONVERTING = ['hopgate-m2c', 'hopgate-c2m'] as const;

function cpuGoals(cells: readonly Cell[]): Verdict[] {
  const cpu = (scenario: Cell['scenario'], target: TargetName) =>
    medianRatio(cells, scenario, target, 'relay');
  const converting = (value: (t: TargetName) => number) => {
    const [a, b] = CONVERTING.map(value);
    return { value: worse(a!, b!), more: `m2c ${a!.toFixed(2)}, c2m ${b!.toFixed(2)}` };
  };
  const small = converting((target) => cpu('J50', target));
  const streams = converting((target) => cpu('S50', target));
  const prompts = converting((target) => cpu('T8', target));
  const paced = converting((target) => cpu('P500', target));
  const bursts = converting((t) => medianOf(cells, 'B50', t, (c) => c.cpu));
  const times = converting((target) => cpu('B50', target));
  const late = medianRatio(cells, 'J1', 'hopgate', 'relay', (c) => c.result.latency.p99);
  return [
    judge(
      'Same protocol, 1 KB JSON (J50): CPU per request, × relay',
      { atMost: 1.4 },
      '1.15',
      '×',
      cpu('J50', 'hopgate'),
    ),
    judge('… converting', { atMost: 2 }, '1.6', '×', small.value, small.more),
    judge('… at one connection (J1): p99, × relay’s', { atMost: 1.3 }, '1.0', '×', late),
    judge(
      'Prompts of 100,000 tokens (T8): CPU per request, × relay',
      { atMost: 2 },
      '1.4',
      '×',
      cpu('T8', 'hopgate'),
    ),
    judge('… converting', { atMost: 3 }, '2', '×', prompts.value, prompts.more),
    judge('J50 with tools declared', { atMost: 1.4 }, '1.2', '×', cpu('J50', 'hopgate-armed')),
    judge(
      'Same protocol, 100-event streams (S50): CPU per stream, × relay',
      { atMost: 0.95 },
      '0.7',
      '×',
      cpu('S50', 'hopgate'),
    ),
    judge('… converting', { atMost: 1.7 }, '1.3', '×', streams.value, streams.more),
    judge('S50 with tools declared', { atMost: 1.4 }, '1.15', '×', cpu('S50', 'hopgate-armed')),
    judge(
      'Same protocol, 500 paced streams (P500): CPU per event, × relay, nothing to look for',
      { atMost: 1.15 },
      '1.05',
      '×',
      cpu('P500', 'hopgate'),
    ),
    judge('… with tools declared', { atMost: 1.3 }, '1.15', '×', cpu('P500', 'hopgate-armed')),
    judge(
      'Converting, 500 paced streams (P500): CPU per event, × relay',
      { atMost: 1.5 },
      '1.3',
      '×',
      paced.value,
      paced.more,
    ),
    judge(
      'Same protocol, bursts (B50): CPU per event, × relay',
      { atMost: 1.8 },
      '1.5',
      '×',
      cpu('B50', 'hopgate'),
    ),
    judge('… converting', { atMost: 5 }, '3.5', '×', times.value, times.more),
    judge(
      'Converting, bursts (B50): CPU per event',
      { atMost: 2 },
      '0.9',
      ' µs',
      bursts.value,
      bursts.more,
    ),
  ];
}

/** What teams switch on, beside the same without it. */
function operationsGoals(cells: readonly Cell[]): Verdict[] {
  const against = (target: TargetName) => {
    const [whole, streams] = (['J50', 'S50'] as const).map((scenario) =>
      medianRatio(cells, scenario, target, 'hopgate'),
    );
    return [
      worse(whole!, streams!),
      `J50 ${whole!.toFixed(2)}, S50 ${streams!.toFixed(2)}`,
    ] as const;
  };
  return [
    judge(
      'Seven limits and budgets of a key, prices: CPU, × the same without',
      { atMost: 1.05 },
      '1.03',
      '×',
      ...against('hopgate-limited'),
    ),
    judge(
      'Every tenth exchange traced, metrics sent: CPU, × the same without',
      { atMost: 1.1 },
      '1.05',
      '×',
      ...against('hopgate-traced'),
    ),
  ];
}

function pacedGoals(cells: readonly Cell[]): Verdict[] {
  const all = ['hopgate', 'hopgate-armed', ...CONVERTING] as const;
  const present = all.filter((t) => cells.some((c) => c.target === t && c.scenario === 'P500'));
  const lost = present.map((t) => {
    const found = faults(cells, 'P500', t);
    return found.lost + found.unfinished + found.errors.length;
  });
  const added = present.map((target) => {
    const own = medianOf(cells, 'P500', target, (c) => c.result.delay.p50);
    return (own - medianOf(cells, 'P500', 'direct', (c) => c.result.delay.p50)) / 1000;
  });
  const each = present.map((t, i) => `${t} ${added[i]!.toFixed(2)}`).join(', ');
  const total = present.length === 0 ? undefined : lost.reduce((sum, n) => sum + n, 0);
  return [
    judge(
      '25,000 events/s over 500 streams: events lost, streams failed',
      { atMost: 0 },
      '0',
      '',
      total,
    ),
    judge(
      '… added delay of an event, p50',
      { atMost: 0.7 },
      '0.3',
      ' ms',
      added.length === 0 ? undefined : Math.max(...added),
      each,
    ),
  ];
}

function peerGoals(cells: readonly Cell[]): Verdict[] {
  const against = (scenario: Cell['scenario'], ours: TargetName, theirs: TargetName) =>
    medianRatio(cells, scenario, ours, theirs, (c) => c.rate);
  const less = medianRatio(cells, 'B1', 'portkey-conv', 'hopgate-c2m');
  const ccr = medianRatio(cells, 'B1', 'ccr-conv', 'hopgate-m2c');
  return [
    judge(
      'Against Portkey, same protocol: requests/s (J50)',
      { atLeast: 20 },
      '35',
      '×',
      against('J50', 'hopgate', 'portkey'),
    ),
    judge(
      'Against Portkey, same protocol: streams/s (S50)',
      { atLeast: 10 },
      '20',
      '×',
      against('S50', 'hopgate', 'portkey'),
    ),
    judge(
      'Against Portkey, converting: CPU per event (B1)',
      { atLeast: 10 },
      '25',
      '× less',
      less,
      Number.isNaN(ccr) ? '' : `against CCR ${ccr.toFixed(1)}×`,
    ),
  ];
}

function socketGoals({ sockets, idleSockets }: Checks): Verdict[] {
  const costs = ({ sse, websocket }: PacedSockets) =>
    `SSE ${sse.toFixed(1)}, WebSocket ${websocket.toFixed(1)} µs`;
  return [
    judge(
      'WebSocket, 500 paced streams: CPU per event, of that over SSE',
      { atMost: 1.2 },
      '1.0',
      '×',
      sockets && Math.max(sockets.same.ratio, sockets.converting.ratio),
      sockets && `same protocol: ${costs(sockets.same)}; onto Chat: ${costs(sockets.converting)}`,
    ),
    judge(
      '2000 idle WebSockets: memory of each',
      { atMost: 32 },
      '10',
      ' KB',
      idleSockets?.kilobytes,
      idleSockets && `${idleSockets.cpu.toFixed(2)} µs of CPU a second each`,
    ),
  ];
}

function checkGoals(checks: Checks): Verdict[] {
  const { blocks, aborts, engines } = checks;
  const { 1: one, 2: workers, 4: four } = checks.workers ?? {};
  const paced = Object.entries(checks.paced ?? {});
  const base = blocks?.relay?.p50 ?? Number.NaN;
  const block = (target: TargetName) => {
    const own = blocks?.[target];
    return own === undefined ? undefined : Math.max(0, own.p50 - base);
  };
  const told = (target: TargetName) => {
    const own = blocks?.[target];
    return own === undefined
      ? ''
      : `waits: relay ${base.toFixed(1)}, here ${own.p50.toFixed(1)} ms`;
  };
  const ours = ['hopgate', 'hopgate-armed', ...CONVERTING] as const;
  const most = (values: readonly (number | undefined)[]) => {
    const found = values.filter((v) => v !== undefined);
    return found.length === 0 ? undefined : Math.max(...found);
  };
  const phases = Object.values(aborts ?? {}).flatMap((a) => [a.beforeHeaders, a.midStream]);
  const unseen = phases.reduce((sum, phase) => sum + phase.unseen, 0);
  const many = Object.entries(checks.many ?? {});
  const missing = many.map(([, m]) => m.asked - m.completed);
  const soaks = Object.entries(checks.soak ?? {});
  return [
    judge(
      '2 MB same-protocol request: event loop blocked, added to the relay',
      { atMost: 1 },
      '',
      ' ms',
      block('hopgate'),
      told('hopgate'),
    ),
    judge(
      '… with tools declared',
      { atMost: 10 },
      '',
      ' ms',
      block('hopgate-armed'),
      told('hopgate-armed'),
    ),
    judge(
      'Resident memory, idle',
      { atMost: 60 },
      '45',
      ' MB',
      most(ours.map((t) => checks.memory?.[t]?.idle)),
    ),
    judge(
      'Resident memory, 500 streams',
      { atMost: 110 },
      '80',
      ' MB',
      most(ours.map((t) => checks.memory?.[t]?.streams500)),
    ),
    judge(
      'Stalled reader of a 1 GB stream: growth',
      { atMost: 32 },
      '',
      ' MB',
      most(ours.map((t) => checks.stalled?.[t])),
    ),
    judge(
      'Soak: growth of what stays, after warm-up',
      { atMost: 10 },
      'flat',
      ' MB',
      most(soaks.map(([, s]) => s.growth)),
      soaks
        .map(
          ([t, s]) =>
            `${t} ${s.requests} requests, ${s.aborted} aborts: ${s.growth.toFixed(1)} (${s.atRest.at(-1)?.toFixed(0)}, under load up to ${s.peak.toFixed(0)})`,
        )
        .join('; '),
    ),
    judge('Binary, start to first answer', { atMost: 60 }, '35', ' ms', checks.startupMs),
    judge(
      'Client gone to upstream closed, worst of all',
      { atMost: 50 },
      '10',
      ' ms',
      phases.length === 0
        ? undefined
        : unseen > 0
          ? Number.POSITIVE_INFINITY
          : Math.max(...phases.map((p) => p.max)),
      phases.length === 0
        ? ''
        : `median ${Math.max(...phases.map((p) => p.p50)).toFixed(1)} ms, ${unseen} not seen`,
    ),
    judge(
      'More than 256 streams at once: not completed',
      { atMost: 0 },
      '0',
      '',
      most(missing),
      many
        .map(
          ([t, m]) =>
            `${t} ${m.completed} of ${m.asked}, slowest start ${m.slowestStart.toFixed(0)} ms`,
        )
        .join('; '),
    ),
    judge(
      '10,000 paced streams, an event every 200 ms: delay of an event, p99',
      { atMost: 50 },
      '15',
      ' ms',
      checks.paced?.hopgate?.delayP99,
      paced
        .map(
          ([t, p]) =>
            `${t} ${p.eventRate.toFixed(0)} events/s, p50 ${p.delayP50.toFixed(1)} ms, ${p.faults} faults, ${p.residentPeak.toFixed(0)} MB`,
        )
        .join('; '),
    ),
    judge(
      'One replica with engines and budgets: requests/s, × embedded',
      { atLeast: 0.9 },
      '1.0',
      '×',
      engines?.rate,
      engines &&
        `CPU of the gateway ${engines.cpu.toFixed(1)}, embedded ${engines.embeddedCpu.toFixed(1)} µs`,
    ),
    judge(
      '--workers 4 on four cores: requests/s, × one process',
      { atLeast: 3.4 },
      '3.8',
      '×',
      one && four && four.rate / one.rate,
      [one, workers, four]
        .flatMap((w) => (w === undefined ? [] : [`${w.rate.toFixed(0)} req/s`]))
        .join(', '),
    ),
    judge(
      '--workers 2: processes at work',
      { atLeast: 2 },
      '2',
      '',
      workers === undefined
        ? undefined
        : workers.errors > 0
          ? 0
          : workers.shares.filter((share) => share > 0.1).length,
      workers === undefined
        ? ''
        : `shares of CPU ${workers.shares.map((s) => s.toFixed(2)).join(' / ')}, ${workers.rate.toFixed(0)} req/s, ${workers.errors} errors`,
    ),
  ];
}

/** The dearest pair, and all of them in words. */
function dearest(pairs: readonly PairCost[]) {
  const told = pairs.map(
    ({ client, upstream, ratio, turn, late }) =>
      `${client}→${upstream} ${ratio.toFixed(2)} (${turn.toFixed(2)}, late ${late.toFixed(2)} ms)`,
  );
  const ratios = pairs.map(({ ratio }) => ratio);
  return { value: pairs.length > 0 ? Math.max(...ratios) : undefined, told: told.join(', ') };
}

function sessionGoals({ sessions }: Checks): Verdict[] {
  const pairs = sessions?.pairs ?? [];
  const same = dearest(pairs.filter(({ client, upstream }) => client === upstream));
  const converting = dearest(pairs.filter(({ client, upstream }) => client !== upstream));
  const relay =
    sessions &&
    `relay ${sessions.relay.turn.toFixed(2)}, late ${sessions.relay.late.toFixed(2)} ms; `;
  return [
    judge(
      'Session of 60 turns to 1 MB, same protocol, 40 tools: CPU, × relay',
      { atMost: 2 },
      '1.4',
      '×',
      same.value,
      `${relay}${same.told}`,
    ),
    judge('… converting', { atMost: 3 }, '2', '×', converting.value, converting.told),
    judge(
      'Turn of 1 MB in a known session: event loop blocked, added to the relay',
      { atMost: 2 },
      '1',
      ' ms',
      sessions?.stall.known,
    ),
    judge('… at first sight', { atMost: 8 }, '5', ' ms', sessions?.stall.first),
    judge(
      '200 sessions of 1 MB: memory, same protocol',
      { atMost: 400 },
      '250',
      ' MB',
      sessions?.memory.same,
    ),
    judge('… converting', { atMost: 400 }, '250', ' MB', sessions?.memory.converting),
  ];
}

/** Every goal with its verdict, in the order of the report. */
export function verdicts(rounds: Rounds, checks: Checks): Verdict[] {
  const { cells } = rounds;
  return [
    ...cpuGoals(cells),
    ...operationsGoals(cells),
    ...pacedGoals(cells),
    ...peerGoals(cells),
    ...checkGoals(checks),
    ...socketGoals(checks),
    ...sessionGoals(checks),
  ];
}
