/** Markdown as elements, in one pass over the lines: what models write most. Nothing becomes a link or markup. */

import { copyButton } from './copy-dom.ts';
import { type Child, h } from './dom.ts';
import { boxedTable } from './table.ts';

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/;
const RULE_SIGNS = /^[\s|:-]+$/;

/** The elements of a text. */
export function markdown(text: string): readonly HTMLElement[] {
  const lines = text.split('\n');
  const out: HTMLElement[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) out.push(h('p', null, inline(paragraph.join('\n'))));
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const fence = FENCE.exec(line);
    if (fence !== null) {
      flush();
      const sign = fence[1]!;
      const code: string[] = [];
      while (++i < lines.length && !lines[i]!.trimStart().startsWith(sign)) code.push(lines[i]!);
      out.push(codeBlock(code.join('\n'), fence[2] ?? ''));
      continue;
    }
    if (line.trim() === '') {
      flush();
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading !== null) {
      flush();
      out.push(
        h('p', { class: `md-heading md-${heading[1]!.length}` }, inline(heading[2]!.trim())),
      );
    } else if (RULE.test(line)) {
      flush();
      out.push(h('hr'));
    } else if (line.startsWith('>')) {
      flush();
      const quoted: string[] = [];
      for (; i < lines.length && lines[i]!.startsWith('>'); i++) {
        quoted.push(lines[i]!.replace(/^> ?/, ''));
      }
      i--;
      out.push(h('blockquote', null, inline(quoted.join('\n'))));
    } else if (ITEM.test(line)) {
      flush();
      const items: RegExpExecArray[] = [];
      for (; i < lines.length; i++) {
        const item = ITEM.exec(lines[i]!);
        if (item !== null) items.push(item);
        else if (items.length > 0 && /^\s+\S/.test(lines[i]!) && FENCE.exec(lines[i]!) === null) {
          items.at(-1)![3] += `\n${lines[i]!.trim()}`;
        } else break;
      }
      i--;
      out.push(list(items));
    } else if (line.includes('|') && isTableRule(lines[i + 1] ?? '')) {
      flush();
      const rows: string[] = [line];
      i += 2;
      for (; i < lines.length && lines[i]!.includes('|'); i++) rows.push(lines[i]!);
      i--;
      out.push(table(rows));
    } else paragraph.push(line);
  }
  flush();
  return out;
}

/** The line between the head of a table and its rows. */
const isTableRule = (line: string): boolean =>
  line.includes('|') && line.includes('-') && RULE_SIGNS.test(line);

/** Items keep their numbers; deeper ones are indented. */
function list(items: readonly RegExpExecArray[]): HTMLElement {
  return h(
    'ul',
    { class: 'md-list' },
    items.map(([, indent, sign, text]) =>
      h(
        'li',
        { 'data-depth': Math.min(4, Math.floor(indent!.replaceAll('\t', '  ').length / 2)) },
        h('span', { class: 'md-sign' }, /\d/.test(sign!) ? sign! : '•'),
        h('span', null, inline(text!)),
      ),
    ),
  );
}

function table([head, ...rows]: readonly string[]): HTMLElement {
  const cells = (row: string) => row.trim().replace(/^\|/, '').replace(/\|$/, '').split('|');
  return boxedTable(
    cells(head!).map((cell) => h('th', null, inline(cell.trim()))),
    rows.map((row) =>
      h(
        'tr',
        null,
        cells(row).map((cell) => h('td', null, inline(cell.trim()))),
      ),
    ),
  );
}

export function codeBlock(code: string, language: string): HTMLElement {
  return h(
    'div',
    { class: 'md-code' },
    h(
      'div',
      { class: 'md-code-head' },
      h('span', null, language),
      copyButton('copy', () => code, { class: 'tiny', 'aria-label': 'Copy the code' }),
    ),
    h('pre', { tabindex: 0 }, code),
  );
}

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
    if (sign.startsWith('`')) out.push(h('code', null, said));
    else out.push(h(sign.length === 2 ? 'strong' : 'em', null, said));
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
