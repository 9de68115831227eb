/** Markdown as elements, in one pass over the lines: what models write most. Nothing becomes a link or markup. */

import type { VNode } from 'preact';
import { CopyButton } from './copy.tsx';
import { t } from './language.ts';
import { Table } from './table.tsx';
import type { Child } from './ui.tsx';

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/;
const RULE_SIGNS = /^[\s|:-]+$/;

export const Markdown = ({ text }: { text: string }) => <>{blocks(text)}</>;

function blocks(text: string): readonly VNode[] {
  const lines = text.split('\n');
  const out: VNode[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) out.push(<p>{inline(paragraph.join('\n'))}</p>);
    paragraph = [];
  };
  const add = (block: VNode) => {
    flush();
    out.push(block);
  };
  let i = 0;
  /** The next lines, as long as they fit. */
  const take = (fits: (line: string) => boolean): readonly string[] => {
    const from = i;
    while (i < lines.length && fits(lines[i]!)) i++;
    return lines.slice(from, i);
  };
  while (i < lines.length) {
    const line = lines[i++]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (fence !== null) {
      const code = take((one) => !one.trimStart().startsWith(fence[1]!));
      i++;
      add(<CodeBlock code={code.join('\n')} language={fence[2] ?? ''} />);
    } else if (line.trim() === '') {
      flush();
    } else if (heading !== null) {
      const level = heading[1]!.length;
      add(<p class={`md-heading md-${level}`}>{inline(heading[2]!.trim())}</p>);
    } else if (RULE.test(line)) {
      add(<hr />);
    } else if (line.startsWith('>')) {
      const quoted = [line, ...take((one) => one.startsWith('>'))];
      add(
        <blockquote>{inline(quoted.map((one) => one.replace(/^> ?/, '')).join('\n'))}</blockquote>,
      );
    } else if (ITEM.test(line)) {
      const items: RegExpExecArray[] = [];
      for (const one of [line, ...take(isOfList)]) {
        const item = ITEM.exec(one);
        if (item !== null) items.push(item);
        else items.at(-1)![3] += `\n${one.trim()}`;
      }
      add(<List items={items} />);
    } else if (line.includes('|') && isTableRule(lines[i] ?? '')) {
      i++;
      add(<Rows head={line} rows={take((one) => one.includes('|'))} />);
    } else paragraph.push(line);
  }
  flush();
  return out;
}

/** An item, or more of the one before. */
const isOfList = (line: string): boolean =>
  ITEM.test(line) || (/^\s+\S/.test(line) && !FENCE.test(line));

/** The line between the head of a table and its rows. */
const isTableRule = (line: string): boolean =>
  line.includes('|') && line.includes('-') && RULE_SIGNS.test(line);

/** Items keep their numbers; deeper ones are indented. */
const List = ({ items }: { items: readonly RegExpExecArray[] }) => (
  <ul class="md-list">
    {items.map(([, indent, sign, text]) => (
      <li style={{ '--depth': Math.min(4, Math.floor(indent!.replaceAll('\t', '  ').length / 2)) }}>
        <span class="md-sign">{/\d/.test(sign!) ? sign! : '•'}</span>
        <span>{inline(text!)}</span>
      </li>
    ))}
  </ul>
);

function Rows({ head, rows }: { head: string; rows: readonly string[] }) {
  const cells = (row: string) => row.trim().replace(/^\|/, '').replace(/\|$/, '').split('|');
  return (
    <Table<readonly string[]>
      rows={rows.map(cells)}
      columns={cells(head).map((title, i) => [
        inline(title.trim()),
        (row) => inline((row[i] ?? '').trim()),
      ])}
    />
  );
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
