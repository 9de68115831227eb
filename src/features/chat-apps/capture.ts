/** Turns become events of a memory: what was said to the model, and what it answered, once that is over. */

import type { FinishReason, StreamEvent } from '../../conversation/events.ts';
import type { Memory, NewMemoryEvent } from '../../conversation/memory.ts';
import type { Conversation } from '../../conversation/types.ts';
import { instant } from '../../lib/loop/instant.ts';
import type { Feature, Interceptor } from '../feature.ts';
import type { Talk } from './extension.ts';
import { turnTexts } from './query.ts';

export interface CaptureOptions {
  readonly memory: Memory;
  readonly space: string;
  readonly talk: Talk | undefined;
  /** The request as the client made it. */
  readonly asked: () => Conversation;
  readonly onFailed: (thrown: unknown) => void;
}

/** Endings behind which the model has had its say; calls for the client mean that it goes on. */
const SAID: ReadonlySet<FinishReason> = new Set(['stop', 'stop-sequence', 'length']);

/**
 * Watches the answer as the client gets it; stands behind everything that changes it. One exchange is
 * captured at most once, after its true end, and nobody waits for it.
 */
export function capture(options: CaptureOptions): Feature {
  const began = instant();
  /** Told by the hops before the running one. */
  let told: readonly string[] = [];
  return {
    name: 'memory-capture',
    intercept(): Interceptor {
      const texts: string[] = [];
      let inText = false;
      let reason: FinishReason | undefined;
      function see(event: StreamEvent): void {
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
            if (reason !== undefined && SAID.has(reason)) keep([...told, ...texts]);
        }
      }
      return {
        event(event) {
          see(event);
          return event;
        },
        end() {
          told = [...told, ...texts.splice(0)];
          return [];
        },
        fast: { passesText: () => true },
      };
    },
  };

  function keep(parts: readonly string[]): void {
    const reply = parts
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .join('\n\n');
    if (reply === '') return;
    // Behind the bytes of the answer that are being written now.
    setTimeout(() => {
      const { memory, space } = options;
      memory
        .capture(space, eventsOf(options, reply, Math.floor(began)), began)
        .catch(options.onFailed);
    });
  }
}

function eventsOf(
  { talk, asked }: CaptureOptions,
  reply: string,
  began: number,
): readonly NewMemoryEvent[] {
  const others = talk?.messages ?? [];
  const heard: readonly NewMemoryEvent[] =
    others.length > 0
      ? others.map(({ from, text }) => ({ text, ...(from === '' ? {} : { source: from }) }))
      : talk !== undefined && talk.others.trim() !== ''
        ? [{ text: talk.others }]
        : [];
  const known = new Set([...heard.map(({ text }) => text.trim()), talk?.others.trim() ?? '']);
  const user = userOf(talk);
  const own = turnTexts(asked().turns, talk)
    .map((text) => text.trim())
    .filter((text) => text !== '' && !known.has(text));
  return [
    ...heard.map((event) => ({ ...event, text: event.text.trim(), time: began })),
    ...own.map((text) => ({ text, source: user, time: began })),
    { text: reply, source: talk?.self?.name ?? 'assistant', time: Math.max(Date.now(), began + 1) },
  ];
}

/** The user's name: in a chat of two the one that is not the model. */
function userOf(talk: Talk | undefined): string {
  const others = talk?.members.filter(({ id }) => id !== talk.self?.id) ?? [];
  return talk?.mode === 'single' && others.length === 1 ? others[0]!.name : 'user';
}
