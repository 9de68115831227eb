/** The commands about single requests and streams, for the command table. */

import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { CommandSpec } from '../command.ts';
import { json } from '../option-words.ts';
import { runLint, SHORT_NAMES } from './lint.ts';
import { runRepair } from './repair.ts';

export const REPAIR: CommandSpec = {
  name: 'repair',
  group: 'Look',
  summary: 'make tool histories valid for an API, offline',
  description: [
    'Reads request bodies from stdin, one a line, and writes {"body":…,"notes":[…]} for each: what the gateway would send, and what it changed. A body that needs nothing comes back as the very text it was; a line that is no request becomes {"error":…}.',
    'A body is taken to be of the protocol of --to, unless it can only be of another: then it is converted.',
  ],
  options: [
    {
      name: 'to',
      value: 'PROTOCOL',
      summary: 'the API that shall take it',
      choices: PROTOCOL_NAMES,
    },
    { name: 'profile', value: 'NAME', summary: 'the vendor that shall take it', default: 'none' },
    {
      name: 'from',
      value: 'PROFILE',
      summary: 'the vendor whose answers are in the history; others do not take its signatures',
      default: 'told from the signatures themselves',
    },
    { name: 'jsonl', summary: 'a JSON body a line, the only form there is' },
  ],
  examples: [
    {
      line: 'hopgate repair --to anthropic-messages --jsonl < bodies.jsonl',
      summary: 'What Anthropic would refuse of these, made valid.',
    },
  ],
  exits: [[0, 'every line was answered']],
  run: runRepair,
};

export const LINT: CommandSpec = {
  name: 'lint',
  group: 'Look',
  summary: 'say what a vendor or a client would refuse of a request or a stream',
  description: [
    "Reads one request body (JSON) or one recorded stream (SSE) from FILE or stdin, and names every place that breaks a rule, in the vendor's own words where they are known.",
    'In a stream a place begins with the number of the event, from 0.',
  ],
  arguments: [{ name: 'file', summary: 'what to read; stdin when missing or -' }],
  options: [
    {
      name: 'as',
      value: 'PROTOCOL',
      summary: 'what it is',
      choices: [...PROTOCOL_NAMES, ...Object.keys(SHORT_NAMES)],
      default: 'told from its words',
    },
    { name: 'stream', summary: 'it is a stream' },
    { name: 'vendor', value: 'PROFILE', summary: 'also what this vendor does not take' },
    {
      name: 'model',
      short: 'm',
      value: 'NAME',
      summary: 'with --vendor: the model that shall read it',
      default: 'that of the body',
    },
    json(),
  ],
  examples: [
    { line: 'hopgate lint request.json', summary: 'One request.' },
    {
      line: 'hopgate lint answer.sse --as messages --stream --json',
      summary: 'One recorded stream, for scripts.',
    },
    {
      line: 'hopgate lint request.json --vendor glm',
      summary: 'Would GLM take it, too?',
    },
  ],
  exits: [
    [0, 'nothing to complain about'],
    [1, 'there are findings'],
  ],
  run: runLint,
};
