import { ENDPOINT_NAMES } from '../../../conversation/models/endpoint-names.ts';
import { PROTOCOL_NAMES } from '../../../conversation/protocol-names.ts';
import { type CommandSpec, type Invocation, JSON_OPTION, UsageError } from '../../command.ts';
import { runDiff } from './diff.ts';
import { exportSamples, importSamples } from './export-import.ts';
import { runList } from './list.ts';
import { openSamples } from './open-samples.ts';
import { SAMPLES_DIR } from './options.ts';
import { runSessions } from './sessions.ts';
import { runShow } from './show.ts';

const ACTIONS = {
  list: runList,
  sessions: runSessions,
  show: runShow,
  diff: runDiff,
  export: exportSamples,
  import: importSamples,
};

export const SAMPLES: CommandSpec = {
  name: 'samples',
  group: 'debug',
  summary: 'list, show, compare, export and import recorded exchanges',
  description: [
    'samples.mode in the configuration decides what is recorded: errors (the default), all, or off. Credentials are masked, at equal length, before anything is written.',
    'samples list (or no action) prints a table; samples sessions prints one line for each conversation of a client, with its tokens, the share read from the cache of the vendor, and its cost. show ID prints the timeline of one exchange, show ID STAGE the body of one stage. diff ID [A] [B] prints what changed between two stages, and which rule changed it. Between two protocols it compares by meaning and prints one line for each part that says the same in another form. export ID and import FILE move single exchanges between machines. A part of an id is enough.',
    'On a terminal, long values are shortened; --full prints them in full. In a pipe, nothing is shortened, and bodies are written byte for byte.',
  ],
  arguments: [
    {
      name: 'action',
      summary: 'what to do; list if left out',
      choices: Object.keys(ACTIONS),
    },
    { name: 'id', summary: 'the exchange; import: a file', offers: 'samples' },
    {
      name: 'stage',
      summary: 'show: the body to print; diff: the two stages to compare; import: more files',
      many: true,
      offers: 'stages',
    },
  ],
  options: {
    since: { value: 'TIME', summary: 'only newer than this: 30m, 2h, 7d, or a date' },
    until: { value: 'TIME', summary: 'only older than this' },
    status: {
      value: 'STATUS',
      summary:
        '500, 5xx, ok, failed, cut (the answer broke off), unfinished (the recording process died), open, or several with commas',
    },
    model: {
      short: 'm',
      value: 'NAME',
      summary: 'part of the name of the model or target; * and ? as in globs',
    },
    search: {
      value: 'TEXT',
      summary: 'list: exchanges that said all these words; quotes hold words together',
    },
    note: { value: 'NAME', summary: 'changed by the rule of this name' },
    session: { value: 'ID', summary: "the client's conversation, or the beginning of its name" },
    protocol: {
      aliases: ['entry'],
      value: 'NAME',
      summary: "the client's protocol, or another endpoint",
      choices: [...PROTOCOL_NAMES, ...ENDPOINT_NAMES],
    },
    made: {
      value: 'BY',
      summary: 'traffic: from clients; bisect: stored by hopgate bisect',
      choices: ['traffic', 'bisect'],
    },
    error: { value: 'KIND', summary: 'kind of error: rate_limit, upstream, timeout, …' },
    limit: {
      short: 'n',
      value: 'N',
      summary: 'at most this many',
      default: '50',
      range: [1, 1_000_000],
    },
    full: { summary: 'show, diff: print long values in full on a terminal, too' },
    raw: { summary: 'diff: compare the JSON, even between two protocols' },
    ids: { summary: 'list: print only ids, one per line' },
    redact: { summary: 'export: blank texts and images, lengths and structure kept' },
    output: { short: 'o', value: 'FILE', summary: 'export: write there', default: 'stdout' },
    dir: SAMPLES_DIR,
    json: JSON_OPTION,
  },
  examples: {
    'hopgate samples --status failed --since 1d': 'Lists what has failed since yesterday.',
    'hopgate samples --search "permission denied"':
      'Lists the exchanges that said this, with the place.',
    'hopgate samples sessions': 'Lists conversations and what they cost.',
    'hopgate samples show s7i9w6': 'Shows one exchange: its hops, sizes, times and notes.',
    'hopgate samples show s7i9w6 client-request --full':
      'Prints the request as the client sent it.',
    'hopgate samples show s7i9w6 provider-request | jq .messages[-1]':
      'Prints the last message that the vendor got.',
    'hopgate samples diff s7i9w6': 'Shows what the gateway changed in the request, and why.',
    'hopgate samples export s7i9w6 --redact -o report.json': 'Writes one file for a bug report.',
  },
  exits: { 0: 'printed, even if nothing matches', 1: 'the configuration or a file cannot be used' },
  run: runSamples,
};

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
