/** Shows a long text in part, with a button for the rest. */

import type { TextView } from '../../api/api.ts';
import { button, h, replace } from './dom.ts';
import { count } from './format.ts';
import { markdown } from './markdown.ts';

/** Lines that are shown at first. */
const LINES = 24;
const CHARS = 2400;
/** Lines of a text that is shown whole. */
export const ALL_LINES = Number.POSITIVE_INFINITY;
/** Characters that one click on "more" shows. */
const STEP = 60_000;

/**
 * @param cls class of the box; `md`: a text that may be Markdown
 * @param rest loads the whole text where only its beginning was sent; `lines`: lines to show at first
 */
export function longText(
  view: TextView,
  cls = 'text',
  rest?: () => Promise<string>,
  lines = LINES,
): HTMLElement {
  // Results of tools are shown letter by letter, what people and models say as Markdown.
  const styled = cls === 'md' && lines >= LINES;
  const box = h('div', { class: cls === 'md' ? `text${styled ? ' md' : ''}` : cls, dir: 'auto' });
  let text = view.text;
  const whole = () => (text === view.text ? (view.chars ?? text.length) : text.length);
  let shown = cutAt(text, lines);
  const draw = () => {
    const left = whole() - shown;
    replace(
      box,
      styled ? markdown(text.slice(0, shown)) : text.slice(0, shown),
      left > 0 &&
        button(moreWords(left), more, {
          class: 'more',
        }),
    );
  };
  async function more(): Promise<void> {
    if (shown >= text.length && view.chars !== undefined && rest !== undefined) {
      const all = await rest().catch(() => undefined);
      if (all !== undefined) text = all;
    }
    shown = Math.min(text.length, shown + STEP);
    draw();
  }
  draw();
  return box;
}

const moreWords = (left: number): string =>
  left <= STEP
    ? `… show ${count(left)} more characters`
    : `… show ${count(STEP)} of ${count(left)} more characters`;

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
