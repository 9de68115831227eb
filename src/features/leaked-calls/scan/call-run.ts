/** A run of leaked calls: markup followed so far only by markup, and what may follow it. */

import type { LeakBlock } from '../block/block.ts';
import { buildCalls, type RecoveredCall } from '../build-calls.ts';
import type { CodeMask } from './code-mask.ts';
import type { ScanRules } from './openings.ts';
import type { Channel } from './text-out.ts';

export interface Leak {
  readonly family: string;
  /** left: the markup stays in the text. */
  readonly outcome: 'recovered' | 'removed' | 'left';
  readonly calls: readonly RecoveredCall[];
  /** The channel in which it was found. */
  readonly channel: Channel;
  /** The reply broke off inside it. */
  readonly truncated: boolean;
  /** The called name, if the request has no such tool. */
  readonly unknown?: string;
  /** Why a whole call was left in the text. */
  readonly why?: 'quoted' | 'unreadable';
}

/** A piece of a run: markup with its leak, or white space and closers between. */
export interface RunPiece {
  readonly raw: string;
  readonly leak?: Leak;
  /** After it the text continues in the block's own channel. */
  readonly ends?: true;
  /** Whitespace. */
  readonly gap?: true;
}

/** Maximum characters of markup that wait for what follows; longer markup is text. */
export const MAX_HELD = 8 * 1024 * 1024;

/**
 * A separate paragraph after a call at the beginning of the reply, in which the model says that it waits for
 * the result. Any other text after a call makes the call a quotation.
 */
const WAITS =
  /^(?:(?:done|ok|okay|now)[,.!:;]? )?(?:(?:i am|i'm|i will|i'll|let me|let us|let's|we) )?(?:now )?(?:wait|waiting|awaiting)(?: (?:for|until|on)(?: [a-z]{1,12}){1,6})?[.!…]*$/i;
const MAX_WAIT = 80;
const PARAGRAPH = /\n[ \t\r]*\n/;

/** Markup followed so far only by markup. If that remains so, it is calls. */
export class CallRun {
  readonly pieces: RunPiece[] = [];
  /** Text after the run, which may say that the model waits. */
  tail = '';
  #size = 0;

  constructor(
    /** The mask's state before the run, in case the run turns out to be text. */
    readonly mask: CodeMask,
    /** The reply begins with it. */
    private readonly first: boolean,
  ) {}

  /** Adds a piece. False if the run has become too long. */
  add(piece: RunPiece): boolean {
    this.pieces.push(piece);
    this.#size += piece.raw.length;
    return this.#size <= MAX_HELD;
  }

  /** Adds text that follows. False if the run is a quotation. */
  follow(text: string): boolean {
    const words = this.tail === '' ? text.trimStart() : text;
    const gap = text.slice(0, text.length - words.length);
    const last = this.pieces.at(-1)!;
    if (gap !== '' && last.gap) this.pieces[this.pieces.length - 1] = join(last, gap);
    else if (gap !== '') this.pieces.push({ raw: gap, gap: true });
    this.#size += gap.length;
    this.tail += words;
    return this.#size <= MAX_HELD && (this.tail === '' || this.#mayWait());
  }

  /** The text after the run says that the model waits. */
  get waits(): boolean {
    return this.#mayWait() && (this.#spoken || WAITS.test(this.tail.trimEnd()));
  }

  /** LFM begins its answers with the calls, and its words follow on the same line. */
  get #spoken(): boolean {
    return this.first && this.pieces.at(-1)?.leak?.family === 'lfm';
  }

  /** May the text after the run still say that the model waits? */
  #mayWait(): boolean {
    if (this.#spoken) return true;
    if (!this.first || this.tail.length > MAX_WAIT * 2) return false;
    const gap = this.pieces.at(-1)!;
    if (!gap.gap || !PARAGRAPH.test(gap.raw.slice(0, MAX_WAIT))) return false;
    const words = this.tail.trimEnd();
    return words.length <= MAX_WAIT && !words.includes('\n');
  }
}

const join = ({ raw }: RunPiece, gap: string): RunPiece => ({ raw: raw + gap, gap: true });

/** A leak without a call. */
export const leakOf = (family: string, channel: Channel, truncated = false): Leak => ({
  family,
  outcome: 'removed',
  calls: [],
  channel,
  truncated,
});

/** The same leak, left in the text. */
export function leftInText(leak: Leak, why?: Leak['why']): Leak {
  const { calls, unknown = calls[0]?.name, ...rest } = leak;
  return {
    ...rest,
    outcome: 'left',
    calls: [],
    truncated: false,
    unknown,
    why: why ?? leak.why,
  };
}

/** Is the leak a complete call of any tool, known or unknown? */
export const isCall = ({ calls, unknown, truncated }: Leak): boolean =>
  calls.length > 0 || (unknown !== undefined && !truncated);

/** `unreadable`: it may be a call, but reading it would cost too much. */
export function leakIn(
  block: LeakBlock,
  { tools, repairs }: ScanRules,
  channel: Channel,
): { readonly leak: Leak; readonly unreadable: boolean } {
  const { refused } = repairs;
  const { calls: found, family, unreadable: isBroken } = block.reading;
  const calls = found.flatMap((call) => buildCalls(call, tools, repairs));
  const unreadable = repairs.refused > refused || isBroken;
  const leak: Leak = {
    ...leakOf(family, channel, block.truncated),
    calls,
    outcome: calls.length > 0 ? 'recovered' : 'removed',
    unknown: found.find(({ name }) => name && !tools.resolve(name))?.name,
  };
  return { leak, unreadable };
}
