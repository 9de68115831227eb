/** Pages cut at their headings, for a search that leads to the place and not only to the page. */

import { anchorOf } from './markdown.ts';
import type { Page } from './pages.ts';

export interface Section {
  readonly page: string;
  /** '' for what stands before the first heading below the title. */
  readonly anchor: string;
  /** `Notes – tool_text_shortened`. */
  readonly title: string;
  /** Plain text: the marks of Markdown are gone, the words and code stay. */
  readonly text: string;
}

/** Sections of the second and third level, in order; headings inside code are code. */
export function sectionsOf(page: Page): readonly Section[] {
  const out: { anchor: string; title: string; lines: string[] }[] = [
    { anchor: '', title: page.title, lines: [] },
  ];
  let code = false;
  for (const line of page.text.split('\n')) {
    if (/^\s*```/.test(line)) {
      code = !code;
      continue;
    }
    const heading = code ? null : /^(#{1,3})\s+(.*)$/.exec(line);
    if (heading === null) out.at(-1)!.lines.push(line);
    else if (heading[1] !== '#') {
      const words = plain(heading[2]!);
      out.push({ anchor: anchorOf(heading[2]!), title: `${page.title} – ${words}`, lines: [] });
    }
  }
  return out
    .map(({ anchor, title, lines }) => ({
      page: page.name,
      anchor,
      title,
      text: plain(lines.join('\n')),
    }))
    .filter(({ text }) => text !== '');
}

/** Markdown without its marks: rows of a table become lines with dashes between the cells. */
function plain(markdown: string): string {
  return markdown
    .replace(/^<!--.*-->$/gm, '')
    .replace(/^\|[\s|:-]+\|$/gm, '')
    .replace(/^\|\s*(.*?)\s*\|$/gm, (_, cells: string) => cells.replace(/\s*(?<!\\)\|\s*/g, ' – '))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|`/g, '')
    .replace(/\\([|*_])/g, '$1')
    .replace(/^>\s?/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}
