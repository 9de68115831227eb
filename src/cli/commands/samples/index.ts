/** `hopgate samples`: lists, shows, compares, exports and imports recorded exchanges. */

import { ENDPOINT_NAMES } from '../../../conversation/models/endpoint-names.ts';
import { PROTOCOL_NAMES } from '../../../conversation/protocol-names.ts';
import { type CommandSpec, type Invocation, UsageError } from '../../command.ts';
import { jsonOption } from '../../shared-options.ts';
import { runDiff } from './diff.ts';
import { exportSamples, importSamples } from './export-import.ts';
import { runList } from './list.ts';
import { openSamples } from './open-samples.ts';
import { SAMPLES_DIR } from './options.ts';
import { runShow } from './show.ts';

const ACTIONS = {
  list: runList,
  show: runShow,
  diff: runDiff,
  export: exportSamples,
  import: importSamples,
};

export const SAMPLES: CommandSpec = {
  name: 'samples',
  group: 'Investigate',
  summary: 'list recorded exchanges, show one, compare its stages',
  description: [
    'What is kept is decided by samples.mode: errors (the default), all, or off. Credentials are masked at equal length before anything is written.',
    'samples list (or no action): a table. show ID: the timeline of one exchange. diff ID [A] [B]: what changed between two stages, and which rule did it. export ID, import FILE: single files to carry elsewhere. A part of an id is enough.',
  ],
  arguments: [
    {
      name: 'action',
      summary: 'what to do, and with which ids, stages or files',
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
      value: 'NAME',
      summary: 'what the client spoke: a protocol, or another endpoint',
      choices: [...PROTOCOL_NAMES, ...ENDPOINT_NAMES],
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
    SAMPLES_DIR,
    jsonOption(),
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
};

/** Exit 0; 1 when the configuration or a file cannot be used. */
async function runSamples(invocation: Invocation): Promise<number> {
  const [action = 'list', ...rest] = invocation.arguments;
  if (!Object.hasOwn(ACTIONS, action)) throw new UsageError(`There is no "samples ${action}".`);
  const samples = await openSamples(invocation);
  if (samples === undefined) return 1;
  const { store, config } = samples;
  try {
    return await ACTIONS[action as keyof typeof ACTIONS](store, rest, invocation, config);
  } finally {
    store.close();
  }
}
