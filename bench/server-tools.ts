/** `bun bench/server-tools.ts`: what a hop of a server tool costs in the gateway, and what unused tools cost. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { announcedPort, startChild, stopChildren } from './children.ts';
import { BINARY } from './product.ts';
import { median, percentile, shuffled } from './statistics.ts';

const HELP = `bun bench/server-tools.ts [options]

  --requests N   requests for each figure (600)
  --binary PATH  the executable to measure (dist/hopgate)
  --json         the figures as JSON
`;

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '600' },
    binary: { type: 'string', default: BINARY },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** How the gateway is set up; `none` knows no tools at all. */
const SETUPS = ['none', 'declared', 'force'] as const;
type Setup = (typeof SETUPS)[number];

const WORLD = new URL('server-tools-world.ts', import.meta.url).pathname;
const ROUNDS = 4;
/** What a coding agent's first request weighs. */
const AGENT_BODY = 50_000;

function configuration(setup: Setup, world: string): object {
  const tools = {
    web_search: { inject: setup, engines: [{ type: 'searxng', base_url: world }] },
    ...(setup === 'force'
      ? {
          http: {
            stock_price: {
              description: 'The price of a stock.',
              url: `${world}/stock/{symbol}`,
              schema: { type: 'object', properties: { symbol: { type: 'string' } } },
            },
          },
        }
      : {}),
  };
  return {
    listen: '127.0.0.1:0',
    providers: {
      mock: {
        protocol: 'openai-chat',
        base_url: `${world}/v1`,
        keys: ['sk-bench-upstream-0123456789'],
        models: ['*'],
      },
    },
    samples: { mode: 'off' },
    ...(setup === 'none' ? {} : { server_tools: tools }),
  };
}

/** @returns where it listens */
async function startSetup(
  setup: Setup,
  world: string,
  dir: string,
  name: string = setup,
): Promise<string> {
  const home = join(dir, name);
  mkdirSync(home);
  const config = join(home, 'hopgate.yaml');
  writeFileSync(config, JSON.stringify(configuration(setup, world)));
  const child = startChild([values.binary, 'serve', '--config', config, '--port', '0'], {
    env: { HOPGATE_HOME: home },
    logFile: join(home, 'log'),
    stdout: 'pipe',
    cwd: home,
  });
  return `http://127.0.0.1:${await announcedPort(child)}`;
}

function bodyOf(rounds: number, size: number): string {
  const messages = [
    { role: 'system', content: 'Be brief. '.repeat(Math.max(1, Math.round(size / 10))) },
    { role: 'user', content: 'What is ACME worth?' },
  ];
  return JSON.stringify({ model: `rounds-${rounds}`, stream: true, messages });
}

/** Milliseconds to the first byte of the body, and to its end. @throws when the answer is not the final one */
async function timed(base: string, body: string): Promise<{ first: number; total: number }> {
  const started = performance.now();
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-bench-client' },
    body,
  });
  let first = 0;
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    first ||= performance.now() - started;
    text += decoder.decode(part, { stream: true });
  }
  const total = performance.now() - started;
  if (!text.includes('at 41.5.')) throw new Error(`${response.status} ${text.slice(0, 300)}`);
  return { first, total };
}

/** What the same hops cost without a gateway: the vendor asked, the tool asked, the vendor asked again. */
async function direct(world: string, body: string): Promise<number> {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer x' };
  const started = performance.now();
  for (let round = 0; ; round++) {
    const over = `,"over":[${Array(round).fill('{"role":"tool"}').join()}]}`;
    const url = `${world}/v1/chat/completions`;
    const sent = round === 0 ? body : body.slice(0, -1) + over;
    const answer = await (await fetch(url, { method: 'POST', headers, body: sent })).text();
    if (!answer.includes('stock_price')) break;
    await (await fetch(`${world}/stock/ACME`)).text();
  }
  return performance.now() - started;
}

interface Case {
  readonly name: string;
  readonly run: () => Promise<number>;
}

/** Runs the cases in turn, shuffled, so that whatever slows the machine slows all of them. */
async function measured(cases: readonly Case[], requests: number): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  for (let at = 0; at < requests + 100; at++) {
    for (const { name, run } of shuffled(cases)) {
      const ms = await run();
      // The first hundred warm the programs up.
      if (at >= 100) times.get(name)!.push(ms);
    }
  }
  return times;
}

async function main(): Promise<void> {
  if (values.help) {
    console.log(HELP);
    return;
  }
  const requests = Number(values.requests);
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-bench-'));
  try {
    const vendor = startChild([process.execPath, WORLD], {
      logFile: join(dir, 'world.log'),
      stdout: 'pipe',
    });
    const world = `http://127.0.0.1:${await announcedPort(vendor)}`;
    const bases = new Map<Setup, string>();
    for (const setup of SETUPS) bases.set(setup, await startSetup(setup, world, dir));
    const base = (setup: Setup) => bases.get(setup)!;
    // One of its own: the others see the same requests, so that they are equally warm.
    const looping = await startSetup('force', world, dir, 'looping');
    const hops = (rounds: number): Case[] => {
      const body = bodyOf(rounds, 10);
      const total = async () => (await timed(looping, body)).total;
      return [
        { name: `gateway ${rounds}`, run: total },
        { name: `direct ${rounds}`, run: () => direct(world, body) },
      ];
    };
    const idle = (size: number): Case[] => {
      const body = bodyOf(0, size);
      return SETUPS.map((setup) => ({
        name: `idle ${setup} ${size}`,
        run: async () => (await timed(base(setup), body)).first,
      }));
    };
    const cases = [...hops(0), ...hops(ROUNDS), ...idle(10), ...idle(AGENT_BODY)];
    const times = await measured(cases, requests);
    tell(times);
  } finally {
    await stopChildren();
    rmSync(dir, { recursive: true, force: true });
  }
}

function tell(times: ReadonlyMap<string, readonly number[]>): void {
  const mid = (name: string) => median(times.get(name)!);
  const p95 = (name: string) =>
    percentile(
      [...times.get(name)!].sort((a, b) => a - b),
      0.95,
    );
  const gateway = (mid(`gateway ${ROUNDS}`) - mid('gateway 0')) / ROUNDS;
  const plain = (mid(`direct ${ROUNDS}`) - mid('direct 0')) / ROUNDS;
  const idle = [10, AGENT_BODY].map((size) => ({
    bytes: size,
    ...Object.fromEntries(
      SETUPS.map((setup) => {
        const name = `idle ${setup} ${size}`;
        return [
          setup,
          { median: mid(name), p95: p95(name), added: mid(name) - mid(`idle none ${size}`) },
        ];
      }),
    ),
  }));
  const figures = { perHop: { gateway, direct: plain, added: gateway - plain }, idle };
  if (values.json) {
    console.log(JSON.stringify(figures, null, 2));
    return;
  }
  const ms = (value: number) => `${value.toFixed(3)} ms`;
  console.log(
    `one more hop (vendor, tool): ${ms(gateway)}; the same without a gateway: ${ms(plain)}`,
  );
  console.log(`the gateway's own time per hop: ${ms(gateway - plain)}`);
  for (const { bytes, ...setups } of idle) {
    for (const [setup, { median: middle, p95: late, added }] of Object.entries(
      setups as unknown as Record<string, { median: number; p95: number; added: number }>,
    )) {
      console.log(
        `first byte, ${bytes} byte body, tools ${setup}: ${ms(middle)} (p95 ${ms(late)}), added ${ms(added)}`,
      );
    }
  }
}

await main();
