/** Prints what a bisection found: the cause, the bytes that matter and the smallest request that fails. */

import { valueAt } from '../../../lib/json/pointer.ts';
import { printableLines } from '../../../lib/text/printable-text.ts';
import type { BisectionResult } from '../../../samples/bisect/run.ts';
import type { ReplaySource } from '../../../samples/replay/source.ts';
import type { Invocation } from '../../command.ts';
import type { Terminal } from '../../terminal.ts';
import { bytes } from '../samples/units.ts';

/** Characters that are printed on a terminal without --full. */
const SMALL = 4000;

export function printResult(
  { report, samples, wanted, other }: BisectionResult,
  source: ReplaySource,
  { out, flag }: Invocation,
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
  const { cause, minimal } = report;
  if (cause !== undefined) {
    out.line(`in minimal  ${cause.in_minimal}`);
    const matters = valueAt(minimal, cause.in_minimal);
    out.line();
    out.line(out.paint('bold', 'The bytes that matter'));
    printWhole(
      typeof matters === 'string' ? matters : JSON.stringify(matters, null, 2),
      out,
      flag('full'),
    );
  }
  out.line();
  out.line(out.paint('bold', 'The smallest request that fails'));
  printWhole(JSON.stringify(minimal, null, 2), out, flag('full'));
}

/** The text; a long one on a terminal ends with how to see the rest. */
function printWhole(text: string, out: Terminal, full: boolean): void {
  if (full || out.columns === undefined || text.length <= SMALL) {
    out.line(printableLines(text));
    return;
  }
  out.line(printableLines(text.slice(0, SMALL)));
  out.line(out.paint('dim', `… ${text.length - SMALL} more characters; --full prints all`));
}
