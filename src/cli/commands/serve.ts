/** `hopgate serve`: loads the configuration, lays the flags over it, and starts the server. */

import type { Config } from '../../config/config.ts';
import type { Invocation } from '../command.ts';
import { load, loadOptions, tell } from '../load-config.ts';

type Flags = Pick<Invocation, 'text' | 'number'>;

/** `--host`, `--port`, `--drain`, `--workers` and the log's flags win over the file. */
export function withFlags(config: Config, { text, number }: Flags): Config {
  const level = text('log-level');
  const format = text('log-format');
  const drain = number('drain');
  const workers = number('workers');
  return {
    ...config,
    listen: {
      host: text('host') ?? config.listen.host,
      port: number('port') ?? config.listen.port,
    },
    limits: drain === undefined ? config.limits : { ...config.limits, drainMs: drain * 1000 },
    workers: workers ?? config.workers,
    log: {
      level: (level ?? config.log.level) as Config['log']['level'],
      format: (format ?? config.log.format) as Config['log']['format'],
    },
  };
}

/** Exit 1 with the problems on stderr when the configuration cannot be used. */
export async function runServe(invocation: Invocation): Promise<number> {
  const result = await load(invocation);
  tell(invocation, result);
  if (!result.ok) {
    invocation.err.line('hopgate: the configuration cannot be used; nothing was started.');
    return 1;
  }
  return invocation.deps.serve({
    config: withFlags(result.config, invocation),
    load: loadOptions(invocation),
    withFlags: (config) => withFlags(config, invocation),
  });
}
