/** Collects the reasoning, seals and call ids of one streamed answer. Passes every event unchanged. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { FastInterceptor } from '../../conversation/fast-text.ts';
import type { ReasoningBlock, Sealed } from '../../conversation/types.ts';
import type { Interceptor } from '../feature.ts';
import type { AnswerPiece } from './session-ledger.ts';
import { TextSeals } from './text-seals.ts';

const NOTHING: readonly StreamEvent[] = [];
const EVERY_TEXT: FastInterceptor = { passesText: () => true, watchedCharacters: () => '' };

/** Longer reasoning is not stored. */
const MAX_CHARS = 2_000_000;

export interface CollectedAnswer {
  readonly pieces: readonly AnswerPiece[];
  /** The answer's text; undefined if not all of it was collected. */
  readonly text: string | undefined;
}

/**
 * Collects text only after reasoning, because text without reasoning is not stored; all text where the vendor
 * may seal it.
 * @param done called once when the stream has ended or was cut; not called if there is nothing to store
 */
export function answerCollector(
  done: (answer: CollectedAnswer) => void,
  sealsText = false,
): Interceptor {
  const pieces: AnswerPiece[] = [];
  let open: 'reasoning' | 'text' | 'call' | undefined;
  let summary = false;
  let parts: string[] = [];
  let sealed: Sealed | undefined;
  const texts: string[] = [];
  let reasoned = false;
  let hasSeal = false;
  const seals = sealsText ? new TextSeals() : undefined;
  /** Text came before any reasoning and was not collected. */
  let missedText = false;
  let chars = 0;

  function closeReasoning(): void {
    const text = parts.join('');
    parts = [];
    if (text.trim() === '' && sealed === undefined) return;
    const block: ReasoningBlock = {
      type: 'reasoning',
      text,
      summary: summary || undefined,
      sealed,
    };
    pieces.push({ type: 'reasoning', block });
    reasoned = true;
  }

  function addSeal(piece: AnswerPiece | undefined): void {
    if (piece === undefined) return;
    pieces.push(piece);
    hasSeal = true;
  }

  function begin({ head }: StreamEvent & { type: 'block-start' }): void {
    open = undefined;
    sealed = undefined;
    seals?.begin(undefined);
    switch (head.type) {
      case 'reasoning':
        open = 'reasoning';
        summary = head.summary === true;
        break;
      case 'text':
        open = 'text';
        seals?.begin('text');
        pieces.push({ type: 'text' });
        break;
      case 'tool-call':
        if (head.by === 'provider') break;
        open = 'call';
        seals?.begin('call', head.id);
        hasSeal ||= head.sealed !== undefined;
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
            if (seals !== undefined) seals.text(event.text);
            else if (reasoned) texts.push(event.text);
            else missedText = true;
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
            hasSeal = true;
          }
          break;
        case 'block-stop':
          if (open === 'reasoning') closeReasoning();
          open = undefined;
          for (const piece of seals?.stop() ?? []) addSeal(piece);
          break;
        case 'opaque':
          if (event.textSeal !== undefined) addSeal(seals?.seal(event.textSeal));
      }
      return event;
    },
    end() {
      if ((reasoned || hasSeal) && chars <= MAX_CHARS) {
        const text = seals?.whole ?? texts.join('');
        done({ pieces, text: missedText ? undefined : text });
      }
      return NOTHING;
    },
    fast: EVERY_TEXT,
  };
}
