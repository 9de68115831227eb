import type { Config } from '../../config/config.ts';
import type { CommandSpec, Invocation } from '../command.ts';
import { loadForCommand, loadOptions, reportProblems } from '../load-config.ts';

type Flags = Pick<Invocation, 'text' | 'number'>;

/** `--host`, `--port`, `--drain`, `--workers` and the log flags override the file. */
export function withFlags(config: Config, { text, number }: Flags): Config {
  const level = text('log-level');
  const format = text('log-format');
  const drain = number('drain');
  const workers = number('workers');
  return {
    ...config,
    listen: {
      ...config.listen,
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

export const SERVE: CommandSpec = {
  name: 'serve',
  others: ['start', 'run', 'up'],
  summary: 'run the gateway',
  description: [
    'Listens on the configured address and prints one line to stdout when it is ready: "hopgate listening on http://HOST:PORT". Logs go to stderr.',
    'SIGTERM and SIGINT let open streams finish, SIGHUP loads the configuration again. A terminal that closes sends SIGHUP, so the gateway continues.',
  ],
  options: {
    port: {
      short: 'p',
      value: 'N',
      summary: 'port to listen on; 0 picks a free one',
      default: 'from the configuration, else 5520',
      range: [0, 65_535],
    },
    host: {
      value: 'ADDRESS',
      summary: 'address to listen on',
      default: 'from the configuration, else 127.0.0.1',
    },
    drain: {
      value: 'SECONDS',
      summary: 'how long to wait for open streams when stopping',
      default: 'limits.drain of the configuration, else 30',
      range: [0, 86_400],
    },
    workers: {
      value: 'N',
      summary: 'processes that share the port',
      default: 'workers of the configuration, else 1',
      range: [1, 64],
    },
    'log-level': {
      value: 'LEVEL',
      summary: 'what is logged',
      choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    },
    'log-format': {
      value: 'FORMAT',
      summary: 'how it is logged; auto: pretty on a terminal, else JSON lines',
      choices: ['auto', 'json', 'pretty'],
    },
  },
  examples: {
    hopgate: 'Serves on 127.0.0.1:5520 with the API keys of the environment.',
    'hopgate serve --config ./hopgate.yaml --port 0': 'Uses your own file and any free port.',
  },
  exits: {
    0: 'stopped on request',
    1: 'the configuration cannot be used, or the port is taken',
    130: 'a second signal ended it immediately',
  },
  run: runServe,
};

async function runServe(invocation: Invocation): Promise<number> {
  const result = await loadForCommand(invocation);
  reportProblems(invocation, result);
  if (!result.ok) {
    invocation.err.line('hopgate: the configuration cannot be used; nothing was started.');
    return 1;
  }
  const { serve } = await invocation.services();
  return serve({
    config: withFlags(result.config, invocation),
    load: loadOptions(invocation),
    withFlags: (config) => withFlags(config, invocation),
  });
}
