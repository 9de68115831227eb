/** Captures a finished chat turn into the memory: the messages to the model and its reply. */

import type { FinishReason, StreamEvent } from '../../conversation/events.ts';
import type { CapturedTurn, Memory, NewMemoryEvent } from '../../conversation/memory.ts';
import type { Block, Conversation, TextBlock, Turn } from '../../conversation/types.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import type { Feature, Interceptor } from '../feature.ts';
import type { ChatRound } from './extension.ts';

export interface CaptureOptions {
  readonly memory: Pick<Memory, 'capture'>;
  readonly space: string;
  readonly round: ChatRound | undefined;
  /** The app's name for the turn. */
  readonly turn?: string | undefined;
  /** The request as the client made it. */
  readonly request: () => Conversation;
  readonly onFailed: (thrown: unknown) => void;
}

/** Endings of a complete reply. After calls for the client the turn continues. */
const COMPLETE: ReadonlySet<FinishReason> = new Set(['stop', 'stop-sequence', 'length']);

/**
 * Reads the answer as the client gets it, so it comes after every feature that changes it. An exchange
 * is captured at most once, after its true end, in the background.
 */
export function capture(options: CaptureOptions): Feature {
  const began = preciseNow();
  let earlierTexts: readonly string[] = [];
  return {
    name: 'memory-capture',
    intercept(): Interceptor {
      const texts: string[] = [];
      let inText = false;
      let reason: FinishReason | undefined;
      function observe(event: StreamEvent): void {
        switch (event.type) {
          case 'block-start': {
            const { head } = event;
            inText = head.type === 'text';
            if (inText) texts.push('');
            else if (head.type === 'whole' && head.block.type === 'text') {
              texts.push(head.block.text);
            }
            break;
          }
          case 'delta':
            if (inText) texts[texts.length - 1] += event.text;
            break;
          case 'finish':
            reason = event.reason;
            break;
          case 'end':
            if (reason !== undefined && COMPLETE.has(reason))
              captureTurn([...earlierTexts, ...texts]);
        }
      }
      return {
        event(event) {
          observe(event);
          return event;
        },
        end() {
          earlierTexts = [...earlierTexts, ...texts.splice(0)];
          return [];
        },
        fast: { passesText: () => true },
      };
    },
  };

  function captureTurn(parts: readonly string[]): void {
    const reply = parts
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .join('\n\n');
    if (reply === '') return;
    // After the bytes of the answer that are being written now.
    setTimeout(() => {
      const { memory, space } = options;
      memory
        .capture(space, eventsOf(options, reply, Math.floor(began)), began, turnOf(options))
        .catch(options.onFailed);
    });
  }
}

function eventsOf(
  { round, request }: CaptureOptions,
  reply: string,
  began: number,
): readonly NewMemoryEvent[] {
  const others = round?.messages ?? [];
  const fromOthers: readonly NewMemoryEvent[] =
    others.length > 0
      ? others.map(({ from, text, time }) => ({
          text,
          ...(from === '' ? {} : { source: from }),
          ...(time === undefined ? {} : { time }),
        }))
      : round !== undefined && round.others.trim() !== ''
        ? [{ text: round.others }]
        : [];
  const known = new Set([...fromOthers.map(({ text }) => text.trim()), round?.others.trim() ?? '']);
  const user = userOf(round);
  const own = turnTexts(request().turns, round)
    .map((text) => text.trim())
    .filter((text) => text !== '' && !known.has(text));
  return [
    ...fromOthers.map((event) => ({ time: began, ...event, text: event.text.trim() })),
    ...own.map((text) => ({ text, source: user, time: began })),
    {
      text: reply,
      source: round?.self?.name ?? 'assistant',
      time: Math.max(Date.now(), began + 1),
    },
  ];
}

/** Texts before a turn that tell it from another one with the same words. */
const TEXTS_BEFORE = 6;

/** A reply that is asked for again, by a retry or a press on a button, has the same words before it. */
function turnOf({ round, turn, request }: CaptureOptions): CapturedTurn {
  const self = round?.self?.name ?? '';
  if (turn !== undefined) return { name: JSON.stringify(['given', self, turn]), isGiven: true };
  const texts = request().turns.flatMap(({ role, blocks }) =>
    role === 'user' || role === 'assistant'
      ? blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
      : [],
  );
  const name = JSON.stringify(['said', self, round?.others ?? '', ...texts.slice(-TEXTS_BEFORE)]);
  return { name, isGiven: false };
}

/** The user's name: in a chat of two, the member that is not the model. */
function userOf(round: ChatRound | undefined): string {
  const others = round?.members.filter(({ id }) => id !== round.self?.id) ?? [];
  return round?.mode === 'single' && others.length === 1 ? others[0]!.name : 'user';
}

/** Characters of a recall's query; of a longer text the end is used. */
const MAX_QUERY = 1000;

/** The query of a forced recall: the user's text of this turn, otherwise the others' messages. */
export function turnQuery(
  { turns }: Pick<Conversation, 'turns'>,
  round: Pick<ChatRound, 'others' | 'othersSeparate'> | undefined,
): string {
  const own = turnTexts(turns, round).join('\n');
  const query = own.trim() === '' ? (round?.others ?? '') : own;
  // The cut may leave half of a surrogate pair.
  return query
    .trim()
    .slice(-MAX_QUERY)
    .replace(/^[\uDC00-\uDFFF]/, '')
    .trim();
}

/**
 * The user's texts of the current turn, in order: all since the model last spoke. Where the app sends
 * the others' messages separately, only the last user message belongs to the turn.
 */
function turnTexts(
  turns: readonly Turn[],
  round: Pick<ChatRound, 'othersSeparate'> | undefined,
): readonly string[] {
  const last = turns.findLastIndex(({ role, blocks }) => role === 'user' && blocks.some(isText));
  const out: string[] = [];
  for (let at = last; at >= 0 && turns[at]!.role !== 'assistant'; at--) {
    if (turns[at]!.role !== 'user') continue;
    const texts = turns[at]!.blocks.flatMap((block) => (isText(block) ? [block.text] : []));
    out.unshift(...texts);
    if (round?.othersSeparate === true) break;
  }
  return out;
}

const isText = (block: Block): block is TextBlock =>
  block.type === 'text' && block.text.trim() !== '';
