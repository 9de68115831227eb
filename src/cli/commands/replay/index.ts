/** `hopgate replay`: sends recorded requests again and lays what comes of it side by side. */

import { parseWhere } from '../../../samples/replay/filter.ts';
import { replay } from '../../../samples/replay/replay.ts';
import { runsAsJson } from '../../../samples/replay/runs.ts';
import { fromSample, type ReplaySource } from '../../../samples/replay/source.ts';
import type { SampleStore } from '../../../samples/sample.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { loadOrTell } from '../../load-config.ts';
import { bookBeside } from '../samples/book.ts';
import { sourcesNamed } from './source.ts';
import { tellRuns } from './tell-runs.ts';

/** Exit 0; 1 when the configuration cannot be used. */
export async function runReplay(invocation: Invocation): Promise<number> {
  const config = await loadOrTell(invocation);
  if (config === undefined) return 1;
  const book = bookBeside(config, invocation);
  const { out, err, flag, number, text, io, deps } = invocation;
  try {
    const [targets, compare] = split(invocation);
    const { runs, comparison } = await replay(
      {
        config,
        sources: sourcesOf(book, targets, invocation),
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
    else tellRuns(out, runs, comparison);
    return 0;
  } finally {
    book.close();
  }
}

/** Arguments are what to send, and with --compare further settings. */
function split({ arguments: words, text }: Invocation): readonly [string[], string[]] {
  const first = text('compare');
  const setting = (word: string) => /^[A-Za-z_.]+=/.test(word);
  if (first === undefined) return [[...words], []];
  if (!setting(first)) throw new UsageError(`"${first}" is no setting: write KEY=VALUE.`);
  return [words.filter((word) => !setting(word)), [first, ...words.filter(setting)]];
}

function sourcesOf(
  book: SampleStore,
  named: readonly string[],
  invocation: Invocation,
): readonly ReplaySource[] {
  const { number, text } = invocation;
  const last =
    number('last') ?? (named.length === 0 && text('where') !== undefined ? 1 : undefined);
  if (last !== undefined) {
    const filter = parseWhere(text('where') ?? '', Date.now());
    const stage = text('edge') ?? 'client-request';
    const found = book.list(filter).flatMap(({ id }) => {
      const meta = book.find(id);
      return meta?.edges.some((edge) => edge.stage === stage) === true ? [meta] : [];
    });
    if (found.length === 0) throw new UsageError(`No sample in ${book.root} fits.`);
    return found.slice(0, last).map((meta) => fromSample(book, meta, stage));
  }
  if (named.length === 0)
    throw new UsageError('"hopgate replay" needs an id, a file, or --last N.');
  return sourcesNamed(book, named, invocation);
}
