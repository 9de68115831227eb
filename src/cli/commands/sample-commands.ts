/** The commands about recorded exchanges, for the command table. */

import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import type { CommandSpec, OptionSpec } from '../command.ts';
import { json } from '../option-words.ts';
import { runBisect } from './bisect/index.ts';
import { runReplay } from './replay/index.ts';
import { runSamples } from './samples/index.ts';

const dir: OptionSpec = {
  name: 'dir',
  value: 'DIR',
  summary: 'folder of the samples',
  default: 'samples.dir of the configuration, else $HOPGATE_HOME/samples',
};
const to: OptionSpec = {
  name: 'to',
  value: 'PROVIDER/MODEL',
  summary: 'where it is sent',
};
const edge: OptionSpec = {
  name: 'edge',
  value: 'STAGE',
  summary: 'which request of the sample; one that went to a vendor goes there as it is',
  default: 'client-request',
};
const noRepair: OptionSpec = {
  name: 'no-repair',
  summary: 'send it through the gateway without any of its repairs',
};
const protocol: OptionSpec = {
  name: 'protocol',
  value: 'NAME',
  summary: 'how a body in a file speaks',
  choices: PROTOCOL_NAMES,
  default: 'guessed from the body',
};

export const SAMPLE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'samples',
    group: 'Investigate',
    summary: 'list recorded exchanges, show one, compare its edges',
    description: [
      'What is kept is decided by samples.mode: errors (the default), all, or off. Credentials are masked at equal length before anything is written.',
      'samples list (or no action): a table. show ID: the timeline of one exchange. diff ID [A] [B]: what changed between two edges, and which rule did it. export ID, import FILE: single files to carry elsewhere. A part of an id is enough.',
    ],
    arguments: [
      {
        name: 'action',
        summary: 'what to do, and with which ids, edges or files',
        choices: ['list', 'show', 'diff', 'export', 'import'],
        many: true,
      },
    ],
    options: [
      { name: 'since', value: 'TIME', summary: 'not older: 30m, 2h, 7d, or a date' },
      { name: 'until', value: 'TIME', summary: 'older than this' },
      {
        name: 'status',
        value: 'STATUS',
        summary:
          '500, 5xx, ok, failed, cut (the answer broke off), unfinished (the recording process died), open, or several with commas',
      },
      {
        name: 'model',
        short: 'm',
        value: 'NAME',
        summary: 'part of the name of the model or target; * and ? as in globs',
      },
      { name: 'note', value: 'NAME', summary: 'something was changed by this rule' },
      {
        name: 'session',
        value: 'ID',
        summary: "the client's conversation, or the beginning of its name",
      },
      {
        name: 'entry',
        value: 'PROTOCOL',
        summary: 'what the client spoke',
        choices: PROTOCOL_NAMES,
      },
      { name: 'error', value: 'KIND', summary: 'kind of error: rate_limit, upstream, timeout, …' },
      {
        name: 'limit',
        short: 'n',
        value: 'N',
        summary: 'so many at most',
        default: '50',
        range: [1, 1_000_000],
      },
      { name: 'redact', summary: 'export: blank texts and images, lengths and structure kept' },
      {
        name: 'output',
        short: 'o',
        value: 'FILE',
        summary: 'export: write there',
        default: 'stdout',
      },
      dir,
      json(),
    ],
    examples: [
      {
        line: 'hopgate samples --status failed --since 1d',
        summary: 'What went wrong since yesterday.',
      },
      {
        line: 'hopgate samples show s7i9w6',
        summary: 'One exchange: its hops, sizes, times and notes.',
      },
      {
        line: 'hopgate samples diff s7i9w6',
        summary: 'What the gateway made of the request, and why.',
      },
      {
        line: 'hopgate samples export s7i9w6 --redact -o report.json',
        summary: 'One file for a bug report.',
      },
    ],
    exits: [
      [0, 'told'],
      [1, 'the configuration or a file cannot be used'],
    ],
    run: runSamples,
  },
  {
    name: 'replay',
    group: 'Investigate',
    summary: 'send recorded requests again and compare what comes of it',
    description: [
      'Sends through a gateway in this process, with the configuration as it is now: no server need run. Every request is sent once, without retries, so that failures count as what they are.',
      '--compare sends every request under both settings by turns, and says whether their failure rates differ by more than chance. Settings: profile.FACT=VALUE, profile=NAME, to=PROVIDER/MODEL, repair=on|off, body.MEMBER=VALUE, or a key of the configuration.',
    ],
    arguments: [
      {
        name: 'what',
        summary: 'ids, files, folders of samples; with --compare the second setting',
        many: true,
      },
    ],
    options: [
      { name: 'last', value: 'N', summary: 'the newest N samples', range: [1, 10_000] },
      {
        name: 'where',
        value: 'CONDITIONS',
        summary: 'with --last: "status=5xx model=glm* note=… since=2h"',
      },
      to,
      { name: 'repeat', value: 'N', summary: 'how often each', default: '1', range: [1, 1000] },
      {
        name: 'compare',
        value: 'SETTING',
        summary: 'compare this setting with the one that follows',
      },
      edge,
      noRepair,
      protocol,
      dir,
      json(),
    ],
    examples: [
      {
        line: 'hopgate replay --last 5 --where status=5xx',
        summary: 'Do the last five failures still fail?',
      },
      {
        line: 'hopgate replay s7i9w6 --to glm/glm-4.6 --repeat 10',
        summary: 'Does another model take it?',
      },
      {
        line: 'hopgate replay s7i9w6 --repeat 20 --compare repair=on repair=off',
        summary: 'Do the repairs help, or was it luck?',
      },
    ],
    exits: [
      [0, 'sent; what came of it is in the table'],
      [1, 'the configuration cannot be used'],
    ],
    run: runReplay,
  },
  {
    name: 'bisect',
    group: 'Investigate',
    summary: 'find the smallest request that still fails in the same way',
    description: [
      'Leaves out messages, tools, fields, parts and halves of texts, keeping every candidate valid for its protocol, until nothing more can go; then says what the smallest failing request holds that the nearest passing one does not. Works for errors, for streams that break off, and for answers with nothing in them.',
      'Failures that come and go are asked for more often. Every probe is a request that the vendor may charge for; --budget bounds them. Ctrl-C ends it with what is known; the same command later goes on from there. Both requests become samples.',
    ],
    arguments: [{ name: 'what', summary: 'an id, or a file with a request', required: true }],
    options: [
      {
        name: 'budget',
        value: 'N',
        summary: 'requests that may be sent',
        default: '100',
        range: [1, 100_000],
      },
      to,
      edge,
      noRepair,
      { name: 'fresh', summary: 'forget what an earlier run of the same found' },
      protocol,
      dir,
      json(),
    ],
    examples: [
      { line: 'hopgate bisect s7i9w6', summary: 'What in this request makes the vendor fail?' },
      {
        line: 'hopgate bisect s7i9w6 --edge provider-request --budget 40',
        summary: 'The request as the vendor got it, in at most 40 probes.',
      },
      { line: 'hopgate bisect ./request.json --to glm/glm-4.7', summary: 'Any request in a file.' },
    ],
    exits: [
      [0, 'found'],
      [1, 'it does not fail (any more), or the configuration cannot be used'],
      [3, 'the budget was spent before anything was found'],
    ],
    run: runBisect,
  },
];
