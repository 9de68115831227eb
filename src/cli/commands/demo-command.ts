/** The command that shows what a chat app can do with the gateway, for the command table. */

import type { CommandSpec } from '../command.ts';
import { runDemo } from './demo/index.ts';

export const DEMO: CommandSpec = {
  name: 'demo',
  group: 'Run',
  summary: 'play a chat app: three characters that remember',
  description: [
    'A group chat in the terminal. Each character has a memory space of its own, is made to recall before it speaks, and may recall more; what is said becomes a memory. A line marked ⚙ names the tools that ran in a turn; an app gets each as an event.',
    'Needs no configuration, no key and no network: the built-in model plays all three. With --model the models of your configuration do. Nothing is kept: the memory lies in a temporary folder.',
  ],
  arguments: [{ name: 'which', summary: 'what is played', choices: ['group-chat'] }],
  options: [
    {
      name: 'model',
      short: 'm',
      value: 'NAME',
      summary: 'let this model of your configuration play',
      default: 'the built-in demo model',
    },
    {
      name: 'lang',
      value: 'LANGUAGE',
      summary: 'in which they talk',
      choices: ['zh', 'en'],
      default: 'zh where $LANG says so, else en',
    },
    { name: 'script', summary: 'end after the script, without asking you to join in' },
  ],
  examples: [
    { line: 'hopgate demo group-chat', summary: 'Watch them talk, then join in.' },
    {
      line: 'hopgate demo group-chat --lang zh --model deepseek/deepseek-chat',
      summary: 'The same in Chinese, with a real model.',
    },
  ],
  exits: [
    [0, 'it was played'],
    [1, 'the model could not answer, or the configuration cannot be used'],
  ],
  run: runDemo,
};
