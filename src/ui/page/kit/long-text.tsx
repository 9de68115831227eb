/** Shows a long text in part, with a button for the rest. */

import { useState } from 'preact/hooks';
import type { TextView } from '../../api/api.ts';
import { count } from './format.ts';
import { t } from './language.ts';
import { Markdown } from './markdown.tsx';
import { Button } from './ui.tsx';

/** Lines that are shown at first. */
const LINES = 24;
const CHARS = 2400;
/** Lines of a text that is shown whole. */
export const ALL_LINES = Number.POSITIVE_INFINITY;
const CHARS_MORE = 60_000;

interface LongTextProps {
  readonly view: TextView;
  /** Class of the box; `md`: a text that may be Markdown. */
  readonly class?: string;
  /** Loads the whole text where only its beginning was sent. */
  readonly rest?: () => Promise<string>;
  readonly lines?: number | undefined;
}

export function LongText({ view, class: cls = 'text', rest, lines = LINES }: LongTextProps) {
  const [loaded, setLoaded] = useState<string>();
  const [added, setAdded] = useState(0);
  const text = loaded ?? view.text;
  const whole = loaded?.length ?? view.chars ?? text.length;
  const shown = Math.min(text.length, cutAt(view.text, lines) + added);
  const left = whole - shown;
  const more = async () => {
    if (shown >= text.length && view.chars !== undefined && rest !== undefined) {
      setLoaded(await rest().catch(() => undefined));
    }
    setAdded(added + CHARS_MORE);
  };
  // Results of tools are shown letter by letter, what people and models say as Markdown.
  const styled = cls === 'md' && lines >= LINES;
  const part = text.slice(0, shown);
  return (
    <div class={styled ? 'text md' : cls === 'md' ? 'text' : cls} dir="auto">
      {styled ? <Markdown text={part} /> : part}
      {left > 0 && (
        <Button class="more" onClick={() => void more()}>
          {left <= CHARS_MORE
            ? t`… show ${count(left)} more characters`
            : t`… show ${count(CHARS_MORE)} of ${count(left)} more characters`}
        </Button>
      )}
    </div>
  );
}

/** Where to cut at first, by lines or characters; a text slightly over the limit is shown whole. */
function cutAt(text: string, lines: number): number {
  if (lines === ALL_LINES) return text.length;
  let at = -1;
  for (let line = 0; line < lines; line++) {
    at = text.indexOf('\n', at + 1);
    if (at < 0) break;
  }
  const end = Math.min(at < 0 ? text.length : at, CHARS);
  return text.length - end < (lines < LINES ? 60 : 300) ? text.length : end;
}
