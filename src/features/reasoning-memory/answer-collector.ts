/** Collects the reasoning, seals and call ids of one streamed answer. Passes every event unchanged. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { FastInterceptor } from '../../conversation/fast-text.ts';
import type { ReasoningBlock, Sealed } from '../../conversation/types.ts';
import type { Interceptor } from '../feature.ts';
import type { AnswerPiece } from './session-ledger.ts';

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
 * Collects text only after reasoning: text without reasoning is not stored.
 * @param done called once when the stream has ended or was cut; not called if there is nothing to store
 */
export function answerCollector(done: (answer: CollectedAnswer) => void): Interceptor {
  const pieces: AnswerPiece[] = [];
  let open: 'reasoning' | 'text' | 'call' | undefined;
  let summary = false;
  let parts: string[] = [];
  let sealed: Sealed | undefined;
  const texts: string[] = [];
  let reasoned = false;
  let sealedCall = false;
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
            if (reasoned) texts.push(event.text);
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
      if ((reasoned || sealedCall) && chars <= MAX_CHARS) {
        done({ pieces, text: missedText ? undefined : texts.join('') });
      }
      return NOTHING;
    },
    fast: EVERY_TEXT,
  };
}
