/** Prints the results of a replay: a table, failure rates, and whether their difference is more than chance. */

import { printableLines } from '../../../lib/text/printable-text.ts';
import type { RequestOutcome } from '../../../samples/replay/outcome.ts';
import {
  type Comparison,
  type ReplayedRequest,
  SIGNIFICANT,
} from '../../../samples/replay/runs.ts';
import { fittingTable, type Terminal } from '../../terminal.ts';
import { millis, percent } from '../samples/units.ts';

const resultText = ({ status, failure }: RequestOutcome) =>
  failure === undefined
    ? String(status)
    : `${status} ${failure.how === 'error' ? failure.kind : failure.how}`;
const shorter = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

export function printRuns(
  out: Terminal,
  runs: readonly ReplayedRequest[],
  { settings, p }: Comparison,
): void {
  const compared = settings.length > 1;
  const head = [
    'SAMPLE',
    ...(compared ? ['SETTING'] : []),
    'BEFORE',
    'STATUS',
    'ERROR',
    'PROMPT',
    'OUTPUT',
    'TIME',
    'TARGET',
  ];
  const rows = runs.map(({ source, setting, sent, before }) => [
    source,
    ...(compared ? [setting] : []),
    before === undefined ? '' : resultText(before),
    String(sent.status),
    out.columns === undefined
      ? (sent.failure?.message ?? '').replace(/\s+/g, ' ')
      : shorter(sent.failure?.message ?? ''),
    String(sent.promptTokens ?? ''),
    String(sent.outputTokens ?? ''),
    millis(sent.total),
    sent.target,
  ]);
  const [first, ...lines] = fittingTable(rows, head, out.columns, ['PROMPT', 'OUTPUT', 'ERROR']);
  out.line(out.paint('bold', first!));
  lines.forEach((line, i) => {
    out.line(runs[i]!.sent.failure === undefined ? line : out.paint('red', line));
  });
  if (runs.length === 1) printAnswers(out, runs[0]!);
  if (runs.length < 2) return;
  out.line();
  for (const { setting, failed, passed, rate, interval } of settings) {
    const range = `${percent(interval[0])} to ${percent(interval[1])}`;
    const name = setting === '' ? '' : `${setting}: `;
    out.line(
      `${name}${failed} of ${failed + passed} failed (${percent(rate)}; 95 % interval ${range})`,
    );
  }
  if (p === undefined) return;
  const verdict =
    p < SIGNIFICANT
      ? 'the difference is more than chance'
      : 'the difference may be chance: repeat more often to know';
  out.line(
    `${verdict} (Fisher's exact test, p = ${p < 0.001 ? p.toExponential(1) : p.toFixed(3)})`,
  );
}

/** Both answers of a single run in full; several runs give their answers with `--json`. */
function printAnswers(out: Terminal, { sent, before }: ReplayedRequest): void {
  const same = before?.answer !== undefined && before.answer === sent.answer;
  const took = before?.total === undefined ? '' : ` (${millis(before.total)})`;
  if (before?.answer !== undefined && !same) {
    out.line();
    out.line(out.paint('bold', `The recorded answer${took}`));
    out.line(printableLines(before.answer));
  }
  if (sent.answer === undefined) return;
  out.line();
  const title = same ? 'The answer, the same as recorded' : 'The new answer';
  out.line(out.paint('bold', `${title} (${millis(sent.total)})`));
  out.line(printableLines(sent.answer));
}
