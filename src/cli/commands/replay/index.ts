import { checkReplay, type ReplayOptions } from '../../../samples/replay/check-replay.ts';
import { pricesOf } from '../../../samples/replay/cost.ts';
import { readEdit } from '../../../samples/replay/edits.ts';
import { planReplay } from '../../../samples/replay/plan.ts';
import { replay } from '../../../samples/replay/replay.ts';
import { runsAsJson } from '../../../samples/replay/runs.ts';
import type { RequestEdit } from '../../../samples/replay/types.ts';
import {
  type CommandSpec,
  type Invocation,
  JSON_OPTION,
  partsOf,
  UsageError,
} from '../../command.ts';
import { loadOrReport } from '../../load-config.ts';
import { openSampleStore } from '../samples/open-samples.ts';
import { BODY_PROTOCOL, NO_REPAIR, SAMPLES_DIR, STAGE, TO, YES } from '../samples/options.ts';
import { printRuns } from './run-table.ts';
import { selectSources } from './source.ts';
import { agreed, planText } from './spend.ts';

export const REPLAY: CommandSpec = {
  name: 'replay',
  group: 'debug',
  summary: 'send recorded requests again and compare the results',
  description: [
    'Sends requests through a gateway in this process, with the current configuration; no server needs to run. Every request is sent once, without retries, so that every failure is seen.',
    '--compare sends every request alternately with both settings, and says whether their failure rates differ by more than chance. Settings: profile.FACT=VALUE, profile=NAME, to=PROVIDER/MODEL, repair=on|off, body.MEMBER=VALUE, or a key of the configuration.',
  ],
  arguments: [
    {
      name: 'what',
      summary: 'ids, files or folders of samples; with --compare, the second setting',
      many: true,
      offers: 'samples',
    },
  ],
  options: {
    last: { value: 'N', summary: 'the newest N samples', range: [1, 10_000] },
    where: { value: 'CONDITIONS', summary: 'with --last: "status=5xx model=glm* note=… since=2h"' },
    to: { ...TO, summary: 'the target; several, separated by commas, are compared' },
    edit: {
      value: 'MEMBER=VALUE',
      summary:
        'change the request first: temperature=0, model=…, "messages[0].content=…"; more may follow',
    },
    full: { summary: 'print all answers in full, even if there are several' },
    yes: YES,
    repeat: {
      value: 'N',
      summary: 'how many times to send each request',
      default: '1',
      range: [1, 1000],
    },
    compare: { value: 'SETTING', summary: 'compare this setting with the next one' },
    stage: STAGE,
    'no-repair': NO_REPAIR,
    protocol: BODY_PROTOCOL,
    dir: SAMPLES_DIR,
    json: JSON_OPTION,
  },
  examples: {
    'hopgate replay --last 5 --where status=5xx': 'Do the last five failures still fail?',
    'hopgate replay s7i9w6 --to glm/glm-4.6 --repeat 10': 'Does another model accept it?',
    'hopgate replay s7i9w6 --to glm/glm-4.6,deepseek/deepseek-v4-flash --edit temperature=0':
      'What do two models answer, and what does each cost?',
    'hopgate replay s7i9w6 --repeat 20 --compare repair=on repair=off':
      'Do the repairs help, or was it luck?',
  },
  exits: {
    0: 'sent; the table shows the results',
    1: 'the configuration cannot be used, or you did not answer yes',
  },
  run: runReplay,
};

async function runReplay(invocation: Invocation): Promise<number> {
  const config = await loadOrReport(invocation);
  if (config === undefined) return 1;
  const store = openSampleStore(config, invocation);
  const { out, err, flag, number, text, io } = invocation;
  try {
    const [targets, compare, edits] = splitArguments(invocation);
    const options: ReplayOptions = {
      config,
      sources: await selectSources(store, targets, invocation),
      to: partsOf(text('to') ?? ''),
      edits,
      repair: !flag('no-repair'),
      compare,
      repeat: number('repeat') ?? 1,
      onRun: ({ source, sent }, done, total) => {
        if (io.stderr.isTTY) err.line(`${done}/${total} ${source} ${sent.status}`);
      },
    };
    const services = { ...(await invocation.services()), environment: io.environment };
    checkReplay(options, services);
    const plan = planReplay(options, pricesOf(config), services.protocols);
    err.line(planText(plan));
    if (plan.requests >= ASKED && !(await agreed('Send them?', invocation))) return 1;
    const { runs, comparison } = await replay(options, services);
    if (flag('json')) out.line(JSON.stringify(runsAsJson(runs, comparison), null, 2));
    else printRuns(out, runs, comparison, flag('full'));
    return 0;
  } finally {
    store.close();
  }
}

/** Requests from which on a person is asked first. */
const ASKED = 20;

function editOf(written: string): RequestEdit {
  const edit = readEdit(written);
  if (edit === undefined) throw new UsageError(`"${written}" is not an edit: write MEMBER=VALUE.`);
  return edit;
}

/** The arguments: what to send, with --compare further settings, else with --edit further edits. */
function splitArguments({
  arguments: words,
  text,
}: Invocation): readonly [string[], string[], RequestEdit[]] {
  const first = text('compare');
  const edit = text('edit');
  const setting = (word: string) => /^[A-Za-z_.[\]\d]+=/.test(word);
  if (first === undefined) {
    if (edit === undefined) return [[...words], [], []];
    const edits = [edit, ...words.filter(setting)].map(editOf);
    return [words.filter((word) => !setting(word)), [], edits];
  }
  if (!setting(first)) throw new UsageError(`"${first}" is no setting: write KEY=VALUE.`);
  const edits = edit === undefined ? [] : [editOf(edit)];
  return [words.filter((word) => !setting(word)), [first, ...words.filter(setting)], edits];
}
