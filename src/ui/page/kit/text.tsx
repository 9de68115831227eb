/** Texts of people and models, in part at first; Markdown as far as models use it most: code, headings, emphasis. */

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { quotedWords } from '../../../lib/text/quoted-words.ts';
import type { TextView } from '../../api/api.ts';
import { CopyButton } from './copy.tsx';
import { count } from './format.ts';
import { t } from './language.ts';
import { Button, type Child } from './ui.tsx';

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
      {styled ? blocks(part) : part}
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

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;

/** Markdown, in one pass over the lines. All else stands as it was written; nothing becomes a link or markup. */
function blocks(text: string): readonly VNode[] {
  const lines = text.split('\n');
  const out: VNode[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) out.push(<p>{inline(paragraph.join('\n'))}</p>);
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (fence !== null) {
      const from = i + 1;
      do i++;
      while (i < lines.length && !lines[i]!.trimStart().startsWith(fence[1]!));
      flush();
      out.push(<CodeBlock code={lines.slice(from, i).join('\n')} language={fence[2] ?? ''} />);
    } else if (heading !== null) {
      flush();
      const level = heading[1]!.length;
      out.push(<p class={`md-heading md-${level}`}>{inline(heading[2]!.trim())}</p>);
    } else if (line.trim() === '') flush();
    else paragraph.push(line);
  }
  flush();
  return out;
}

const CodeBlock = ({ code, language }: { code: string; language: string }) => (
  <div class="md-code">
    <div class="md-code-head">
      <span>{language}</span>
      <CopyButton
        class="tiny"
        aria-label={t`Copy the code`}
        read={() => code}
      >{t`copy`}</CopyButton>
    </div>
    <pre tabIndex={0}>{code}</pre>
  </div>
);

/** Signs that may begin something inside a line. */
const SIGNS = /[`*_]/g;

/** Code, bold and italic; a sign without its counterpart stands as it is. */
function inline(text: string): Child[] {
  const out: Child[] = [];
  let from = 0;
  // A sign that was looked for in vain is not looked for again: the time stays linear.
  const none = new Set<string>();
  SIGNS.lastIndex = 0;
  for (let match = SIGNS.exec(text); match !== null; match = SIGNS.exec(text)) {
    const at = match.index;
    const sign = signAt(text, at);
    const end = none.has(sign) ? -1 : text.indexOf(sign, at + sign.length + 1);
    if (end < 0 || !opens(text, at, sign)) {
      if (end < 0) none.add(sign);
      SIGNS.lastIndex = at + sign.length;
      continue;
    }
    const said = text.slice(at + sign.length, end);
    out.push(text.slice(from, at));
    if (sign.startsWith('`')) out.push(<code>{said}</code>);
    else out.push(sign.length === 2 ? <strong>{said}</strong> : <em>{said}</em>);
    from = end + sign.length;
    SIGNS.lastIndex = from;
  }
  out.push(text.slice(from));
  return out;
}

function signAt(text: string, at: number): string {
  const one = text[at]!;
  return text[at + 1] === one ? one + one : one;
}

/** `2 * 3` and `snake_case` are not emphasis. */
function opens(text: string, at: number, sign: string): boolean {
  if (sign.startsWith('`')) return true;
  const next = text[at + sign.length] ?? ' ';
  if (/\s/.test(next)) return false;
  return !sign.startsWith('_') || at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!);
}

/** Places of a search that are marked. */
const MAX_MARKS = 500;

const wordsOf = (q: string) => quotedWords(q.toLowerCase());

export function hasWord(text: string, q: string): boolean {
  const lower = text.toLowerCase();
  return wordsOf(q).some((word) => lower.includes(word));
}

/** Marks the words of a search inside `root`, without changing its elements, and scrolls the first one into view. */
export function highlight(root: Element, q: string): void {
  // Browsers without this show the texts unmarked.
  if (typeof Highlight === 'undefined') return;
  CSS.highlights.delete('search');
  const words = wordsOf(q);
  if (words.length === 0) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (ranges.length < MAX_MARKS && walker.nextNode() !== null) {
    const node = walker.currentNode as Text;
    const { length } = node.data;
    const text = node.data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0 && ranges.length < MAX_MARKS; ) {
        const range = new Range();
        range.setStart(node, Math.min(at, length));
        range.setEnd(node, Math.min(at + word.length, length));
        ranges.push(range);
        at = text.indexOf(word, at + word.length);
      }
    }
  }
  CSS.highlights.set('search', new Highlight(...ranges));
  ranges[0]?.startContainer.parentElement?.scrollIntoView({ block: 'center' });
}
