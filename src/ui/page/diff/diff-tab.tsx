/** The changes between any two bodies of an exchange, and the rule behind each. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ChangeView, DiffView } from '../../api/api.ts';
import { inOrder, stageChoices, stageTitle, type ViewProps } from '../exchange/stages.tsx';
import { get } from '../kit/fetching.ts';
import { Select } from '../kit/form.tsx';
import { count, several } from '../kit/format.ts';
import { useKeys, useLoad } from '../kit/hooks.ts';
import { listed, rich, t } from '../kit/language.ts';
import { noteLink, useMeaning } from '../kit/notes.tsx';
import { refine } from '../kit/route.ts';
import { Button, Problem, Segments } from '../kit/ui.tsx';
import { ChangeList, Meaning } from './meaning-view.tsx';

/** Both sides as a conversation, or the changes of their JSON. */
const PICTURES = [
  ['meaning', t`Meaning`],
  ['json', 'JSON'],
] as const;

/** Two protocols write everything differently: there, what they say is the better picture. */
function pictureOf(as: string, { meaning, identical }: DiffView): 'meaning' | 'json' {
  if (identical || meaning === null) return 'json';
  const chosen = PICTURES.find(([value]) => value === as)?.[0];
  return chosen ?? (meaning.translated ? 'meaning' : 'json');
}

/** Changes without a note, such as those that codecs make between protocols. */
const UNNAMED = '';

export function DiffTab({ detail, route }: ViewProps) {
  const { query } = route;
  const stages = inOrder(detail.meta).map(({ stage }) => stage);
  const known = (stage: string | undefined, fallback: string | undefined) =>
    stages.find((one) => one === stage) ?? fallback ?? stages[0] ?? '';
  const a = known(query.a, detail.diff?.a);
  const b = known(query.b, detail.diff?.b ?? stages.at(-1));
  const { id, state } = detail.row;
  const { data, problem, busy } = useLoad(
    (signal) => get('/samples/:id/diff', { id, a, b }, signal),
    [a, b, state],
  );
  const picture = data && pictureOf(query.as ?? '', data);
  const choices = stageChoices(stages);
  const compare = (from: string, to: string) => refine({ a: from, b: to, rule: '' });
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
  }, [data, picture, query.rule]);
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
    v: () => refine({ as: picture === 'meaning' ? 'json' : 'meaning' }),
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
            choose={(next) => compare(next, b)}
          />
          <span aria-hidden="true">→</span>
          <Select aria-label={t`To`} value={b} all={choices} choose={(next) => compare(a, next)} />
          <Button class="tiny" aria-label={t`Swap both sides`} onClick={() => compare(b, a)}>
            ⇄
          </Button>
        </span>
        <h2 class="sr">{t`${stageTitle(a)} against ${stageTitle(b)}`}</h2>
        <Segments
          label={t`View`}
          options={PICTURES}
          value={picture ?? ''}
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
      {data && picture && (
        <Rules
          diff={data}
          picture={picture}
          rule={query.rule}
          choose={(rule) => refine({ rule: query.rule === rule ? '' : rule })}
        />
      )}
      <div class="content" ref={content} aria-busy={busy || undefined}>
        <Problem text={problem} />
        {data && picture && <Compared key={picture} diff={data} picture={picture} />}
      </div>
    </div>
  );
}

function Compared({ diff, picture }: Comparison) {
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
      <ChangeList changes={diff.changes} />
    </>
  );
}

interface Comparison {
  readonly diff: DiffView;
  readonly picture: 'meaning' | 'json';
}

interface RulesProps extends Comparison {
  readonly rule: string | undefined;
  readonly choose: (rule: string) => void;
}

function Rules({ diff, picture, rule, choose }: RulesProps) {
  const meaning = useMeaning();
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
          <span class="ruleset" key={name}>
            <Button
              class="rule"
              aria-pressed={name === rule}
              title={meaning(name)}
              onClick={() => choose(name)}
            >
              {name}
              <b>{` ${times}`}</b>
            </Button>
            <a
              href={noteLink(name)}
              target="_blank"
              rel="noopener"
              aria-label={t`${name} in the manual`}
            >
              ?
            </a>
          </span>
        ),
      )}
    </div>
  );
}

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
