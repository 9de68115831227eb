/** Decides what a closer without an opener means: part of a run of calls, a change of channel, or text. */

import type { Lexeme } from '../block/lex.ts';
import type { CallRun, Channel } from './call-run.ts';
import type { CodeMask } from './code-mask.ts';
import type { TextOut } from './text-out.ts';

/**
 * `text`: the text mentions it; `wait`: the next character decides; `piece`: it belongs to the run; `last`: it
 * belongs to the run, and after it the block's own channel continues; `stray`: only models write it; `cut`: it
 * belongs to the block before it; `back`: it ends the channel that a tag began; `lone`: the end of thinking on
 * a separate line; `thinking`: everything so far was thinking.
 */
export type CloserMeaning =
  | 'text'
  | 'wait'
  | 'piece'
  | 'last'
  | 'stray'
  | 'cut'
  | 'back'
  | 'lone'
  | 'thinking';

export interface CloserContext {
  readonly run: CallRun | undefined;
  /** The block's own channel, whether a tag has switched it now, and whether one ever did. */
  readonly base: Channel;
  readonly switched: boolean;
  readonly hasSwitched: boolean;
  readonly behindBlock: boolean;
  readonly out: TextOut;
  readonly mask: CodeMask;
  /** The text between the last markup and the closer; `blank`: only white space. */
  readonly before: string;
  readonly blank: boolean;
  readonly atEnd: boolean;
  /** The code of the character after the closer. */
  readonly next: number;
  /** No more text will follow. */
  readonly final: boolean;
}

export function closerMeaning({ word }: Lexeme, place: CloserContext): CloserMeaning {
  const { role, notation } = word;
  const { run, blank, switched } = place;
  if (run !== undefined && blank && run.tail === '') {
    if (switched && (role === 'channel' || role === 'stop')) return 'last';
    return role === 'channel' ? 'text' : 'piece';
  }
  if (role === 'channel') return channelCloser(place);
  if (switched && role === 'stop') return 'back';
  if (place.behindBlock && blank) return 'cut';
  if (role === 'stop' && place.hasSwitched) return 'cut';
  if (role === 'stop' || notation === 'plain' || run !== undefined) return 'text';
  return 'stray';
}

/** The opening tags of thinking. */
const OPENER = /<(?:mm:)?think|\[THINK/;

function channelCloser(place: CloserContext): CloserMeaning {
  const { out, mask, before, next } = place;
  if (place.switched) return 'back';
  if (place.base === 'reasoning' || place.run !== undefined) return 'text';
  if (place.behindBlock && place.blank) return 'cut';
  // `a </think> b` and `<think>a</think>` inside a text mention the tag.
  if (out.spoken && !mask.lineStart) return 'text';
  if (place.atEnd && !place.final) return 'wait';
  if (next === 0x20) return 'text';
  if (out.spoken) return !place.atEnd && next !== 0x0a && next !== 0x0d ? 'text' : 'lone';
  if (mask.previous === 0x20) return 'text';
  out.namesThinking ||= OPENER.test(before) || OPENER.test(out.clear);
  // Otherwise everything so far was thinking whose opening tag was in the prompt.
  return out.namesThinking ? 'text' : 'thinking';
}
