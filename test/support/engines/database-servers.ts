/** Starts Postgres, and PgBouncer in transaction mode before it, for tests. */

import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Secret } from '../../../src/config/secret.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import {
  asNobody,
  freePort,
  have,
  isRoot,
  ownCertificate,
  program,
  type Server,
  scratchFolder,
  startServer,
} from './processes.ts';

const POSTGRES = program('postgres');
const INITDB = program('initdb');
const BOUNCER = program('pgbouncer');

const CACHE = join(import.meta.dir, '../../../node_modules/.cache/hopgate-tests');

export const HAS_POSTGRES = have('Postgres', POSTGRES, INITDB);
export const HAS_BOUNCER = have('PgBouncer', POSTGRES, INITDB, BOUNCER);

export interface DatabaseServer extends Server {
  readonly url: string;
}

/**
 * An empty database; what it writes need not outlive the machine.
 * @param certificate also speaks TLS, with this one of the test certificates
 * @param more settings of the server
 */
export async function startPostgres(
  certificate?: string,
  more: Readonly<Record<string, string>> = {},
): Promise<DatabaseServer> {
  const folder = await scratchFolder(true);
  const data = join(folder, 'data');
  await run(['cp', '-a', await emptyCluster(), data], folder);
  const port = await freePort();
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    fsync: 'off',
    full_page_writes: 'off',
    max_connections: 200,
    ...(await tlsOf(certificate, folder)),
    ...more,
  };
  const server = await startServer({
    port,
    folder,
    asNobody: true,
    command: [
      POSTGRES!,
      '-D',
      data,
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
  });
  await ready(port);
  return { ...server, url: urlOf(port) };
}

async function run(command: readonly string[], cwd: string): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${err}`);
  return out;
}

/** What initdb makes, once on a machine for each version: a copy takes a fraction of the time. */
async function emptyCluster(): Promise<string> {
  const version = (await run([INITDB!, '--version'], '/')).replaceAll(/[^\w.]+/g, '-');
  const made = join(CACHE, `${version}${isRoot ? 'nobody' : 'self'}`);
  if (existsSync(made)) return made;
  const folder = await scratchFolder(true);
  const data = join(folder, 'data');
  const form = ['-U', 'hopgate', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(asNobody([INITDB!, '-D', data, ...form]), folder);
  // Whole under its name at once: another process may make it, too.
  const whole = `${made}-${process.pid}`;
  await mkdir(CACHE, { recursive: true });
  await run(['cp', '-a', data, whole], folder);
  await rename(whole, made).catch(() => rm(whole, { recursive: true, force: true }));
  await rm(folder, { recursive: true, force: true });
  return made;
}

async function tlsOf(certificate: string | undefined, folder: string) {
  if (certificate === undefined) return {};
  const { cert, key } = await ownCertificate(certificate, folder);
  return { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key };
}

const urlOf = (port: number) => `postgres://hopgate@127.0.0.1:${port}/postgres`;

/** The port opens before the database takes queries. */
async function ready(port: number): Promise<void> {
  const { default: pg } = await import('pg');
  for (;;) {
    const client = new pg.Client({ connectionString: urlOf(port) });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await Bun.sleep(20);
    }
  }
}

let databases = 0;

/** A new, empty database of a server, and a client that must be closed. */
export async function newDatabase({ port }: Server) {
  const name = `test_${process.pid}_${++databases}`;
  const clientOf = (url: string) => new PostgresDatabase({ url: new Secret(url) }, () => {});
  const admin = clientOf(urlOf(port));
  await admin.query(`CREATE DATABASE ${name}`, [], 10_000);
  await admin.close();
  const url = urlOf(port).replace(/postgres$/, name);
  return { url, database: clientOf(url) };
}

/** One connection of a server for each transaction, as poolers are mostly run. */
export async function startBouncer(database: Server): Promise<DatabaseServer> {
  const port = await freePort();
  const folder = await scratchFolder(true);
  const file = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'users.txt');
  await Bun.write(users, '"hopgate" ""\n');
  await Bun.write(
    file,
    `[databases]
* = host=127.0.0.1 port=${database.port} user=hopgate
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 3
`,
  );
  const server = await startServer({ port, folder, asNobody: true, command: [BOUNCER!, file] });
  return { ...server, url: urlOf(port) };
}
