/** Captures a finished chat turn into the memory: the messages to the model and its reply. */

import type { FinishReason, StreamEvent } from '../../conversation/events.ts';
import type { Memory, NewMemoryEvent } from '../../conversation/memory.ts';
import type { Conversation } from '../../conversation/types.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import type { Feature, Interceptor } from '../feature.ts';
import type { ChatRound } from './extension.ts';
import { turnTexts } from './turn-text.ts';

export interface CaptureOptions {
  readonly memory: Memory;
  readonly space: string;
  readonly round: ChatRound | undefined;
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
  /** Texts of the earlier hops. */
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
        .capture(space, eventsOf(options, reply, Math.floor(began)), began)
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
      ? others.map(({ from, text }) => ({ text, ...(from === '' ? {} : { source: from }) }))
      : round !== undefined && round.others.trim() !== ''
        ? [{ text: round.others }]
        : [];
  const known = new Set([...fromOthers.map(({ text }) => text.trim()), round?.others.trim() ?? '']);
  const user = userOf(round);
  const own = turnTexts(request().turns, round)
    .map((text) => text.trim())
    .filter((text) => text !== '' && !known.has(text));
  return [
    ...fromOthers.map((event) => ({ ...event, text: event.text.trim(), time: began })),
    ...own.map((text) => ({ text, source: user, time: began })),
    {
      text: reply,
      source: round?.self?.name ?? 'assistant',
      time: Math.max(Date.now(), began + 1),
    },
  ];
}

/** The user's name: in a chat of two, the member that is not the model. */
function userOf(round: ChatRound | undefined): string {
  const others = round?.members.filter(({ id }) => id !== round.self?.id) ?? [];
  return round?.mode === 'single' && others.length === 1 ? others[0]!.name : 'user';
}
