/** The commands that run the gateway, for the command table. */

import type { CommandSpec } from '../command.ts';
import { runServe } from './serve.ts';
import { ACTIONS, runDaemon } from './service/index.ts';

export const SERVE: CommandSpec = {
  name: 'serve',
  group: 'Run',
  summary: 'run the gateway',
  description: [
    'Listens where the configuration says and prints one line on stdout once it can answer: "hopgate listening on http://HOST:PORT". Logs go to stderr.',
    'SIGTERM and SIGINT let open streams finish, SIGHUP loads the configuration again.',
  ],
  options: [
    {
      name: 'port',
      short: 'p',
      value: 'N',
      summary: 'port to listen on; 0 picks a free one',
      default: 'that of the configuration, else 5520',
      range: [0, 65_535],
    },
    {
      name: 'host',
      value: 'ADDRESS',
      summary: 'address to listen on',
      default: 'that of the configuration, else 127.0.0.1',
    },
    {
      name: 'drain',
      value: 'SECONDS',
      summary: 'how long to wait for open streams when stopping',
      default: 'limits.drain of the configuration, else 30',
      range: [0, 86_400],
    },
    {
      name: 'workers',
      value: 'N',
      summary: 'processes that share the port',
      default: 'workers of the configuration, else 1',
      range: [1, 64],
    },
    {
      name: 'log-level',
      value: 'LEVEL',
      summary: 'what is logged',
      choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    },
    {
      name: 'log-format',
      value: 'FORMAT',
      summary: 'how it is logged; auto: pretty on a terminal, else JSON lines',
      choices: ['auto', 'json', 'pretty'],
    },
  ],
  examples: [
    {
      line: 'hopgate',
      summary: 'Serves on 127.0.0.1:5520 with the API keys of the environment.',
    },
    {
      line: 'hopgate serve --config ./hopgate.yaml --port 0',
      summary: 'A file of your own, and any free port.',
    },
  ],
  exits: [
    [0, 'stopped as asked'],
    [1, 'the configuration cannot be used, or the port is taken'],
    [130, 'a second signal ended it at once'],
  ],
  run: runServe,
};

export const SERVICE: CommandSpec = {
  name: 'service',
  group: 'Run',
  summary: 'run the gateway in the background, from login or boot on',
  description: [
    'By systemd on Linux, by launchd on macOS. install writes one file, enables it and starts it; done again it changes nothing, or brings the file up to date. uninstall takes back exactly that. A file that somebody else wrote, or changed, is not touched.',
    'As root the service of the machine is meant, otherwise that of the user.',
  ],
  arguments: [{ name: 'action', summary: 'what to do', required: true, choices: ACTIONS }],
  options: [
    { name: 'user', summary: 'for this user, from login on' },
    { name: 'system', summary: 'for the machine, from boot on, under an account of its own' },
    { name: 'dry-run', short: 'n', summary: 'only show what would be written and run' },
    { name: 'no-start', summary: 'install: enable it, but do not start it now' },
    { name: 'force', summary: 'also where the file was changed since it was written' },
    {
      name: 'root',
      value: 'DIR',
      summary: 'install, uninstall: below this folder, starting nothing, for images',
    },
    {
      name: 'lines',
      value: 'N',
      summary: 'logs: how many of the last lines',
      default: '50',
      range: [1, 1_000_000],
    },
    { name: 'follow', short: 'f', summary: 'logs: go on as they come' },
  ],
  examples: [
    { line: 'hopgate service install --dry-run', summary: 'What would be done.' },
    { line: 'hopgate service install', summary: 'From now on, whenever you log in.' },
    { line: 'hopgate service logs --follow', summary: 'What it says.' },
  ],
  exits: [
    [0, 'done, or nothing to do'],
    [1, 'not done, and why'],
    [3, 'status: it does not run'],
  ],
  run: runDaemon,
};
