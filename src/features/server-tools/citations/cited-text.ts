/** Text with citations in the client's protocol: separate blocks on Messages, offsets on the others. */

import type { BlockHead, StreamEvent } from '../../../conversation/events.ts';
import type { Citation, ProtocolName } from '../../../conversation/types.ts';
import { CitationMarks, type CitationPiece, type CitedTextPiece } from './citation-marks.ts';
import { MINT, type NumberedSource } from './sources.ts';

/** Characters that Anthropic quotes of a page at most. */
const MAX_QUOTE = 150;

/** Hands out block indexes on the client's side. */
export interface BlockCounter {
  /** The next free index. */
  take(): number;
}

/**
 * One text block of the upstream for a client that declared the search. On Messages a cited span is a
 * block of its own and its mark is removed; on the other protocols the mark stays and the citation
 * points to it.
 */
export class CitedText {
  readonly #marks: CitationMarks;
  readonly #splits: boolean;
  readonly #blocks: BlockCounter;
  #index: number;
  /** UTF-16 units in this block so far. */
  #length = 0;
  #cited = false;

  constructor(
    client: ProtocolName,
    source: (n: number) => NumberedSource | undefined,
    blocks: BlockCounter,
  ) {
    this.#marks = new CitationMarks(source);
    this.#splits = client === 'anthropic-messages';
    this.#blocks = blocks;
    this.#index = blocks.take();
  }

  get index(): number {
    return this.#index;
  }

  start(head: BlockHead = { type: 'text' }): StreamEvent {
    return { type: 'block-start', index: this.#index, head };
  }

  push(text: string): readonly StreamEvent[] {
    return this.#toEvents(this.#marks.push(text));
  }

  end(): readonly StreamEvent[] {
    return [...this.#toEvents(this.#marks.end()), { type: 'block-stop', index: this.#index }];
  }

  #toEvents(pieces: readonly CitedTextPiece[]): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const piece of pieces) {
      if (piece.type === 'text') this.#addText(piece.text, events);
      else if (this.#splits) this.#closeSpan(piece, events);
      else this.#pointAt(piece, events);
    }
    return events;
  }

  #addText(text: string, events: StreamEvent[]): void {
    if (text === '') return;
    if (this.#cited) {
      events.push({ type: 'block-stop', index: this.#index });
      this.#index = this.#blocks.take();
      this.#cited = false;
      this.#length = 0;
      events.push(this.start());
    }
    this.#length += text.length;
    events.push({ type: 'delta', index: this.#index, text });
  }

  #closeSpan({ sources, gap, tight }: CitationPiece, events: StreamEvent[]): void {
    // Without text before the mark there is nothing to cite the source for.
    if (this.#length > 0) {
      this.#cited = true;
      for (const source of sources) {
        events.push({ type: 'citation', index: this.#index, citation: minted(source) });
      }
    }
    if (!tight) this.#addText(gap, events);
  }

  #pointAt({ sources, gap, mark }: CitationPiece, events: StreamEvent[]): void {
    this.#addText(gap, events);
    const start = this.#length;
    this.#addText(mark, events);
    for (const source of sources) {
      const citation = { url: source.url, title: source.title, start, end: this.#length };
      events.push({ type: 'citation', index: this.#index, citation });
    }
  }
}

/** A citation of the Messages protocol, marked as this gateway's so that no vendor gets it. */
function minted(source: NumberedSource): Citation {
  const citedText = (source.text ?? source.title).slice(0, MAX_QUOTE);
  const value = {
    type: 'web_search_result_location',
    url: source.url,
    title: source.title,
    encrypted_index: `${MINT}${source.n}`,
    cited_text: citedText,
  };
  const wire = { protocol: 'anthropic-messages', value } as const;
  return { url: source.url, title: source.title, citedText, wire };
}
