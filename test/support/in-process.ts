/** The whole gateway inside the test's process, on a free port: it starts faster than the program. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from '../../src/app.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { startServer } from '../../src/server/server.ts';
import { createLog } from '../../src/telemetry/log.ts';

export interface InProcess {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** `$HOPGATE_HOME`. */
  readonly home: string;
  /** Log lines so far. */
  readonly lines: readonly string[];
  /** Puts another configuration in force. */
  reload(config: unknown): void;
  /** Writes pending data and stops; a home from the options stays. */
  stop(): Promise<void>;
}

/**
 * @param home of a gateway that runs, or ran, before; a new one by default
 * @param variables of the environment that the configuration is read with
 */
export async function startInProcess(
  config: unknown,
  home?: string,
  variables: Record<string, string> = {},
): Promise<InProcess> {
  const own = home ?? (await mkdtemp(join(tmpdir(), 'hopgate-in-process-')));
  const environment = environmentFrom({ HOPGATE_HOME: own, ...variables }, own);
  const load = (given: unknown) => {
    const loaded = parseConfig(JSON.stringify(given), join(own, 'hopgate.yaml'), environment);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    return loaded.config;
  };
  const lines: string[] = [];
  const log = createLog({ format: 'json', level: 'debug', write: (line) => lines.push(line) });
  const composed = createApp({ config: load(config), environment, log, version: '0.0.0' });
  const server = await startServer({
    app: composed.app,
    host: '127.0.0.1',
    port: 0,
    reusePort: false,
    joins: false,
    drainMs: 100,
    idleMs: 0,
  });
  return {
    url: server.url,
    home: own,
    lines,
    reload: (given) => composed.reload(load(given)),
    async stop() {
      await server.stop();
      await composed.close();
      if (home === undefined) await rm(own, { recursive: true, force: true });
    },
  };
}
