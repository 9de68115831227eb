/** The targets of the benchmark: the mock itself, the bare relay, nginx, the product in its several ways, and two peers. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { announcedPort, freePort, startChild, waitForHttp } from './children.ts';
import { peerTarget } from './peers.ts';
import { gatewayTarget } from './product.ts';
import type { Bench, Target, TargetName } from './target.ts';

export const TARGET_ABOUT: Readonly<Record<TargetName, string>> = {
  direct: 'the mock itself, nothing between',
  nginx: 'one worker, proxy_buffering off, keep-alive upstream',
  relay: 'bare Bun.serve + fetch, native body pipe, compiled',
  hopgate: 'chat to chat, no tools declared',
  'hopgate-armed': 'chat to chat, tools declared: leaked calls are looked for',
  'hopgate-recording': 'chat to chat, every exchange recorded as a sample',
  'hopgate-limited': 'chat to chat, prices, and a key with seven limits and budgets',
  'hopgate-traced':
    'chat to chat, every tenth exchange traced, metrics sent, trace context to the vendor',
  'hopgate-m2c': 'converting: Messages client, Chat upstream',
  'hopgate-c2m': 'converting: Chat client, Messages upstream',
  'hopgate-g2g': 'Gemini to Gemini, no tools declared',
  'hopgate-g2c': 'converting: Gemini client, Chat upstream',
  'hopgate-c2g': 'converting: Chat client, Gemini upstream',
  portkey: 'chat to chat',
  'portkey-conv': 'converting: Chat client, Messages upstream',
  'ccr-conv': 'converting: Messages client, Chat upstream',
};

/** Targets that run on Node and saturate far below the others: spared the scenarios they cannot carry. */
export const isPeer = (name: TargetName) => name.startsWith('portkey') || name.startsWith('ccr');
/** One side speaks Gemini: what the load costs is measured, the other checks say the same as of Chat and Messages. */
export const speaksGemini = (name: TargetName) => /-(?:g2|c2g)/.test(name);
const sameModel = (name: string) => name;

/** Starts the mock upstream. */
export async function startMock(dir: string): Promise<{ port: number; pid: number }> {
  const script = new URL('./mock-upstream.ts', import.meta.url).pathname;
  const child = startChild([process.execPath, script], {
    role: 'mock',
    logFile: `${dir}/mock.log`,
    stdout: 'pipe',
  });
  return { port: await announcedPort(child), pid: child.pid };
}

async function relayTarget(bench: Bench): Promise<Target> {
  const source = new URL('./relay.ts', import.meta.url).pathname;
  const binary = `${bench.dir}/relay`;
  const build = Bun.spawnSync(
    [process.execPath, 'build', '--compile', '--minify', '--bytecode', source, '--outfile', binary],
    { stdout: 'pipe', stderr: 'pipe', cwd: bench.dir },
  );
  if (build.exitCode !== 0) throw new Error(`the relay does not compile: ${build.stderr}`);
  const child = startChild([binary, `http://127.0.0.1:${bench.mockPort}`], {
    logFile: `${bench.dir}/relay.log`,
    stdout: 'pipe',
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: '65535' },
  });
  const port = await announcedPort(child);
  const version = `Bun ${Bun.version}`;
  return {
    name: 'relay',
    child,
    pid: child.pid,
    port,
    version,
    dialect: 'chat',
    headers: {},
    model: sameModel,
  };
}

const nginxConfig = (bench: Bench, port: number) => `
worker_processes 1;
daemon off;
pid ${bench.dir}/nginx/nginx.pid;
error_log ${bench.dir}/nginx/error.log error;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path ${bench.dir}/nginx/body;
  proxy_temp_path ${bench.dir}/nginx/proxy;
  fastcgi_temp_path ${bench.dir}/nginx/fastcgi;
  uwsgi_temp_path ${bench.dir}/nginx/uwsgi;
  scgi_temp_path ${bench.dir}/nginx/scgi;
  keepalive_requests 10000000;
  client_max_body_size 64m;
  client_body_buffer_size 4m;
  upstream mock {
    server 127.0.0.1:${bench.mockPort};
    keepalive 256;
    keepalive_requests 10000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;

async function nginxTarget(bench: Bench): Promise<Target> {
  const program = Bun.which('nginx') ?? Bun.which('/usr/sbin/nginx');
  if (program === null) throw new Error('nginx is not installed (apt-get install nginx)');
  const port = freePort();
  mkdirSync(`${bench.dir}/nginx`, { recursive: true });
  writeFileSync(`${bench.dir}/nginx/nginx.conf`, nginxConfig(bench, port));
  const child = startChild([program, '-p', `${bench.dir}/nginx`, '-c', 'nginx.conf'], {
    logFile: `${bench.dir}/nginx.log`,
    cwd: bench.dir,
  });
  await waitForHttp(port, 5000);
  const version = /nginx\/[\d.]+/.exec(
    Bun.spawnSync([program, '-v'], { stderr: 'pipe' }).stderr.toString(),
  )?.[0];
  return {
    name: 'nginx',
    child,
    pid: child.pid,
    port,
    version: version ?? 'nginx',
    dialect: 'chat',
    headers: {},
    model: sameModel,
  };
}

function startTarget(name: TargetName, bench: Bench): Promise<Target> {
  switch (name) {
    case 'direct':
      return Promise.resolve({
        name,
        pid: bench.mockPid,
        port: bench.mockPort,
        version: 'mock',
        dialect: 'chat',
        headers: {},
        model: sameModel,
      });
    case 'relay':
      return relayTarget(bench);
    case 'nginx':
      return nginxTarget(bench);
    case 'hopgate':
    case 'hopgate-armed':
    case 'hopgate-recording':
    case 'hopgate-limited':
    case 'hopgate-traced':
    case 'hopgate-m2c':
    case 'hopgate-c2m':
    case 'hopgate-g2g':
    case 'hopgate-g2c':
    case 'hopgate-c2g':
      return gatewayTarget(name, bench);
    default:
      return peerTarget(name, bench);
  }
}

/** Starts targets one after the other; one that cannot be had is left out, loudly. */
export async function startTargets(
  names: readonly TargetName[],
  bench: Bench,
): Promise<{ targets: Target[]; skipped: string[] }> {
  const targets: Target[] = [];
  const skipped: string[] = [];
  for (const name of names) {
    try {
      targets.push(await startTarget(name, bench));
    } catch (error) {
      const line = `${name}: ${error instanceof Error ? error.message : String(error)}`;
      skipped.push(line);
      bench.say(`!! SKIPPED ${line}`);
    }
  }
  return { targets, skipped };
}
