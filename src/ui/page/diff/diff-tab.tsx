/** The changes between any two bodies of an exchange, and the rule behind each. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ChangeView, DiffView, SampleDetail } from '../../api/api.ts';
import { parsedBody } from '../exchange/bodies.tsx';
import {
  inOrder,
  isStream,
  stageChoices,
  stageInfoOf,
  stageTitle,
  type ViewProps,
} from '../exchange/stages.tsx';
import { get } from '../kit/fetching.ts';
import { Select } from '../kit/form.tsx';
import { count, several } from '../kit/format.ts';
import { useKeys, useLoad } from '../kit/hooks.ts';
import { listed, rich, t } from '../kit/language.ts';
import { noteLink, useMeaning } from '../kit/notes.tsx';
import { refine } from '../kit/route.ts';
import { Button, Problem, Segments } from '../kit/ui.tsx';
import { type DiffRow, diffRows } from './diff-rows.ts';
import { DiffLines } from './diff-view.tsx';
import { ChangeList, Meaning } from './meaning-view.tsx';

/** What is shown: what both sides say, or their JSON. */
type Picture = 'meaning' | 'side' | 'list';
const PICTURES = [
  ['meaning', t`Meaning`],
  ['side', t`JSON side by side`],
  ['list', t`List`],
] as const;

/** Two protocols write everything differently: there, what they say is the better picture. */
function pictureOf(as: string, { meaning, identical }: DiffView): Picture {
  const chosen = PICTURES.find(([value]) => value === as)?.[0];
  if (identical || meaning === null) return chosen === 'list' ? 'list' : 'side';
  return chosen ?? (meaning.translated ? 'meaning' : 'side');
}

/** Changes without a note, such as those that codecs make between protocols. */
const UNNAMED = '';

interface Comparison {
  readonly diff: DiffView;
  readonly picture: Picture;
  /** Undefined: the changes are shown as a list. */
  readonly rows: readonly DiffRow[] | undefined;
}

async function compare(
  { row, meta }: SampleDetail,
  [a, b, as]: readonly [string, string, string],
  signal: AbortSignal,
): Promise<Comparison> {
  const diff = await get('/samples/:id/diff', { id: row.id, a, b }, signal);
  const picture = pictureOf(as, diff);
  const side = (stage: string) => {
    const info = stageInfoOf(meta, stage);
    return parsedBody(row.id, stage, info !== undefined && isStream(info), signal);
  };
  if (picture !== 'side' || diff.identical || diff.changes.length < diff.total) {
    return { diff, picture, rows: undefined };
  }
  const [left, right] = await Promise.all([side(a), side(b)]);
  const both = left.value !== undefined && right.value !== undefined;
  return {
    diff,
    picture,
    rows: both ? diffRows(left.value!, right.value!, diff.changes) : undefined,
  };
}

export function DiffTab({ detail, route }: ViewProps) {
  const { query } = route;
  const stages = inOrder(detail.meta).map(({ stage }) => stage);
  const known = (stage: string | undefined, fallback: string | undefined) =>
    stages.find((one) => one === stage) ?? fallback ?? stages[0] ?? '';
  const a = known(query.a, detail.diff?.a);
  const b = known(query.b, detail.diff?.b ?? stages.at(-1));
  const { data, problem, busy } = useLoad(
    (signal) => compare(detail, [a, b, query.as ?? ''], signal),
    [a, b, query.as, detail.row.state],
  );
  const choices = stageChoices(stages);
  const content = useRef<HTMLDivElement>(null);
  const current = useRef(-1);
  const changesOf = (rule?: string): HTMLElement[] =>
    [...content.current!.querySelectorAll<HTMLElement>('[data-change]')].filter(
      (one) => rule === undefined || (one.dataset.rules ?? '').split(' ').includes(rule),
    );
  // The changes of one rule are highlighted, and the first of them is scrolled into view.
  useLayoutEffect(() => {
    for (const one of content.current!.querySelectorAll('.picked')) one.classList.remove('picked');
    const marked = query.rule === undefined ? [] : changesOf(query.rule);
    for (const one of marked) one.classList.add('picked');
    marked[0]?.scrollIntoView({ block: 'center' });
    current.current = -1;
  }, [data, query.rule]);
  const step = (by: 1 | -1) => {
    const all = changesOf(query.rule);
    if (all.length === 0) return;
    current.current = Math.max(0, Math.min(all.length - 1, current.current + by));
    for (const one of content.current!.querySelectorAll('.here')) one.classList.remove('here');
    const target = all[current.current]!;
    target.classList.add('here');
    target.scrollIntoView({ block: 'center' });
  };
  const keys = {
    v: () => refine({ as: data?.picture === 'meaning' ? 'side' : 'meaning' }),
    n: () => step(1),
    p: () => step(-1),
  };
  useKeys(keys, 2);
  return (
    <div class="diff-tab">
      <div class="bar">
        <span class="pickers">
          <Select
            aria-label={t`From`}
            value={a}
            all={choices}
            choose={(next) => refine({ a: next, b, rule: '' })}
          />
          <span aria-hidden="true">→</span>
          <Select
            aria-label={t`To`}
            value={b}
            all={choices}
            choose={(next) => refine({ a, b: next, rule: '' })}
          />
          <Button
            class="tiny"
            aria-label={t`Swap both sides`}
            onClick={() => refine({ a: b, b: a, rule: '' })}
          >
            ⇄
          </Button>
        </span>
        <h2 class="sr">{t`${stageTitle(a)} against ${stageTitle(b)}`}</h2>
        <Segments
          label={t`View`}
          options={PICTURES}
          value={data?.picture ?? ''}
          choose={(as) => refine({ as })}
        />
        <span class="stepper">
          <Button class="tiny" aria-label={t`Previous change (p)`} onClick={() => step(-1)}>
            ↑
          </Button>
          <Button class="tiny" aria-label={t`Next change (n)`} onClick={() => step(1)}>
            ↓
          </Button>
        </span>
      </div>
      {data && (
        <Rules
          {...data}
          rule={query.rule}
          choose={(rule) => refine({ rule: query.rule === rule ? '' : rule })}
        />
      )}
      <div class="content" ref={content} aria-busy={busy || undefined}>
        <Problem text={problem} />
        {data && <Compared key={data.picture} {...data} />}
      </div>
    </div>
  );
}

