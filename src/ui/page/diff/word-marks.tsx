/** A text beside another one: the words that only it has are marked, long equal parts are folded. */

import { useState } from 'preact/hooks';
import type { TextPart } from '../../../lib/text/text-diff.ts';
import { Cut } from '../kit/code.tsx';
import { count } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { Button } from '../kit/ui.tsx';

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
