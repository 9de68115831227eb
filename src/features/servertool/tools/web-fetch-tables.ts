/** Tables for the Markdown converter: data tables with pipes, tables that only lay a page out as blocks. */

import type Turndown from 'turndown';

/** What is needed of the converter's DOM. */
interface Element {
  readonly parentNode: Element | null;
  readonly nodeName: string;
  readonly previousElementSibling: Element | null;
  readonly childNodes: ArrayLike<{ readonly nodeName: string }>;
  getElementsByTagName(name: string): ArrayLike<Element>;
}

/** Adds the rules; the converter by itself loses which cell is which. */
export function addTableRules(turndown: Turndown): void {
  turndown.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content, node) => {
      if (isLayout(node as unknown as Element)) return block(content);
      return `${content
        .replace(/\s*\n\s*/g, ' ')
        .trim()
        .replaceAll('|', '\\|')} | `;
    },
  });
  turndown.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => {
      const row = node as unknown as Element;
      if (content.trim() === '' || isLayout(row)) return content;
      const line = `| ${content.trim()}\n`;
      return isFirstRow(row) ? line + ruler(row) : line;
    },
  });
  turndown.addRule('rows', {
    filter: ['table', 'thead', 'tbody', 'tfoot'],
    replacement: (content, node) => (node.nodeName === 'TABLE' ? block(content) : content),
  });
}

const block = (content: string) => `\n\n${content.trim()}\n\n`;

const layouts = new WeakMap<Element, boolean>();

/** A table that holds another one is there for the looks of the page; so is what stands in no table. */
function isLayout(node: Element): boolean {
  let table: Element | null = node;
  while (table !== null && table.nodeName !== 'TABLE') table = table.parentNode;
  if (table === null) return true;
  let known = layouts.get(table);
  if (known === undefined) {
    known = table.getElementsByTagName('table').length > 0;
    layouts.set(table, known);
  }
  return known;
}

function isFirstRow(row: Element): boolean {
  if (row.previousElementSibling !== null) return false;
  const group = row.parentNode;
  if (group === null || group.nodeName === 'TABLE') return true;
  const before = group.previousElementSibling;
  return before === null || before.nodeName === 'CAPTION' || before.nodeName === 'COLGROUP';
}

function ruler(row: Element): string {
  const cells = Array.from(row.childNodes).filter(({ nodeName }) => /^T[DH]$/.test(nodeName));
  return `|${' --- |'.repeat(cells.length)}\n`;
}
