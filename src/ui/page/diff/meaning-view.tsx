/** A comparison by meaning: one line for each part that says the same, and what really changed. */

import { useState } from 'preact/hooks';
import type { Json } from '../../../lib/json/json.ts';
import { diffText, type TextPart } from '../../../lib/text/text-diff.ts';
import type { ChangeView, MeaningChange, MeaningDiff, MeaningPart } from '../../api/api.ts';
import { Cut } from '../kit/code.tsx';
import { count } from '../kit/format.ts';
import { rich, said, t } from '../kit/language.ts';
import { NoteTags } from '../kit/notes.tsx';
import { Button } from '../kit/ui.tsx';

/** Values of at most so many characters stand in one line. */
const SHORT = 100;
const MAX_CHANGES_FIRST = 40;

const KINDS = { added: t`added`, removed: t`removed`, changed: t`changed` } as const;

export const Meaning = ({ diff: { parts, translated, otherRules } }: { diff: MeaningDiff }) => (
  <div class="meaning">
    <p class="soft lead">
      {translated
        ? rich`The two bodies are in different protocols. A part that says the same in another form takes one line; press ${<kbd>v</kbd>} for the changes of their JSON.`
        : rich`A part that is the same in both takes one line; press ${<kbd>v</kbd>} for the changes of their JSON.`}
    </p>
    {parts.map((part) => (
      <Part key={part.name} {...part} />
    ))}
    {otherRules.length > 0 && (
      <p class="soft othernotes">
        {rich`Also noted for this exchange, not for a place shown here: ${<NoteTags names={otherRules} />}`}
      </p>
    )}
  </div>
);

function Part({ name, title, changes }: MeaningPart) {
  const [all, setAll] = useState(changes.length <= MAX_CHANGES_FIRST);
  const same = changes.length === 0;
  return (
    <section class="meaning-part" data-part={name} data-same={String(same)}>
      <h3>
        <i class="sign" aria-hidden="true">
          {same ? '=' : '≠'}
        </i>
        {said(title)}
      </h3>
      {changes.slice(0, all ? undefined : MAX_CHANGES_FIRST).map((change, i) => (
        <Change key={i} {...change} />
      ))}
      {!all && (
        <Button class="more" onClick={() => setAll(true)}>
          {t`${changes.length - MAX_CHANGES_FIRST} more changes`}
        </Button>
      )}
    </section>
  );
}

/** The changes of the JSON as a list: places, values, rules. */
export const ChangeList = ({ changes }: { changes: readonly ChangeView[] }) => (
  <ol class="changelist">
    {changes.map(({ at, before, before_chars, after, after_chars, ...change }, i) => (
      <li key={i}>
        <Change
          {...change}
          at={at || '/'}
          what=""
          {...(before !== undefined && { before: textOf(before, before_chars) })}
          {...(after !== undefined && { after: textOf(after, after_chars) })}
        />
      </li>
    ))}
  </ol>
);

function textOf(value: Json, chars: number | undefined): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return chars === undefined ? text : `${text}\n${t`… ${count(chars)} characters in all`}`;
}

const isShort = (text: string | undefined) =>
  text === undefined || (text.length <= SHORT && !text.includes('\n'));

function Change({ kind, what, at, to, before, after, rules }: MeaningChange) {
  const parts = kind === 'changed' ? diffText(before ?? '', after ?? '') : undefined;
  const inLine = isShort(before) && isShort(after);
  const place = new Set([at, to].filter((one) => one !== undefined));
  return (
    <article
      class="meaning-change"
      data-mark={kind}
      data-change={to ?? at ?? what}
      data-rules={rules.join(' ')}
      tabIndex={-1}
    >
      <header>
        <b class="kind">{KINDS[kind]}</b>
        {what !== '' && <span class="what">{said(what)}</span>}
        {inLine && (
          <span class="values">
            {before !== undefined && <del>{before || t`(empty)`}</del>}
            {kind === 'changed' && <span aria-hidden="true"> → </span>}
            {after !== undefined && <ins>{after || t`(empty)`}</ins>}
          </span>
        )}
        <NoteTags names={rules} />
        {place.size > 0 && <code class="at">{[...place].join(' → ')}</code>}
      </header>
      {!inLine && (
        <div class="sides" data-mark={kind}>
          <Side own="before" text={before} parts={parts} />
          <Side own="after" text={after} parts={parts} />
        </div>
      )}
    </article>
  );
}

interface SideProps {
  readonly own: 'before' | 'after';
  readonly text: string | undefined;
  readonly parts: readonly TextPart[] | undefined;
}

const Side = ({ own, text, parts }: SideProps) =>
  text === undefined ? null : (
    <div class={`side ${own}`} dir="auto" tabIndex={0}>
      {parts === undefined ? text : <WordMarks parts={parts} side={own} fold />}
    </div>
  );

/** Characters of an equal part that are shown at each of its ends, and the shortest part that is folded. */
const END = 160;
const FOLDED = 600;
/** Characters of a changed part that are shown at first. */
const CHANGED = 2000;

interface WordMarksProps {
  /** Of `diffText`. */
  readonly parts: readonly TextPart[];
  /** Which of the two texts is shown. */
  readonly side: 'before' | 'after';
  /** Long parts are folded and open on a click. */
  readonly fold?: boolean;
}

/** A text beside another one: the words that only it has are marked, long equal parts are folded. */
export function WordMarks({ parts, side, fold = false }: WordMarksProps) {
  const own = side === 'before' ? 'removed' : 'added';
  const Mark = side === 'before' ? 'del' : 'ins';
  const shown = parts.filter(({ kind }) => kind === 'same' || kind === own);
  return (
    <>
      {shown.map(({ kind, text }, i) => {
        if (kind !== 'same') {
          return <Mark key={i}>{fold ? <Cut text={text} most={CHANGED} /> : text}</Mark>;
        }
        if (!fold || text.length < FOLDED) return text;
        // The beginning and the end of a text need no words before and after them.
        const head = i === 0 ? 0 : END;
        const tail = i === shown.length - 1 ? 0 : END;
        return <SameFold key={i} text={text} head={head} tail={tail} />;
      })}
    </>
  );
}

function SameFold({ text, head, tail }: { text: string; head: number; tail: number }) {
  const [open, setOpen] = useState(false);
  if (open) return <>{text}</>;
  const end = text.length - tail;
  return (
    <>
      {text.slice(0, head)}
      <Button class="samefold" onClick={() => setOpen(true)}>
        {t`⋯ ${count(end - head)} characters the same`}
      </Button>
      {text.slice(end)}
    </>
  );
}
