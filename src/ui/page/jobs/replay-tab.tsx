/** Sends a request again and compares the new answers with the recorded one. */

import { useState } from 'preact/hooks';
import { diffText, type TextPart } from '../../../lib/text/text-diff.ts';
import type {
  JobEvent,
  ReplayOutcome,
  ReplayRequest,
  ReplayResult,
  ReplayRun,
} from '../../api/api.ts';
import { WordMarks } from '../diff/meaning-view.tsx';
import type { ViewProps } from '../exchange/stages.tsx';
import { Field, Word } from '../kit/form.tsx';
import { count, millis, several, usd } from '../kit/format.ts';
import { rich, t } from '../kit/language.ts';
import { NoteTags } from '../kit/notes.tsx';
import { type Column, Table } from '../kit/table.tsx';
import { Button, Facts, StatusPill } from '../kit/ui.tsx';
import { type Choice, JobTab } from './job-tab.tsx';

const MAX_MORE_TARGETS = 5;

export function ReplayTab(props: ViewProps) {
  const { detail, info } = props;
  const [more, setMore] = useState(0);
  const request = ({ to, ...choice }: Choice, form: FormData): ReplayRequest => {
    const others = Array.from({ length: more }, (_, i) => String(form.get(`to-${i + 2}`)).trim());
    // Beside others, an empty first target is the one that its placeholder names.
    const own = to || (others.some(Boolean) ? detail.row.target : '');
    const edits = String(form.get('edits')).split('\n');
    return {
      ...choice,
      repeat: Number(form.get('repeat')) || 1,
      targets: [own, ...others].filter(Boolean),
      edits: edits.map((line) => line.trim()).filter(Boolean),
    };
  };
  return (
    <JobTab
      {...props}
      kind="replay"
      label={t`Replay`}
      request={request}
      progress={({ events, running }, total) => {
        const done = runsOf(events).length;
        return (
          <>
            {t`${count(done)} of ${several(total, 'request')}`}
            {running && <progress max={total} value={done} aria-label={t`Requests sent`} />}
          </>
        );
      }}
      found={({ events, end }) => {
        const runs = runsOf(events);
        return (
          <>
            {end?.result && 'runs' in end.result && <Rates {...end.result} />}
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
      <details class="edit">
        <summary>{t`Edit the request`}</summary>
        <Field
          label={t`Changes`}
          hint={rich`One on each line. ${<code>top_p=null</code>} takes a member away.`}
        >
          <textarea
            name="edits"
            rows={4}
            spellcheck={false}
            dir="auto"
            placeholder={'model=glm-4.7\ntemperature=0.2\nmessages[0].content=…'}
          />
        </Field>
      </details>
    </JobTab>
  );
}

const runsOf = (events: readonly JobEvent[]): readonly ReplayRun[] =>
  events.flatMap((event) => (event.type === 'run' ? [event.run] : []));

const FIGURES: readonly (readonly [name: string, of: (answer: ReplayOutcome) => string])[] = [
  [t`First byte`, (answer) => millis(answer.first_byte_ms)],
  [t`Total`, ({ ms }) => millis(ms)],
  [t`Tokens in`, (answer) => count(answer.prompt_tokens)],
  [t`Tokens out`, (answer) => count(answer.output_tokens)],
  [t`Cost`, ({ cost }) => usd(cost)],
];

/** A run, or the recorded exchange. */
type Row = ReplayOutcome & Partial<Pick<ReplayRun, 'run' | 'target' | 'notes'>>;

const noteNames = (notes: string) => notes.split(',').map((note) => note.split('=')[0]!);

function Runs({ runs }: { runs: readonly ReplayRun[] }) {
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

/** How many requests failed at each target that was asked several times. */
const Rates = ({ settings }: ReplayResult) => (
  <Facts
    class="facts"
    items={settings.map(
      ({ setting, failed, runs }) =>
        runs > 1 && [setting.replace(/^to=/, '') || t`Failed`, t`${failed} of ${runs} failed`],
    )}
  />
);

const MAX_ANSWERS = 6;
/** Below this share of equal characters, marks would cover nearly everything. */
const ALIKE = 0.15;

interface Answer extends ReplayOutcome {
  readonly kind: 'recorded' | 'new';
  readonly title: string;
  readonly sub: string;
}

function Bench({ runs, target }: { runs: readonly ReplayRun[]; target: string }) {
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
  /** A new answer beside the recorded one; the recorded one beside the only new one. */
  const partsOf = ({ kind, answer }: Answer) => {
    const other = kind === 'new' ? answer : answers.length === 1 ? answers[0] : undefined;
    if (old === null || other == null || other === old) return undefined;
    const parts = diffText(old, other);
    return isAlike(parts, old.length) ? parts : undefined;
  };
  return (
    <div class="benchbox">
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

function titleOf({ run, answer, recorded }: ReplayRun, runs: readonly ReplayRun[]): string {
  const repeated = runs.some((other) => other.run > 1);
  const same = answer !== null && answer === recorded?.answer ? t` (the same text)` : '';
  const number = repeated ? t`Answer ${run}` : t`Answer now`;
  return number + same;
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
