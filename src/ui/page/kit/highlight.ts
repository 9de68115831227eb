/** Marks the words of a search in what is shown, without changing the elements. */

import { quotedWords } from '../../../lib/text/quoted-words.ts';

const MAX = 500;

const wordsOf = (q: string) => quotedWords(q.toLowerCase());

export function hasWord(text: string, q: string): boolean {
  const lower = text.toLowerCase();
  return wordsOf(q).some((word) => lower.includes(word));
}

/** Marks all places inside `root`, and scrolls the first one into view. */
export function highlight(root: Element, q: string): void {
  // Browsers without this show the texts unmarked.
  if (typeof Highlight === 'undefined') return;
  CSS.highlights.delete('search');
  const words = wordsOf(q);
  if (words.length === 0) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (
    let node = walker.nextNode();
    node !== null && ranges.length < MAX;
    node = walker.nextNode()
  ) {
    const text = (node as Text).data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0 && ranges.length < MAX; ) {
        const range = new Range();
        const length = (node as Text).data.length;
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
