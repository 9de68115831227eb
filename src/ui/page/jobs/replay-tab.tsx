/** Sends a request again and compares the new answers with the recorded one. */

import { useRef, useState } from 'preact/hooks';
import { diffText, type TextPart } from '../../../lib/text/text-diff.ts';
import type { ReplayOutcome, ReplayRequest, ReplayResult, ReplayRun } from '../../api/api.ts';
import { WordMarks } from '../diff/word-marks.tsx';
import type { ViewProps } from '../exchange/stages.tsx';
import { Field, Word } from '../kit/form.tsx';
import { count, millis, percent, several, usd } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { NoteTags } from '../kit/notes.tsx';
import { type Column, Table } from '../kit/table.tsx';
import { Button, Facts, StatusPill } from '../kit/ui.tsx';
import { EditFields, type ReadEdits } from './edit-fields.tsx';
import { type Choice, JobTab } from './job-tab.tsx';

const MAX_MORE_TARGETS = 5;

export function ReplayTab(props: ViewProps) {
  const { detail, info } = props;
  const [more, setMore] = useState(0);
  const [stage, setStage] = useState(detail.sendable[0] ?? '');
  const edits = useRef<ReadEdits>(() => []);
  const request = ({ to, ...choice }: Choice, form: FormData): ReplayRequest => {
    const words = (names: readonly string[]) =>
      names.map((name) => String(form.get(name) ?? '').trim()).filter((word) => word !== '');
    const settings = words(['compare-a', 'compare-b']);
    const others = words(Array.from({ length: more }, (_, i) => `to-${i + 2}`));
    // Beside others, an empty first target is the one that its placeholder names.
    const own = to ?? (others.length > 0 ? detail.row.target : '');
    const all = own === '' ? others : [own, ...others];
    const changed = edits.current(form);
    return {
      ...choice,
      repeat: Number(form.get('repeat')) || 1,
      ...(all.length === 1 && { to: all[0]! }),
      ...(all.length > 1 && { targets: all }),
      ...(changed.length > 0 && { edits: changed }),
      ...(settings.length > 0 && { compare: settings }),
    };
  };
  return (
    <JobTab
      {...props}
      kind="replay"
      label={t`Replay`}
      request={request}
      staged={setStage}
      progress={({ done, total }, { running }) => (
        <>
          {t`${count(done)} of ${several(total, 'request')}`}
          {running && <progress max={total} value={done} aria-label={t`Requests sent`} />}
        </>
      )}
      found={({ events, end }) => {
        const runs = events.flatMap((event) => (event.type === 'run' ? [event.run] : []));
        return (
          <>
            {end?.result?.kind === 'replay' && <Comparison {...end.result.result} />}
            {runs.length > 0 && (
              <>
                <Bench runs={runs} target={detail.row.target} />
                <Runs runs={runs} />
              </>
            )}
          </>
        );
      }}
    >
      <Field label={t`Repeat`}>
        <input type="number" name="repeat" min={1} max={info.limits.runs} defaultValue="1" />
      </Field>
      <div class="more-targets">
        {Array.from({ length: more }, (_, i) => (
          <Field label={t`To (${i + 2})`} key={i}>
            <Word name={`to-${i + 2}`} list="targets" placeholder="provider/model" autofocus />
          </Field>
        ))}
        {more < MAX_MORE_TARGETS && (
          <Button class="tiny" onClick={() => setMore(more + 1)}>{t`+ another target`}</Button>
        )}
      </div>
      <EditFields detail={detail} stage={stage} reader={edits} />
      <details class="compare">
        <summary>{t`Compare two settings`}</summary>
        <div class="fields">
          <Field label={t`First`}>
            <Word name="compare-a" placeholder="repair=on" />
          </Field>
          <Field label={t`Second`}>
            <Word name="compare-b" placeholder="repair=off" />
          </Field>
        </div>
        <p class="soft">{t`Each is KEY=VALUE: profile.shortToolResults=true, profile=NAME, to=provider/model, repair=on, body.temperature=0. About ten repeats show whether a difference is more than chance.`}</p>
      </details>
    </JobTab>
  );
}

const FIGURES: readonly (readonly [name: string, of: (answer: ReplayOutcome) => string])[] = [
  [t`First byte`, (answer) => millis(answer.first_byte_ms)],
  [t`Total`, ({ ms }) => millis(ms)],
  [t`Tokens in`, (answer) => count(answer.prompt_tokens)],
  [t`Tokens out`, (answer) => count(answer.output_tokens)],
  [t`Cost`, ({ cost }) => usd(cost)],
];

