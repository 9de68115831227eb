/** `hopgate bisect`: finds the smallest request that still fails in the same way, and says what is in it. */

import type { Config } from '../../../config/config.ts';
import {
  type BisectionResult,
  bisection,
  bisectionAsJson,
  DEFAULT_BUDGET,
} from '../../../samples/bisect/run.ts';
import type { ProbeReport } from '../../../samples/bisect/types.ts';
import type { ReplaySource } from '../../../samples/replay/source.ts';
import type { SampleStore } from '../../../samples/sample.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { loadOrTell } from '../../load-config.ts';
import { sourceNamed } from '../replay/source.ts';
import { bookBeside } from '../samples/book.ts';
import { bytes } from '../samples/units.ts';

/** Exit 0 when a cause was found; 1 when it does not fail, 3 when the search was ended early without one. */
export async function runBisect(invocation: Invocation): Promise<number> {
  const config = await loadOrTell(invocation);
  if (config === undefined) return 1;
  const book = bookBeside(config, invocation);
  try {
    const named = invocation.arguments[0];
    if (named === undefined) throw new UsageError('"hopgate bisect" needs an id or a file.');
    return await bisectSource(book, config, sourceNamed(book, named, invocation), invocation);
  } finally {
    book.close();
  }
}

async function bisectSource(
  book: SampleStore,
  config: Config,
  source: ReplaySource,
  invocation: Invocation,
): Promise<number> {
  const { deps, io, out, err, flag, number, text } = invocation;
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.on('SIGINT', interrupt);
  let found: BisectionResult;
  try {
    found = await bisection(
      {
        config,
        source,
        store: book,
        to: text('to'),
        repair: !flag('no-repair'),
        budget: number('budget') ?? DEFAULT_BUDGET,
        fresh: flag('fresh'),
        signal: stop.signal,
        onResume: (known) =>
          err.line(
            `Going on with an earlier run: ${known} answers are known (--fresh forgets them).`,
          ),
        onProbe: (probe) => progress(probe, invocation),
      },
      { ...deps, environment: io.environment },
    );
  } finally {
    process.off('SIGINT', interrupt);
  }
  if (flag('json')) out.line(JSON.stringify(bisectionAsJson(found), null, 2));
  else tell(found, source, invocation);
  const { result, cause } = found.report;
  if (result === 'does-not-fail') return 1;
  return cause === undefined && result === 'partial' ? 3 : 0;
}

function progress(
  { spent, verdict, phase, best }: ProbeReport,
  { err, flag, io }: Invocation,
): void {
  if (flag('json') && !io.stderr.isTTY) return;
  const words = { same: 'fails', passes: 'passes', other: 'fails otherwise' }[verdict];
  err.line(
    err.paint(
      'dim',
      `${String(spent).padStart(4)}  ${phase.padEnd(8)}  ${words.padEnd(15)}  smallest so far ${bytes(best)}`,
    ),
  );
}

function tell(
  { report, samples, wanted, other }: BisectionResult,
  source: ReplaySource,
  { out }: Invocation,
): void {
  const failure = wanted?.failure;
  if (report.result === 'does-not-fail') {
    out.line(`${source.name}: ${report.words}.`);
    if (other !== undefined) {
      out.line(`It fails differently now: ${other.status} ${other.failure?.message ?? ''}`);
      if (failure !== undefined) out.line(`Looked for was: ${wanted?.status} ${failure.message}`);
    }
    return;
  }
  out.line(out.paint('bold', report.words));
  out.line();
  if (failure !== undefined) {
    const rate =
      report.failure_rate < 1 ? `, ${Math.round(report.failure_rate * 100)} % of the time` : '';
    out.line(`fails with  ${wanted?.status} ${failure.message}${rate}`);
  }
  const partial =
    report.result === 'partial' ? ' (not the smallest yet: run it again to go on)' : '';
  out.line(`probes      ${report.probes}${partial}`);
  out.line(
    `minimal     ${bytes(Buffer.byteLength(JSON.stringify(report.minimal)))}${samples.minimal === null ? '' : `  ${samples.minimal}`}`,
  );
  if (samples.passing !== null) out.line(`passes      ${samples.passing}`);
  if (report.cause !== undefined) out.line(`in minimal  ${report.cause.in_minimal}`);
}
