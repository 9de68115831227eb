/** Listens to one answer and keeps what it was made with; every event goes on untouched. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { FastInterceptor } from '../../conversation/fast-text.ts';
import type { ReasoningBlock, Sealed } from '../../conversation/types.ts';
import type { Interceptor } from '../feature.ts';
import type { Piece } from './ledger.ts';

const NOTHING: readonly StreamEvent[] = [];
const EVERY_TEXT: FastInterceptor = { passesText: () => true, watchedCharacters: () => '' };

/** Longer reasoning is not kept. */
const MOST_CHARS = 2_000_000;

export interface Heard {
  readonly pieces: readonly Piece[];
  /** The answer's text; undefined where it was not listened to. */
  readonly said: string | undefined;
}

/**
 * Costs a comparison per delta, and a push while reasoning is open or text follows it: text without
 * reasoning is nothing to remember.
 * @param done told once, when the stream is over or cut; not at all where there is nothing to keep
 */
export function collector(done: (heard: Heard) => void): Interceptor {
  const pieces: Piece[] = [];
  let open: 'reasoning' | 'text' | 'call' | undefined;
  let summary = false;
  let parts: string[] = [];
  let sealed: Sealed | undefined;
  const said: string[] = [];
  let reasoned = false;
  let sealedCall = false;
  /** Text came before any reasoning, and is lost. */
  let unheard = false;
  let chars = 0;

  function closeReasoning(): void {
    const text = parts.join('');
    parts = [];
    if (text.trim() === '' && sealed === undefined) return;
    const block: ReasoningBlock = {
      type: 'reasoning',
      text,
      ...(summary ? { summary: true } : {}),
      ...(sealed === undefined ? {} : { sealed }),
    };
    pieces.push({ type: 'reasoning', block });
    reasoned = true;
  }

  function begin({ head }: StreamEvent & { type: 'block-start' }): void {
    open = undefined;
    sealed = undefined;
    switch (head.type) {
      case 'reasoning':
        open = 'reasoning';
        summary = head.summary === true;
        break;
      case 'text':
        open = 'text';
        pieces.push({ type: 'text' });
        break;
      case 'tool-call':
        if (head.by === 'provider') break;
        open = 'call';
        sealedCall ||= head.sealed !== undefined;
        pieces.push({ type: 'call', id: head.id, ...(head.sealed ? { sealed: head.sealed } : {}) });
        break;
      case 'whole':
        if (head.block.type === 'reasoning') {
          const { wire: _, residue: __, ...block } = head.block;
          pieces.push({ type: 'reasoning', block });
          reasoned = true;
        }
    }
  }

  return {
    event(event) {
      switch (event.type) {
        case 'delta':
          if (open === 'reasoning') {
            if (event.newPart && parts.length > 0) parts.push('\n\n');
            parts.push(event.text);
            chars += event.text.length;
          } else if (open === 'text') {
            if (reasoned) said.push(event.text);
            else unheard = true;
          }
          break;
        case 'block-start':
          begin(event);
          break;
        case 'sealed':
          sealed = event.sealed;
          if (open === 'call') {
            const call = pieces.at(-1);
            if (call?.type === 'call') pieces[pieces.length - 1] = { ...call, sealed };
            sealedCall = true;
          }
          break;
        case 'block-stop':
          if (open === 'reasoning') closeReasoning();
          open = undefined;
      }
      return event;
    },
    end() {
      if ((reasoned || sealedCall) && chars <= MOST_CHARS) {
        done({ pieces, said: unheard ? undefined : said.join('') });
      }
      return NOTHING;
    },
    fast: EVERY_TEXT,
  };
}
