/** The recorded answer and the new ones as columns: time, tokens and cost above, and which words differ. */

import { diffText, type TextPart } from '../../../lib/text/text-diff.ts';
import type { FailureView, ReplayRun, SampleDetail } from '../../api/api.ts';
import { wordMarks } from '../diff/word-marks.ts';
import { cost } from '../exchange/money.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { count, millis } from '../kit/format.ts';

/** Answers that are shown in full. */
const ANSWERS = 6;
/** Below this share of equal characters, marks would cover nearly everything. */
const ALIKE = 0.15;

interface Column {
  readonly title: string;
  readonly sub: string;
  readonly status: number;
  readonly error: FailureView | null;
  readonly answer: string | null;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly kind: 'recorded' | 'new';
}

interface Measured {
  readonly prompt_tokens: number | null;
  readonly output_tokens: number | null;
  readonly first_byte_ms: number | null;
  readonly ms: number | null;
  readonly cost: number | null;
}

const factsOf = (one: Measured): Column['facts'] => [
  ['First byte', one.first_byte_ms === null ? '–' : millis(one.first_byte_ms)],
  ['Total', one.ms === null ? '–' : millis(one.ms)],
  ['Tokens in', one.prompt_tokens === null ? '–' : count(one.prompt_tokens)],
  ['Tokens out', one.output_tokens === null ? '–' : count(one.output_tokens)],
  ['Cost', cost(one.cost)],
];

export function bench(runs: readonly ReplayRun[], { row }: SampleDetail): HTMLElement {
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const shown = runs.slice(0, ANSWERS);
  const columns: readonly Column[] = [
    ...(before === undefined
      ? []
      : [
          {
            title: 'Recorded answer',
            sub: row.target,
            ...before,
            facts: factsOf(before),
            kind: 'recorded' as const,
          },
        ]),
    ...shown.map((run) => ({
      title: titleOf(run, runs),
      sub: run.target || targetAsked(run),
      ...run,
      facts: factsOf(run),
      kind: 'new' as const,
    })),
  ];
  const old = before?.answer ?? null;
  const box = h('div', { class: 'bench', vars: { '--columns': String(columns.length) } });
  let marked = true;
  const draw = () =>
    replace(
      box,
      columns.map((column) => columnView(column, columns, old, marked)),
    );
  draw();
  const comparable = old !== null && shown.some(({ answer }) => answer !== null && answer !== old);
  const toggle = button(
    'Mark the words that differ',
    () => {
      marked = !marked;
      toggle.setAttribute('aria-pressed', String(marked));
      draw();
    },
    { class: 'tiny', 'aria-pressed': 'true' },
  );
  return h(
    'div',
    { class: 'benchbox' },
    comparable && h('p', { class: 'benchbar' }, toggle),
    box,
    runs.length > ANSWERS &&
      h('p', { class: 'soft' }, `${runs.length - ANSWERS} more answers are in the table alone.`),
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
  const same = answer !== null && answer === recorded?.answer ? ' (the same text)' : '';
  const number = repeated ? `Answer ${run}` : 'Answer now';
  const of = setting === undefined || setting.startsWith('to=') ? '' : `, ${setting}`;
  return `${number}${of}${same}`;
}

function columnView(
  { title, sub, status, error, answer, facts, kind }: Column,
  columns: readonly Column[],
  old: string | null,
  marked: boolean,
): HTMLElement {
  return h(
    'section',
    { class: 'answer', 'data-kind': kind },
    h('h3', null, title),
    h('p', { class: 'soft sub' }, sub || 'as routed'),
    h(
      'p',
      { class: 'benchstate' },
      h('span', { class: 'pill-status', 'data-tone': error === null ? 'ok' : 'bad' }, status),
      error !== null && h('span', null, ' ', error.kind),
    ),
    h(
      'dl',
      { class: 'benchfacts' },
      facts.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
    ),
    answer === null
      ? h('p', { class: 'soft' }, error?.message ?? 'No answer')
      : h(
          'pre',
          { class: 'answer-text', tabindex: 0, dir: 'auto' },
          ...textOf(answer, kind, columns, old, marked),
        ),
  );
}

/** A new answer with the words that the recorded one lacks; with one new answer, the recorded one likewise. */
function textOf(
  answer: string,
  kind: Column['kind'],
  columns: readonly Column[],
  old: string | null,
  marked: boolean,
): readonly Child[] {
  const whole = [answer || '(empty)'];
  if (!marked || old === null) return whole;
  const others = columns.filter((column) => column.kind === 'new' && column.answer !== null);
  const other = kind === 'new' ? answer : others.length === 1 ? others[0]!.answer! : undefined;
  if (other === undefined || other === old) return whole;
  const parts = diffText(old, other);
  if (!alike(parts, old.length)) return whole;
  return wordMarks(parts, kind === 'new' ? 'after' : 'before', false);
}

function alike(parts: readonly TextPart[], length: number): boolean {
  const same = parts.reduce((sum, { kind, text }) => sum + (kind === 'same' ? text.length : 0), 0);
  return length === 0 || same / length >= ALIKE;
}