function Compared({ diff, picture, rows }: Comparison) {
  if (picture === 'meaning' && diff.meaning !== null) return <Meaning diff={diff.meaning} />;
  if (diff.identical || diff.changes.length === 0) {
    return (
      <p class="same-words">
        {diff.identical ? t`Byte for byte the same.` : t`The same values, written differently.`}
      </p>
    );
  }
  return (
    <>
      {diff.changes.length < diff.total && (
        <p class="soft">
          {t`The first ${count(diff.changes.length)} of ${count(diff.total)} changes.`}
        </p>
      )}
      {rows === undefined ? <ChangeList changes={diff.changes} /> : <DiffLines rows={rows} />}
    </>
  );
}

interface RulesProps extends Comparison {
  readonly rule: string | undefined;
  readonly choose: (rule: string) => void;
}

function Rules({ diff, picture, rule, choose }: RulesProps) {
  const meant = picture === 'meaning' ? diff.meaning?.parts.flatMap((part) => part.changes) : null;
  const all = tally(meant ?? diff.changes);
  return (
    <div class="rulebar">
      <span class="counts" role="status">
        {meant ? several(meant.length, 'difference') : summary(diff)}
      </span>
      {all.map(([name, times]) =>
        name === UNNAMED ? (
          <button key="" type="button" class="rule" disabled>
            {rich`without a note${<b>{` ${times}`}</b>}`}
          </button>
        ) : (
          <Rule
            key={name}
            name={name}
            times={times}
            pressed={name === rule}
            choose={() => choose(name)}
          />
        ),
      )}
    </div>
  );
}

interface RuleProps {
  readonly name: string;
  readonly times: number;
  readonly pressed: boolean;
  readonly choose: () => void;
}

const Rule = ({ name, times, pressed, choose }: RuleProps) => (
  <span class="ruleset">
    <Button class="rule" aria-pressed={pressed} title={useMeaning(name)} onClick={choose}>
      {name}
      <b>{` ${times}`}</b>
    </Button>
    <a href={noteLink(name)} target="_blank" rel="noopener" aria-label={t`${name} in the manual`}>
      ?
    </a>
  </span>
);

function tally(changes: readonly Pick<ChangeView, 'rules'>[]): readonly [string, number][] {
  const rules = changes.flatMap((one) => (one.rules.length === 0 ? [UNNAMED] : one.rules));
  return [...Map.groupBy(rules, (rule) => rule)]
    .map(([rule, all]): [string, number] => [rule, all.length])
    .sort((x, y) => y[1] - x[1]);
}

function summary({ changes, total, identical }: DiffView): string {
  if (identical) return t`no change`;
  const number = (kind: ChangeView['kind']) =>
    changes.filter((change) => change.kind === kind).length;
  const [added, removed, changed] = [number('added'), number('removed'), number('changed')];
  const text = listed([
    added > 0 && t`${count(added)} added`,
    removed > 0 && t`${count(removed)} removed`,
    changed > 0 && t`${count(changed)} changed`,
  ]);
  return text || several(total, 'change');
}
