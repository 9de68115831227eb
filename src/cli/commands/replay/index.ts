/** `hopgate replay`: sends recorded requests again and compares the results. */

import { parseWhere } from '../../../samples/replay/filter.ts';
import { replay } from '../../../samples/replay/replay.ts';
import { runsAsJson } from '../../../samples/replay/runs.ts';
import { fromSample, type ReplaySource } from '../../../samples/replay/source.ts';
import type { SampleStore } from '../../../samples/sample.ts';
import { type CommandSpec, type Invocation, UsageError } from '../../command.ts';
import { loadOrReport } from '../../load-config.ts';
import { jsonOption } from '../../shared-options.ts';
import { openSampleStore } from '../samples/open-samples.ts';
import { BODY_PROTOCOL, NO_REPAIR, SAMPLES_DIR, STAGE, TO } from '../samples/options.ts';
import { printRuns } from './run-table.ts';
import { sourcesNamed } from './source.ts';

export const REPLAY: CommandSpec = {
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
      offers: 'samples',
    },
  ],
  options: [
    { name: 'last', value: 'N', summary: 'the newest N samples', range: [1, 10_000] },
    {
      name: 'where',
      value: 'CONDITIONS',
      summary: 'with --last: "status=5xx model=glm* note=… since=2h"',
    },
    TO,
    { name: 'repeat', value: 'N', summary: 'how often each', default: '1', range: [1, 1000] },
    {
      name: 'compare',
      value: 'SETTING',
      summary: 'compare this setting with the one that follows',
    },
    STAGE,
    NO_REPAIR,
    BODY_PROTOCOL,
    SAMPLES_DIR,
    jsonOption(),
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
};

/** Exit 0; 1 when the configuration cannot be used. */
async function runReplay(invocation: Invocation): Promise<number> {
  const config = await loadOrReport(invocation);
  if (config === undefined) return 1;
  const store = openSampleStore(config, invocation);
  const { out, err, flag, number, text, io, deps } = invocation;
  try {
    const [targets, compare] = splitArguments(invocation);
    const { runs, comparison } = await replay(
      {
        config,
        sources: await selectSources(store, targets, invocation),
        to: text('to'),
        repair: !flag('no-repair'),
        compare,
        repeat: number('repeat') ?? 1,
        onRun: ({ source, sent }, done, total) => {
          if (io.stderr.isTTY) err.line(`${done}/${total} ${source} ${sent.status}`);
        },
      },
      { ...deps, environment: io.environment },
    );
    if (flag('json')) out.line(JSON.stringify(runsAsJson(runs, comparison), null, 2));
    else printRuns(out, runs, comparison);
    return 0;
  } finally {
    store.close();
  }
}

/** The arguments: what to send, and with --compare further settings. */
function splitArguments({ arguments: words, text }: Invocation): readonly [string[], string[]] {
  const first = text('compare');
  const setting = (word: string) => /^[A-Za-z_.]+=/.test(word);
  if (first === undefined) return [[...words], []];
  if (!setting(first)) throw new UsageError(`"${first}" is no setting: write KEY=VALUE.`);
  return [words.filter((word) => !setting(word)), [first, ...words.filter(setting)]];
}

async function selectSources(
  store: SampleStore,
  named: readonly string[],
  invocation: Invocation,
): Promise<readonly ReplaySource[]> {
  const { number, text } = invocation;
  const last =
    number('last') ?? (named.length === 0 && text('where') !== undefined ? 1 : undefined);
  if (last !== undefined) {
    const filter = parseWhere(text('where') ?? '', Date.now());
    const stage = text('stage') ?? 'client-request';
    const found = store.list(filter).flatMap(({ id }) => {
      const meta = store.find(id);
      return meta?.edges.some((edge) => edge.stage === stage) === true ? [meta] : [];
    });
    if (found.length === 0) throw new UsageError(`No sample in ${store.root} fits.`);
    const wanted = found.slice(0, last);
    for (const meta of wanted) await store.fetch(meta);
    return wanted.map((meta) => fromSample(store, meta, stage));
  }
  if (named.length === 0)
    throw new UsageError('"hopgate replay" needs an id, a file, or --last N.');
  return sourcesNamed(store, named, invocation);
}
