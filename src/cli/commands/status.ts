import { isObject, type Json } from '../../lib/json/json.ts';
import { objects } from '../../lib/json/typed-reads.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { type CommandSpec, type Invocation, JSON_OPTION } from '../command.ts';
import { describeSource, loadWithoutKeys } from '../load-config.ts';
import { askGateway, restsIn, runningExchanges } from '../running-gateway.ts';
import { reachableUrl } from '../served-models.ts';
import { type Columns, printTable, wrap } from '../terminal.ts';
import { millis } from './samples/units.ts';

export const STATUS: CommandSpec = {
  name: 'status',
  others: ['ps', 'info'],
  summary: 'show whether the gateway is running and which targets are available',
  description: [
    'Asks the gateway at the configured address. It lists the exchanges that run, the targets used since the gateway started and, with shared engines, their state and all live replicas. A target that cools down is not used until the time shown, because its vendor refused, failed or limited requests.',
  ],
  options: {
    json: JSON_OPTION,
  },
  examples: {
    'hopgate status': 'Shows whether the gateway is running and healthy.',
  },
  exits: {
    0: 'it is running and takes requests',
    1: 'the configuration cannot be used, or another program answers there',
    3: 'it is not running, or takes no requests at the moment',
  },
  run: runStatus,
};

/** What `--json` prints. */
interface Status {
  readonly running: boolean;
  readonly ready: boolean;
  readonly url: string;
  readonly config: string;
  readonly version?: string;
  /** Why it is not ready. */
  readonly reason?: string;
  readonly targets: readonly { readonly target: string; readonly state: string }[];
  /** Why there are none of them, and no engines: no key of the file may see them. */
  readonly hidden?: string;
  /** Those that run, the newest first. */
  readonly exchanges: readonly {
    readonly id: string;
    readonly model: string;
    readonly target: string;
    readonly running_ms: number;
  }[];
  /** With a shared database: the live ones. */
  readonly replicas?: readonly StatusReplica[];
  /** Those that are configured. */
  readonly engines?: readonly StatusEngine[];
}

interface StatusEngine {
  readonly engine: string;
  readonly state: string;
  readonly since: string;
  /** Why it is away. */
  readonly message?: string;
}

interface StatusReplica {
  readonly id: string;
  readonly host: string;
  readonly port?: number;
  readonly pid?: number;
  readonly version: string;
  readonly config: string;
  readonly started: string;
}

const HIDDEN =
  'Targets and engines are shown to an admin key, or to a key that sees all. The configuration has none in plain text: set auth.admin_keys, "sees: all" for a key of auth.keys, or "auth.metrics: keys".';

/** Running exchanges that are shown, the longest first. */
const MAX_RUNNING = 10;

async function runStatus(invocation: Invocation): Promise<number> {
  const { out, err, flag, io } = invocation;
  const config = await loadWithoutKeys(invocation);
  if (config === undefined) return 1;
  const { cache, database, objects } = config.engines;
  const hasEngines = cache !== undefined || database !== undefined || objects !== undefined;
  const ask = (path: string) => askGateway(config, io.fetch, path);
  const [about, readiness, health, running, engines] = await Promise.all([
    ask('/'),
    ask('/readyz'),
    ask('/health/targets'),
    runningExchanges(config, io.fetch),
    hasEngines ? ask('/health/engines') : undefined,
  ]);
  const url = reachableUrl(config.listen);
  if (about !== undefined && about.body?.name !== 'hopgate') {
    err.line(`hopgate: another program answers at ${url}.`);
    return 1;
  }
  const ready = readiness?.status === 200;
  const status: Status = {
    running: about !== undefined,
    ready,
    url,
    config: describeSource(config.source),
    ...(typeof about?.body?.version === 'string' && { version: about.body.version }),
    ...(typeof readiness?.body?.reason === 'string' && { reason: readiness.body.reason }),
    targets: targetsIn(health?.body?.targets),
    ...((health?.status === 401 || health?.status === 403) && { hidden: HIDDEN }),
    exchanges: running.map(({ id, model, target, time }) => ({
      id,
      model,
      target,
      running_ms: Math.max(0, Date.now() - time),
    })),
    ...(database !== undefined && { replicas: replicasIn(engines?.body?.replicas) }),
    ...(hasEngines && { engines: enginesIn(engines?.body?.engines) }),
  };
  if (flag('json')) out.line(JSON.stringify(status, null, 2));
  else print(invocation, status, restsIn(health?.body));
  return ready ? 0 : 3;
}

