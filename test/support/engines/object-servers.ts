/** Starts a store that speaks S3 for tests: the strict versitygw (`HOPGATE_VERSITYGW` names it), else moto (`HOPGATE_MOTO_SERVER`). */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, have, program, type Server, scratchFolder, startServer } from './processes.ts';

const STRICT = process.env.HOPGATE_VERSITYGW ?? program('versitygw');
const MOTO = process.env.HOPGATE_MOTO_SERVER ?? program('moto_server');

export const HAS_OBJECTS = have('a store that speaks S3 (versitygw, moto)', STRICT ?? MOTO);

/** What the servers take. */
export const OBJECTS_KEY = 'key';
export const OBJECTS_SECRET = 'secret';

export interface ObjectServer extends Server {
  /** With an empty bucket of this name. */
  readonly bucket: string;
  readonly endpoint: string;
}

export async function startObjects(): Promise<ObjectServer> {
  const port = await freePort();
  const bucket = 'samples';
  const endpoint = `http://127.0.0.1:${port}`;
  const folder = await scratchFolder();
  if (STRICT !== undefined) {
    const [root, meta] = [join(folder, 'root'), join(folder, 'meta')];
    // A folder is a bucket.
    await mkdir(join(root, bucket), { recursive: true });
    await mkdir(meta);
    const server = await startServer({
      port,
      folder,
      command: [STRICT, '--port', `127.0.0.1:${port}`, 'posix', '--sidecar', meta, root],
      env: { ROOT_ACCESS_KEY: OBJECTS_KEY, ROOT_SECRET_KEY: OBJECTS_SECRET },
    });
    return { ...server, bucket, endpoint };
  }
  const server = await startServer({
    port,
    folder,
    command: [MOTO!, '-H', '127.0.0.1', '-p', `${port}`],
  });
  const made = await fetch(`${endpoint}/${bucket}`, { method: 'PUT' });
  if (!made.ok) throw new Error(`no bucket: ${made.status} ${await made.text()}`);
  return { ...server, bucket, endpoint };
}
