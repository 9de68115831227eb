/** Markdown as far as models use it most: code, headings, emphasis. All else stands as it was written; nothing becomes a link or markup. */

import type { VNode } from 'preact';
import { CopyButton } from './copy.tsx';
import { t } from './language.ts';
import type { Child } from './ui.tsx';

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;

export const Markdown = ({ text }: { text: string }) => <>{blocks(text)}</>;

/** In one pass over the lines. */
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
