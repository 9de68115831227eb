/** Full-text search over the sections of the manual; the first search builds the index, so that the start does not. */

import { type FullText, fullText } from '../lib/text/full-text.ts';
import { PAGES } from './pages.ts';
import { type Section, sectionsOf } from './sections.ts';

let index: FullText<Section> | undefined;

/** The best `count` sections, best first. */
export function searchManual(query: string, count: number): readonly Section[] {
  index ??= fullText(PAGES.flatMap((page) => sectionsOf(page)));
  return index.search(query, count);
}

/** `/notes#parameter_dropped`: the path of a section below that of the manual. */
export const sectionPath = ({ page, anchor }: Section): string =>
  `/${page}${anchor === '' ? '' : `#${anchor}`}`;
