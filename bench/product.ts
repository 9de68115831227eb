/** Starts the compiled product with authentication, routing, metrics and usage on. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ProtocolName } from '../src/conversation/protocol-names.ts';
import { announcedPort, type Child, startChild } from './children.ts';
import type { Dialect } from './replies.ts';
import type { Bench, Target, TargetName } from './target.ts';

export const BINARY = new URL('../dist/hopgate', import.meta.url).pathname;
const CLIENT_KEY = 'sk-bench-client-0123456789abcdef';

/** Headers that every client of the product sends. */
export const CLIENT_HEADERS = { authorization: `Bearer ${CLIENT_KEY}` };

export interface ProductOptions {
  readonly upstream: ProtocolName;
  readonly name: string;
  /** Another program than this checkout's; an older one knows the plain configuration. */
  readonly binary?: string;
  readonly arguments?: readonly string[];
  /** Every exchange becomes a sample. */
  readonly records?: boolean;
  /** The key has seven limits and budgets, and what is used has a price. */
  readonly limited?: boolean;
  /** The port of a collector that gets the trace of every tenth exchange, and the metrics. */
  readonly collector?: number;
  /** State is in these, as of one of many replicas. */
  readonly engines?: { readonly cache: string; readonly database: string };
}

/** What the mock's address is followed by. */
const BASE_PATH: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': '',
  'openai-chat': '/v1',
  'openai-responses': '/v1',
  'google-gemini': '/v1beta',
};

const PRICED = '    prices: { "*": { input: 0.1, output: 0.4 } }';
/** More than any run uses: what counting costs is measured. */
const LIMITED = `auth:
  keys:
    - name: bench
      key: "${CLIENT_KEY}"
      labels: { team: bench }
      limits: { requests_per_minute: 100000000, tokens_per_minute: 1000000000000, concurrent: 100000 }
      budgets: [{ usd: 1000000, per: hour }, { usd: 1000000, per: day }, { usd: 1000000, per: month }]
budgets:
  - { name: shared, keys: { team: bench }, usd: 1000000, per: month, time_zone: Europe/Berlin }
`;

// A first route that does not match and one that does: a request pays for walking the table.
const configuration = (
  { upstream, records, limited, collector, engines }: ProductOptions,
  mockPort: number,
) => `
listen: 127.0.0.1:0
providers:
  mock:
    protocol: ${upstream}
    base_url: http://127.0.0.1:${mockPort}${BASE_PATH[upstream]}
    keys: ["sk-bench-upstream-0123456789abcdef"]
    models: ["*"]
${limited === true ? PRICED : ''}
routes:
  - when: { model: "claude-*" }
    to: [mock/never-asked]
  - to: [mock/*]
${limited === true ? LIMITED : `auth: { keys: ["${CLIENT_KEY}"] }`}
samples: { mode: "${records === true ? 'all' : 'off'}" }
${collector === undefined ? '' : `telemetry: { otlp: { endpoint: "http://127.0.0.1:${collector}", traces: 0.1 } }`}
${engines === undefined ? '' : `engines: ${JSON.stringify(engines)}`}
`;

/** Writes the configuration of one instance and gives the command that serves it. */
export function productCommand(
  bench: Bench,
  options: ProductOptions,
): { command: string[]; env: Record<string, string> } {
  const binary = options.binary ?? bench.program?.binary ?? BINARY;
  if (!existsSync(binary)) {
    throw new Error(
      binary === BINARY
        ? 'dist/hopgate is missing (npm run build)'
        : `there is no program ${binary}`,
    );
  }
  const home = `${bench.dir}/${options.name}`;
  mkdirSync(home, { recursive: true });
  const config = `${home}/hopgate.yaml`;
  writeFileSync(config, configuration(options, bench.mockPort));
  const rest = options.arguments ?? ['--port', '0'];
  return {
    command: [binary, 'serve', '--config', config, ...rest],
    env: { ...bench.program?.env, HOPGATE_HOME: home },
  };
}

/** Starts one instance and waits until it says that it listens. */
export async function startProduct(
  bench: Bench,
  options: ProductOptions,
): Promise<{ child: Child; port: number }> {
  const { command, env } = productCommand(bench, options);
  const logFile = `${bench.dir}/${options.name}.log`;
  const child = startChild(command, { env, logFile, stdout: 'pipe', cwd: bench.dir });
  try {
    return { child, port: await announcedPort(child) };
  } catch (error) {
    const said = readFileSync(logFile, 'utf8').trim().slice(-500);
    throw new Error(`${options.name} does not start: ${said}`, { cause: error });
  }
}

/** What a program calls itself: `hopgate VERSION (COMMIT), …`. */
export const versionOf = (binary: string) =>
  Bun.spawnSync([binary, '--version']).stdout.toString().trim();

/** Starts a collector that takes everything, in a process of its own; its port. */
function startCollector(bench: Bench): Promise<number> {
  const script = new URL('./otlp-collector.ts', import.meta.url).pathname;
  const logFile = `${bench.dir}/collector.log`;
  const child = startChild([process.execPath, script], { role: 'mock', logFile, stdout: 'pipe' });
  return announcedPort(child);
}

/** What the clients of those that are not Chat on both sides speak, and the upstream. */
const WAYS: Readonly<Record<string, readonly [client: Dialect, upstream: ProtocolName]>> = {
  'hopgate-m2c': ['messages', 'openai-chat'],
  'hopgate-c2m': ['chat', 'anthropic-messages'],
  'hopgate-g2g': ['gemini', 'google-gemini'],
  'hopgate-g2c': ['gemini', 'openai-chat'],
  'hopgate-c2g': ['chat', 'google-gemini'],
};

const HEADERS: Readonly<Record<Dialect, Readonly<Record<string, string>>>> = {
  chat: CLIENT_HEADERS,
  responses: CLIENT_HEADERS,
  messages: { 'x-api-key': CLIENT_KEY, 'anthropic-version': '2023-06-01' },
  gemini: { 'x-goog-api-key': CLIENT_KEY },
};

/** One of the product's ways, in a process of its own. */
export async function gatewayTarget(name: TargetName, bench: Bench): Promise<Target> {
  const [dialect, upstream] = WAYS[name] ?? (['chat', 'openai-chat'] as const);
  const { child, port } = await startProduct(bench, {
    upstream,
    name,
    records: name === 'hopgate-recording',
    limited: name === 'hopgate-limited',
    collector: name === 'hopgate-traced' ? await startCollector(bench) : undefined,
  });
  const version = versionOf(bench.program?.binary ?? BINARY);
  return {
    name,
    child,
    pid: child.pid,
    port,
    version: version || 'hopgate',
    dialect,
    headers: HEADERS[dialect],
    tools: name === 'hopgate-armed',
    model: (asked) => asked,
  };
}