function print(
  { out }: Invocation,
  {
    running,
    ready,
    url,
    config,
    version,
    reason,
    targets,
    hidden,
    exchanges,
    replicas = [],
    engines = [],
  }: Status,
  rests: ReturnType<typeof restsIn>,
): void {
  if (!running) {
    out.line(out.paint('red', `No gateway answers at ${url}.`));
    out.line(`  configuration  ${config}`);
    const how = '"hopgate serve" starts one here, "hopgate service install" one in the background.';
    for (const line of wrap(how, out.width, 2)) out.line(line);
    return;
  }
  const state = ready ? out.paint('green', 'ready') : out.paint('yellow', reason ?? 'not ready');
  out.line(`hopgate ${printableLine(version ?? '', 40)} at ${url}: ${state}`);
  out.line(`  configuration  ${config}`);
  out.line(`  exchanges      ${url}/ui`);
  out.line(`  manual         ${url}/docs`);
  if (engines.length > 0) {
    out.line();
    printTable(out, engines, ENGINES, { spare: ['SINCE'] }, ({ state }) =>
      state === 'down' ? 'red' : undefined,
    );
  }
  if (replicas.length > 0) {
    out.line();
    printTable(out, replicas, REPLICAS, { spare: ['STARTED', 'CONFIGURATION'] });
  }
  if (exchanges.length > 0) {
    out.line();
    const rows = exchanges.toSorted((a, b) => b.running_ms - a.running_ms).slice(0, MAX_RUNNING);
    printTable(out, rows, RUNNING, { spare: ['MODEL'] });
    const more = exchanges.length - rows.length;
    if (more > 0) out.line(`and ${more} more: hopgate samples --status open`);
  }
  if (hidden !== undefined) {
    out.line();
    for (const line of wrap(hidden, out.width)) out.line(line);
  }
  if (targets.length === 0 && hidden !== undefined) return;
  out.line();
  // Models that a provider takes by a pattern are known once they were asked.
  if (targets.length === 0) {
    out.line('No target was asked yet; "hopgate doctor" tests them.');
    return;
  }
  const why = new Map(rests.map(({ target, rests: all }) => [target, all.join('; ')]));
  const words: Readonly<Record<string, string>> = {
    no_model: 'no such model at its vendor',
    resting: 'cooling down',
    half_open: 'being tried again',
  };
  const columns: Columns<(typeof targets)[number]> = {
    TARGET: ({ target }) => target,
    STATE: ({ state }) => words[state] ?? state,
    COOLDOWN: ({ target }) => why.get(target) ?? '',
  };
  printTable(out, targets, columns, { spare: [] }, ({ state }) =>
    state === 'serving' ? undefined : 'yellow',
  );
}

const ENGINES: Columns<StatusEngine> = {
  ENGINE: ({ engine }) => engine,
  STATE: ({ state }) => state,
  SINCE: ({ since }) => since,
  REASON: ({ message = '' }) => message,
};

const REPLICAS: Columns<StatusReplica> = {
  REPLICA: ({ host, port }) => (port === undefined ? host : `${host}:${port}`),
  PID: ({ pid = '' }) => String(pid),
  VERSION: ({ version }) => version,
  CONFIGURATION: ({ config }) => config,
  STARTED: ({ started }) => started.replace(/\.\d+Z$/, 'Z'),
};

const RUNNING: Columns<Status['exchanges'][number]> = {
  RUNNING: ({ id }) => id,
  MODEL: ({ model }) => model,
  TARGET: ({ target }) => target,
  FOR: (one) => millis(one.running_ms),
};

const replicasIn = (value: Json | undefined): readonly StatusReplica[] =>
  objects(value).map((one) => {
    const text = (member: Json | undefined) => printableLine(String(member ?? ''), 100);
    return {
      id: text(one.id),
      host: text(one.host),
      ...(typeof one.port === 'number' && { port: one.port }),
      ...(typeof one.pid === 'number' && { pid: one.pid }),
      version: text(one.version),
      config: text(one.config),
      started: text(one.started),
    };
  });

const enginesIn = (value: Json | undefined): readonly StatusEngine[] =>
  Object.entries(isObject(value) ? value : {}).flatMap(([engine, one]) => {
    if (!isObject(one)) return [];
    const { state, since, message } = one;
    return [
      {
        engine: printableLine(engine, 40),
        state: printableLine(String(state ?? ''), 40),
        since: printableLine(String(since ?? ''), 40),
        ...(typeof message === 'string' && { message: printableLine(message, 300) }),
      },
    ];
  });

const targetsIn = (value: Json | undefined): Status['targets'] =>
  objects(value).flatMap((one) =>
    typeof one.target === 'string' && typeof one.state === 'string'
      ? [{ target: printableLine(one.target, 200), state: printableLine(one.state, 40) }]
      : [],
  );
