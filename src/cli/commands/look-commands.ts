/** The commands that say what is so, and change nothing, for the command table. */

import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { CommandSpec } from '../command.ts';
import { json } from '../option-words.ts';
import { runCheck } from './check.ts';
import { runDoctor } from './doctor/index.ts';
import { runModels } from './models.ts';
import { runVersion } from './version.ts';

export const CHECK: CommandSpec = {
  name: 'check',
  group: 'Look',
  summary: 'say whether the configuration is right',
  description: [
    'Problems are told as FILE:LINE:COLUMN, with what was probably meant. --schema prints the JSON Schema of the file, for editors.',
  ],
  options: [json(), { name: 'schema', summary: 'print the JSON Schema of hopgate.yaml' }],
  examples: [
    {
      line: 'hopgate check --config ./hopgate.yaml',
      summary: 'Checks a file before it is used.',
    },
    { line: 'hopgate check --schema > hopgate.schema.json', summary: 'Completion in an editor.' },
  ],
  exits: [
    [0, 'it can be used'],
    [1, 'it cannot'],
  ],
  run: runCheck,
};

export const DOCTOR: CommandSpec = {
  name: 'doctor',
  group: 'Look',
  summary: 'try everything that can be wrong, and say what to do',
  description: [
    'Checks the configuration, this machine, and every provider: its name, the connection, each key, the model list, and an answer of one token (which the vendor may charge for). No secret is printed.',
  ],
  options: [
    { name: 'provider', value: 'NAME', summary: 'only this provider' },
    {
      name: 'model',
      short: 'm',
      value: 'NAME',
      summary: 'try this model',
      default: 'the first that the provider names',
    },
    { name: 'no-completion', summary: 'do not ask for an answer' },
    {
      name: 'timeout',
      value: 'SECONDS',
      summary: 'patience with each request',
      default: '20',
      range: [1, 600],
    },
    json(),
  ],
  examples: [
    { line: 'hopgate doctor', summary: 'Everything.' },
    {
      line: 'hopgate doctor --provider glm --model glm-4.7',
      summary: 'One model of one provider.',
    },
  ],
  exits: [
    [0, 'nothing failed'],
    [1, 'something did'],
  ],
  run: runDoctor,
};

export const MODELS: CommandSpec = {
  name: 'models',
  group: 'Look',
  summary: 'list models and where they go, or explain a request',
  description: [
    'Where a provider takes names by pattern, its vendor is asked what it serves; one that does not answer within two seconds is listed as the configuration names it.',
    '--explain takes the name of a model, a request body as JSON, or @FILE with one, and tells which rule decides and why.',
  ],
  options: [
    { name: 'explain', value: 'REQUEST', summary: 'a model name, a JSON body, or @FILE' },
    {
      name: 'protocol',
      value: 'NAME',
      summary: 'with --explain: what the client speaks',
      choices: PROTOCOL_NAMES,
      default: 'guessed from the body',
    },
    { name: 'offline', summary: 'ask no vendor: only the names in the configuration' },
    json(),
  ],
  examples: [
    { line: 'hopgate models', summary: 'A table.' },
    { line: 'hopgate models --explain claude-sonnet-4-5', summary: 'Where a name goes.' },
    { line: 'hopgate models --explain @request.json', summary: 'Where a recorded request goes.' },
  ],
  exits: [
    [0, 'told'],
    [1, 'the configuration cannot be used, or nothing takes the request'],
  ],
  run: runModels,
};

export const VERSION: CommandSpec = {
  name: 'version',
  group: 'Look',
  summary: 'print the version',
  description: ['Version, commit (of a build), bun and platform.'],
  options: [json()],
  examples: [{ line: 'hopgate version --json', summary: 'For scripts and bug reports.' }],
  exits: [[0, 'always']],
  run: runVersion,
};
