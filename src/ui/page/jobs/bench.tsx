/** The recorded answer and the new ones as columns: time, tokens and cost above, and which words differ. */

import { useState } from 'preact/hooks';
import { diffText, type TextPart } from '../../../lib/text/text-diff.ts';
import type { ReplayOutcome, ReplayRun, SampleDetail } from '../../api/api.ts';
import { WordMarks } from '../diff/word-marks.tsx';
import { count, millis, usd } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { Button, Facts, StatusPill } from '../kit/ui.tsx';

/** Answers that are shown in full. */
const MAX_SHOWN = 6;
/** Below this share of equal characters, marks would cover nearly everything. */
const ALIKE = 0.15;

interface Column extends ReplayOutcome {
  readonly kind: 'recorded' | 'new';
  readonly title: string;
  readonly sub: string;
}

interface BenchProps {
  readonly runs: readonly ReplayRun[];
  readonly detail: SampleDetail;
}

export function Bench({ runs, detail: { row } }: BenchProps) {
  const [marked, setMarked] = useState(true);
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const old = before?.answer ?? null;
  const shown = runs.slice(0, MAX_SHOWN).map(
    (run): Column => ({
      ...run,
      kind: 'new',
      title: titleOf(run, runs),
      sub: run.target || targetAsked(run),
    }),
  );
  const columns: readonly Column[] =
    before === undefined
      ? shown
      : [{ ...before, kind: 'recorded', title: t`Recorded answer`, sub: row.target }, ...shown];
  const answers = shown.flatMap(({ answer }) => (answer === null ? [] : [answer]));
  const comparable = old !== null && answers.some((answer) => answer !== old);
  /** A new answer beside the recorded one; the recorded one beside the only new one. */
  const partsOf = ({ kind, answer }: Column) => {
    const other = kind === 'new' ? answer : answers.length === 1 ? answers[0] : undefined;
    if (!marked || old === null || other == null || other === old) return undefined;
    const parts = diffText(old, other);
    return isAlike(parts, old.length) ? parts : undefined;
  };
  return (
    <div class="benchbox">
      {comparable && (
        <p class="benchbar">
          <Button
            class="tiny"
            aria-pressed={marked}
            onClick={() => setMarked(!marked)}
          >{t`Mark the words that differ`}</Button>
        </p>
      )}
      <div class="bench" style={{ '--columns': String(columns.length) }}>
        {columns.map((column, i) => (
          <ColumnView key={i} column={column} parts={partsOf(column)} />
        ))}
      </div>
      {runs.length > MAX_SHOWN && (
        <p class="soft">{t`${runs.length - MAX_SHOWN} more answers are in the table alone.`}</p>
      )}
    </div>
  );
}

/** The target that a run was to go to; '' where the routes chose. A run that was refused reached none. */
const targetAsked = ({ setting }: ReplayRun): string =>
  setting?.startsWith('to=') === true ? setting.slice('to='.length) : '';

function titleOf(
  { run, setting, answer, recorded }: ReplayRun,
  runs: readonly ReplayRun[],
): string {
  const repeated = runs.some((other) => other.run > 1);
  const same = answer !== null && answer === recorded?.answer ? t` (the same text)` : '';
  const number = repeated ? t`Answer ${run}` : t`Answer now`;
  const of = setting === undefined || setting.startsWith('to=') ? '' : `, ${setting}`;
  return `${number}${of}${same}`;
}

interface ColumnViewProps {
  readonly column: Column;
  /** Undefined: nothing is marked. */
  readonly parts: readonly TextPart[] | undefined;
}

function ColumnView({ column, parts }: ColumnViewProps) {
  const { kind, title, sub, status, error, answer } = column;
  return (
    <section class="answer" data-kind={kind}>
      <h3>{title}</h3>
      <p class="soft sub">{sub || t`as routed`}</p>
      <p class="benchstate">
        <StatusPill tone={error === null ? 'ok' : 'bad'}>{status}</StatusPill>
        {error !== null && <span>{` ${error.kind}`}</span>}
      </p>
      <Facts
        class="benchfacts"
        items={[
          [t`First byte`, millis(column.first_byte_ms)],
          [t`Total`, millis(column.ms)],
          [t`Tokens in`, count(column.prompt_tokens)],
          [t`Tokens out`, count(column.output_tokens)],
          [t`Cost`, usd(column.cost)],
        ]}
      />
      {answer === null ? (
        <p class="soft">{error?.message ?? t`No answer`}</p>
      ) : (
        <pre class="answer-text" tabIndex={0} dir="auto">
          {parts === undefined ? (
            answer || t`(empty)`
          ) : (
            <WordMarks parts={parts} side={kind === 'new' ? 'after' : 'before'} />
          )}
        </pre>
      )}
    </section>
  );
}

function isAlike(parts: readonly TextPart[], length: number): boolean {
  const same = parts.reduce((sum, { kind, text }) => sum + (kind === 'same' ? text.length : 0), 0);
  return length === 0 || same / length >= ALIKE;
}
