/** Full-text search over the sections of the manual; the index is built by the first search, so that a start pays nothing. */

import { type FullText, fullText } from '../lib/text/full-text.ts';
import { PAGES } from './pages.ts';
import { type Section, sectionsOf } from './sections.ts';

let index: FullText<Section> | undefined;

/** The best `count` sections, best first. */
export function searchManual(query: string, count: number): readonly Section[] {
  index ??= fullText(PAGES.flatMap((page) => sectionsOf(page)));
  return index.search(query, count);
}

/** `/notes#parameter_dropped`: where a section is, below the manual's address. */
export const sectionPath = ({ page, anchor }: Section): string =>
  `/${page}${anchor === '' ? '' : `#${anchor}`}`;