/** A run, or the recorded exchange. */
type Row = ReplayOutcome & Partial<Pick<ReplayRun, 'run' | 'setting' | 'target' | 'notes'>>;

const noteNames = (notes: string) => notes.split(',').map((note) => note.split('=')[0]!);

function Runs({ runs }: { runs: readonly ReplayRun[] }) {
  const compared = runs.some(({ setting }) => setting !== undefined);
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const rows: readonly Row[] = [...(before === undefined ? [] : [before]), ...runs];
  return (
    <Table<Row>
      class="runs"
      rows={rows}
      rowProps={({ error, run }) => ({
        'data-tone': error === null ? 'ok' : 'bad',
        class: run === undefined ? 'recorded' : undefined,
      })}
      columns={[
        ['#', ({ run }) => run ?? t`recorded`, 'num'],
        compared && [t`Setting`, ({ setting }) => setting],
        [
          t`Status`,
          ({ status, error }) => (
            <StatusPill tone={error === null ? 'ok' : 'bad'}>
              {error === null
                ? status
                : `${status} ${error.how === 'error' ? error.kind : error.how}`}
            </StatusPill>
          ),
        ],
        [t`Error`, ({ error }) => error?.message, 'message'],
        ...FIGURES.map(([title, cell]): Column<Row> => [title, cell, 'num']),
        [t`Target`, ({ target }) => target],
        [t`Notes`, ({ notes }) => <NoteTags names={notes ? noteNames(notes) : []} />],
      ]}
    />
  );
}

/** Failure rates with their intervals, and whether they differ by more than chance. */
function Comparison({ settings, p, more_than_chance }: ReplayResult) {
  if (settings.every(({ runs }) => runs < 2)) return null;
  const part = (rate: number) => `${(rate * 100).toFixed(1)}%`;
  return (
    <div class="rates">
      {settings.map((one) => {
        const [low, high] = one.interval;
        const vars = { '--rate': part(one.failure_rate), '--low': part(low), '--high': part(high) };
        return (
          <div class="rate" key={one.setting}>
            <span class="rate-name">{one.setting || t`as it is`}</span>
            <span class="rate-bar" aria-hidden="true" style={vars}>
              <i class="filled" />
              <i class="interval" />
            </span>
            <span>
              <b>{t`${one.failed} of ${one.runs} failed`}</b>
              {t` (${percent(one.failure_rate)}, 95 % interval ${percent(low)} to ${percent(high)})`}
            </span>
            <span class="soft">
              {t`${count(one.prompt_tokens)} tokens in, ${count(one.output_tokens)} out, ${millis(one.ms)}`}
            </span>
          </div>
        );
      })}
      {p !== undefined && (
        <p class={more_than_chance === true ? 'verdict sure' : 'verdict'}>
          {more_than_chance === true
            ? t`The difference is more than chance`
            : t`The difference may be chance: repeat more often to know`}
          {t` (Fisher’s exact test, p = ${p < 0.001 ? p.toExponential(1) : p.toFixed(3)}).`}
        </p>
      )}
    </div>
  );
}

const MAX_ANSWERS = 6;
/** Below this share of equal characters, marks would cover nearly everything. */
const ALIKE = 0.15;

interface Answer extends ReplayOutcome {
  readonly kind: 'recorded' | 'new';
  readonly title: string;
  readonly sub: string;
}

function Bench({ runs, target }: { runs: readonly ReplayRun[]; target: string }) {
  const [marked, setMarked] = useState(true);
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const old = before?.answer ?? null;
  const shown = runs.slice(0, MAX_ANSWERS).map(
    (run): Answer => ({
      ...run,
      kind: 'new',
      title: titleOf(run, runs),
      sub: run.target || targetAsked(run),
    }),
  );
  const columns: readonly Answer[] =
    before === undefined
      ? shown
      : [{ ...before, kind: 'recorded', title: t`Recorded answer`, sub: target }, ...shown];
  const answers = shown.flatMap(({ answer }) => (answer === null ? [] : [answer]));
  const comparable = old !== null && answers.some((answer) => answer !== old);
  /** A new answer beside the recorded one; the recorded one beside the only new one. */
  const partsOf = ({ kind, answer }: Answer) => {
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
      {runs.length > MAX_ANSWERS && (
        <p class="soft">{t`${runs.length - MAX_ANSWERS} more answers are in the table alone.`}</p>
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
  readonly column: Answer;
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
      <Facts class="benchfacts" items={FIGURES.map(([name, of]) => [name, of(column)])} />
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
