/** Starts a store that speaks S3 for tests: moto, of which `HOPGATE_MOTO_SERVER` names the program. */

import { freePort, have, program, type Server, scratchFolder, startServer } from './processes.ts';

const MOTO = process.env.HOPGATE_MOTO_SERVER ?? program('moto_server');

export const HAS_OBJECTS = have('a store that speaks S3 (moto)', MOTO);

export interface ObjectServer extends Server {
  /** With an empty bucket of this name. */
  readonly bucket: string;
  readonly endpoint: string;
}

export async function startObjects(): Promise<ObjectServer> {
  const port = await freePort();
  const server = await startServer({
    port,
    folder: await scratchFolder(),
    command: [MOTO!, '-H', '127.0.0.1', '-p', `${port}`],
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const bucket = 'samples';
  const made = await fetch(`${endpoint}/${bucket}`, { method: 'PUT' });
  if (!made.ok) throw new Error(`no bucket: ${made.status} ${await made.text()}`);
  return { ...server, bucket, endpoint };
}
