/** The commands that write configurations, ours and those of clients, for the command table. */

import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { CommandSpec, OptionSpec } from '../command.ts';
import { json } from '../option-words.ts';
import { runInit } from './init/index.ts';
import { CLIENT_NAMES, runSetup } from './setup/index.ts';

const yes: OptionSpec = { name: 'yes', short: 'y', summary: 'do not ask' };

export const INIT: CommandSpec = {
  name: 'init',
  group: 'Set up',
  summary: 'write a configuration by answering a few questions',
  description: [
    'Vendors whose keys stand in the environment are preselected; keys are referred to, not copied. A file that exists is never written over without --force.',
  ],
  options: [
    { ...yes, summary: 'ask nothing; take what the environment offers' },
    { name: 'force', summary: 'write over a file that exists' },
    { name: 'providers', value: 'NAMES', summary: 'vendors, separated by commas' },
    {
      name: 'listen',
      value: 'HOST:PORT',
      summary: 'address and port',
      default: '127.0.0.1:5520',
    },
    { name: 'auth', summary: 'make up a key that clients must send' },
  ],
  examples: [
    { line: 'hopgate init', summary: 'Asks, and writes ~/.config/hopgate/hopgate.yaml.' },
    {
      line: 'hopgate init --yes --providers glm,deepseek --config ./hopgate.yaml',
      summary: 'For scripts: two vendors, a file of your own.',
    },
  ],
  exits: [
    [0, 'written'],
    [1, 'not written: the file exists, or it was cancelled'],
  ],
  run: runInit,
};

export const SETUP: CommandSpec = {
  name: 'setup',
  group: 'Set up',
  summary: 'point a client at this gateway, or back',
  description: [
    'Shows what would change in the settings of the client, asks, and writes. Everything else in the file stays; the bytes of before are kept, and --revert puts them back.',
    'claude: the env block of ~/.claude/settings.json. codex: a provider in ~/.codex/config.toml. opencode: a provider in ~/.config/opencode/opencode.json.',
  ],
  arguments: [{ name: 'client', summary: 'what to set up', required: true, choices: CLIENT_NAMES }],
  options: [
    {
      name: 'model',
      short: 'm',
      value: 'NAME',
      summary: 'the model to ask for',
      default: 'claude: none where a route takes claude-*; else the first of the configuration',
    },
    { name: 'small-model', value: 'NAME', summary: 'claude: the model for small side jobs' },
    {
      name: 'context',
      value: 'N',
      summary: 'context window of the model in tokens, where it is not known here',
      range: [1000, 100_000_000],
    },
    {
      name: 'protocol',
      value: 'NAME',
      summary: 'opencode: what it should speak',
      choices: PROTOCOL_NAMES,
      default: 'openai-chat',
    },
    { name: 'url', value: 'URL', summary: 'where the gateway is, when not on this machine' },
    { name: 'key', value: 'KEY', summary: 'the key to send', default: 'the first of auth.keys' },
    { name: 'show', summary: 'only show what would be written' },
    { name: 'dry-run', summary: 'the same as --show' },
    json('with --show: print JSON'),
    { name: 'revert', summary: 'put back what was there before' },
    yes,
  ],
  examples: [
    { line: 'hopgate setup claude', summary: 'Claude Code asks this gateway from now on.' },
    {
      line: 'hopgate setup codex --model glm-4.7 --yes',
      summary: 'Codex, with one model, unasked.',
    },
    { line: 'hopgate setup claude --revert', summary: 'Takes it back.' },
  ],
  exits: [
    [0, 'written, or nothing to do'],
    [1, 'not written'],
  ],
  run: runSetup,
};
