/** Text blocks with citations, as the client's protocol has them: own blocks on Messages, offsets elsewhere. */

import type { StreamEvent } from '../../../conversation/events.ts';
import type { Citation, ProtocolName } from '../../../conversation/types.ts';
import { CitationMarks, type CitePiece, type Piece } from './citation-marks.ts';
import { MINT, type NumberedSource } from './sources.ts';

/** Anthropic quotes at most so much of a page. */
const QUOTED = 150;

/** What a text block needs of the stream around it. */
export interface BlockCounter {
  /** The next free index on the client's side. */
  take(): number;
}

/**
 * One text block of the upstream, told to a client that declared the search. On Messages a cited span
 * is a block of its own and the mark goes; on the other protocols the mark stays and the citation
 * points at it.
 */
export class CitedText {
  readonly #marks: CitationMarks;
  readonly #splits: boolean;
  readonly #blocks: BlockCounter;
  #index: number;
  /** UTF-16 units said in this block. */
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

  start(): StreamEvent {
    return { type: 'block-start', index: this.#index, head: { type: 'text' } };
  }

  push(text: string): readonly StreamEvent[] {
    return this.#told(this.#marks.push(text));
  }

  end(): readonly StreamEvent[] {
    return [...this.#told(this.#marks.end()), { type: 'block-stop', index: this.#index }];
  }

  #told(pieces: readonly Piece[]): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const piece of pieces) {
      if (piece.type === 'text') this.#say(piece.text, events);
      else if (this.#splits) this.#closeSpan(piece, events);
      else this.#pointAt(piece, events);
    }
    return events;
  }

  #say(text: string, events: StreamEvent[]): void {
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

  #closeSpan({ sources, gap, tight }: CitePiece, events: StreamEvent[]): void {
    // Nothing was said that the source could be for.
    if (this.#length > 0) {
      this.#cited = true;
      for (const source of sources) {
        events.push({ type: 'citation', index: this.#index, citation: minted(source) });
      }
    }
    if (!tight) this.#say(gap, events);
  }

  #pointAt({ sources, gap, mark }: CitePiece, events: StreamEvent[]): void {
    this.#say(gap, events);
    const start = this.#length;
    this.#say(mark, events);
    for (const source of sources) {
      const citation = { url: source.url, title: source.title, start, end: this.#length };
      events.push({ type: 'citation', index: this.#index, citation });
    }
  }
}

/** A citation in the words of Messages, marked as this gateway's so that it never reaches a vendor. */
function minted(source: NumberedSource): Citation {
  const citedText = (source.text ?? source.title).slice(0, QUOTED);
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
