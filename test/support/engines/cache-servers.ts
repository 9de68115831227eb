/** Starts Valkey or Redis for tests: one server, a primary with a replica under Sentinel, or a cluster. */

import { join } from 'node:path';
import { until } from '../until.ts';
import {
  certificateFiles,
  freePort,
  have,
  program,
  type Server,
  scratchFolder,
  startServer,
} from './processes.ts';

const SERVER = program('valkey-server', 'redis-server');
const CLI = program('valkey-cli', 'redis-cli');
const SENTINEL = program('valkey-sentinel', 'redis-sentinel');

export const HAS_CACHE = have('Valkey or Redis', SERVER, CLI);
export const HAS_SENTINEL = have('the sentinel of Valkey or Redis', SERVER, CLI, SENTINEL);

/** @param certificate speaks TLS only, with this one of {@link certificateFiles} */
export async function startCache(
  args: readonly string[] = [],
  certificate?: string,
): Promise<Server> {
  const port = await freePort();
  const folder = await scratchFolder();
  const door =
    certificate === undefined
      ? ['--port', `${port}`]
      : ['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no', ...tlsOf(certificate)];
  return startServer({
    port,
    folder,
    command: [SERVER!, ...door, '--bind', '127.0.0.1', '--save', '', ...args],
  });
}

function tlsOf(certificate: string): readonly string[] {
  const { cert, key, authority } = certificateFiles(certificate);
  return ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', authority];
}

/** One command by the program of the server; its output. */
export function cacheCommand(port: number, ...args: readonly string[]): string {
  const { stdout } = Bun.spawnSync([CLI!, '-h', '127.0.0.1', '-p', `${port}`, ...args]);
  return stdout.toString().trim();
}

/**
 * A primary, its replica, and one sentinel that watches them, under the name `main`.
 * @param password of the sentinel
 */
export async function startSentinel(password?: string): Promise<{
  readonly sentinel: Server;
  readonly servers: readonly Server[];
  /** The port that the sentinel names as the primary. */
  primary(): number;
  stop(): Promise<void>;
}> {
  const first = await startCache();
  const second = await startCache(['--replicaof', `127.0.0.1 ${first.port}`]);
  await until(() =>
    cacheCommand(second.port, 'info', 'replication').includes('master_link_status:up'),
  );
  const port = await freePort();
  const folder = await scratchFolder();
  const file = join(folder, 'sentinel.conf');
  await Bun.write(
    file,
    `port ${port}
bind 127.0.0.1
dir ${folder}
sentinel monitor main 127.0.0.1 ${first.port} 1
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 2000
${password === undefined ? '' : `requirepass ${password}\n`}`,
  );
  const sentinel = await startServer({ port, folder, command: [SENTINEL!, file] });
  // A failover needs a sentinel that has seen the replica.
  const ask = (...words: readonly string[]) =>
    cacheCommand(port, ...(password === undefined ? [] : ['-a', password]), 'sentinel', ...words);
  await until(() => ask('replicas', 'main').includes(`${second.port}`));
  const all = [sentinel, second, first];
  return {
    sentinel,
    servers: [first, second],
    primary: () => Number(ask('get-master-addr-by-name', 'main').split('\n')[1]),
    async stop() {
      await Promise.all(all.map((one) => one.stop()));
    },
  };
}

/** Three primaries. */
export async function startCluster(): Promise<{
  readonly servers: readonly Server[];
  stop(): Promise<void>;
}> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
  const servers: Server[] = [];
  for (let i = 0; i < 3; i++) servers.push(await startClusterNode(args));
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`);
  const made = Bun.spawnSync([CLI!, '--cluster', 'create', ...nodes, '--cluster-yes']);
  if (!made.success) throw new Error(made.stdout.toString());
  const isOk = (port: number) => cacheCommand(port, 'cluster', 'info').includes('cluster_state:ok');
  await until(() => servers.every(({ port }) => isOk(port)));
  return {
    servers,
    async stop() {
      await Promise.all(servers.map((one) => one.stop()));
    },
  };
}

/** The nodes of a cluster talk to each other on a second port, by default 10000 above the first. */
async function startClusterNode(args: readonly string[]): Promise<Server> {
  const bus = await freePort();
  return startCache([...args, '--cluster-port', `${bus}`]);
}
