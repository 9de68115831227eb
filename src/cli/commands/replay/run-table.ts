/** Prints the results of a replay: a table, failure rates, and whether their difference is more than chance. */

import { printableLines } from '../../../lib/text/printable-text.ts';
import type { RequestOutcome } from '../../../samples/replay/outcome.ts';
import {
  type Comparison,
  type ReplayedRequest,
  SIGNIFICANT,
} from '../../../samples/replay/runs.ts';
import { wordLines } from '../../line-diff.ts';
import { type Columns, printTable, type Terminal } from '../../terminal.ts';
import { millis, percent, usd } from '../samples/units.ts';

const resultText = ({ status, failure }: RequestOutcome) =>
  failure === undefined
    ? String(status)
    : `${status} ${failure.how === 'error' ? failure.kind : failure.how}`;
export function printRuns(
  out: Terminal,
  runs: readonly ReplayedRequest[],
  { settings, p }: Comparison,
  full: boolean,
): void {
  const compared = settings.length > 1;
  const columns: Columns<ReplayedRequest> = {
    SAMPLE: ({ source }) => source,
    ...(compared && { SETTING: ({ setting }: ReplayedRequest) => setting }),
    BEFORE: ({ before }) => (before === undefined ? '' : resultText(before)),
    STATUS: ({ sent }) => String(sent.status),
    ERROR: ({ sent }) => (sent.failure?.message ?? '').replace(/\s+/g, ' '),
    PROMPT: ({ sent }) => String(sent.promptTokens ?? ''),
    OUTPUT: ({ sent }) => String(sent.outputTokens ?? ''),
    COST: ({ cost }) => (cost === null ? '' : usd(cost)),
    FIRST: ({ sent }) => millis(sent.firstByte),
    TIME: ({ sent }) => millis(sent.total),
    TARGET: ({ sent }) => sent.target,
  };
  const narrowing = {
    spare: ['FIRST', 'PROMPT', 'OUTPUT', 'COST', 'ERROR'],
    cut: { ERROR: 16, TARGET: 16 },
  };
  printTable(out, runs, columns, narrowing, ({ sent }) =>
    sent.failure === undefined ? undefined : 'red',
  );
  const onlyOnce = settings.every(({ failed, passed }) => failed + passed < 2);
  const onlyTargets = compared && runs.length === settings.length;
  if (runs.length === 1 || full || onlyTargets) printAnswers(out, runs);
  // One run of each setting says nothing about how often it fails.
  if (runs.length < 2 || onlyOnce) return;
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

/** The recorded answers and the new ones, each with its time, tokens and cost; then what the new one says otherwise. */
function printAnswers(out: Terminal, runs: readonly ReplayedRequest[]): void {
  const told = new Set<string>();
  for (const { source, setting, sent, before, cost } of runs) {
    const { answer: old } = before ?? {};
    const same = old !== undefined && old === sent.answer;
    if (before !== undefined && old !== undefined && !same && !told.has(source)) {
      const { firstByte, total, promptTokens, outputTokens } = before;
      const facts = factsOf({ firstByte, total, promptTokens, outputTokens, cost: before.cost });
      printAnswer(out, `The recorded answer${facts}`, old);
    }
    told.add(source);
    if (sent.answer === undefined) continue;
    const { firstByte, total, promptTokens, outputTokens } = sent;
    const facts = factsOf({ firstByte, total, promptTokens, outputTokens, cost });
    const of = setting === '' ? '' : ` of ${setting.replace(/^to=/, '')}`;
    const title = same ? `The answer${of}, the same as recorded` : `The new answer${of}`;
    printAnswer(out, title + facts, sent.answer);
    if (old === undefined || same) continue;
    const lines = wordLines(true, old, sent.answer, out.columns);
    // Two texts that have hardly a word in common are not told by their differences.
    if (lines.length > MAX_LINES) continue;
    out.line();
    out.line(out.paint('bold', 'Word by word'));
    for (const { kind, text } of lines)
      out.line(out.paint(kind === 'removed' ? 'red' : 'green', text));
  }
}

/** Lines of differences that are printed. */
const MAX_LINES = 40;

function printAnswer(out: Terminal, title: string, text: string): void {
  out.line();
  out.line(out.paint('bold', title));
  out.line(printableLines(text));
}

interface AnswerFacts {
  readonly firstByte: number | undefined;
  readonly total: number | undefined;
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly cost: number | null;
}

/** ` (first byte 210 ms, 1.2 s in all, 900 tokens in, 60 out, $0.0012)`. */
function factsOf({ firstByte, total, promptTokens, outputTokens, cost }: AnswerFacts): string {
  const facts = [
    firstByte !== undefined && `first byte ${millis(firstByte)}`,
    total !== undefined && `${millis(total)} in all`,
    promptTokens !== undefined && `${promptTokens} tokens in`,
    outputTokens !== undefined && `${outputTokens} out`,
    cost !== null && usd(cost),
  ].filter((fact) => fact !== false);
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`;
}
