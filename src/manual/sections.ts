/** Splits pages into sections at their headings, so that a search leads to the section and not only to the page. */

import { anchorOf } from './markdown.ts';
import type { Page } from './pages.ts';

export interface Section {
  readonly page: string;
  /** '' for the text before the first heading below the title. */
  readonly anchor: string;
  /** `Notes – tool_text_shortened`. */
  readonly title: string;
  /** `tool_text_shortened`; the title of the page for the text before the first heading. */
  readonly heading: string;
  /** Plain text without the markup; words and code stay. */
  readonly text: string;
}

/**
 * The sections from the second heading level down to `deepest`, in order, without empty ones. A heading inside code
 * is code.
 */
export function sectionsOf(page: Page, deepest = 3): readonly Section[] {
  const out: { anchor: string; title: string; heading: string; lines: string[] }[] = [
    { anchor: '', title: page.title, heading: page.title, lines: [] },
  ];
  let code = false;
  for (const line of page.text.split('\n')) {
    if (/^\s*```/.test(line)) {
      code = !code;
      continue;
    }
    const heading = code ? null : /^(#{1,3})\s+(.*)$/.exec(line);
    if (heading === null || heading[1]!.length > deepest) out.at(-1)!.lines.push(line);
    else if (heading[1] !== '#') {
      const words = plain(heading[2]!);
      const title = `${page.title} – ${words}`;
      out.push({ anchor: anchorOf(heading[2]!), title, heading: words, lines: [] });
    }
  }
  return out
    .map(({ anchor, title, heading, lines }) => ({
      page: page.name,
      anchor,
      title,
      heading,
      text: plain(lines.join('\n')),
    }))
    .filter(({ text }) => text !== '');
}

/** Markdown without its markup; rows of a table become lines with dashes between the cells. */
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
