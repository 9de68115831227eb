/** The data of the stream tab: events in order, with the output up to each of them. */

import { totalInput, totalOutput } from '../../../conversation/usage.ts';
import type { EventPart, EventView } from '../../api/api.ts';

/** One side of the stream tab: all incoming or all outgoing events. */
export interface Tape {
  readonly events: readonly TapeEvent[];
}

export interface TapeEvent extends EventView {
  readonly stage: string;
  /** Characters of the answer's text up to and including this event. */
  readonly textLength: number;
}

/** One block of the output so far. */
export interface Spoken {
  readonly of: string;
  readonly text: string;
  readonly name?: string;
}

export function tapeOf(
  parts: readonly { readonly stage: string; readonly events: readonly EventView[] }[],
): Tape {
  let textLength = 0;
  const events = parts.flatMap(({ stage, events: frames }) =>
    frames.map((frame) => {
      for (const one of frame.says) if (isAnswerText(one)) textLength += one.text?.length ?? 0;
      return { ...frame, stage, textLength };
    }),
  );
  return { events };
}

const isAnswerText = ({ type, of }: EventPart): boolean =>
  type === 'delta' && (of === undefined || of === 'text' || of === 'refusal');

/** A position on both tapes: how many events of each are over. */
export interface Step {
  readonly left: number;
  readonly right: number;
}

/**
 * Both tapes as one sequence of steps. Known times order the events; otherwise an outgoing event follows the
 * incoming event that completes the same text.
 */
export function stepsOf(left: Tape, right: Tape): readonly Step[] {
  const timed = [...left.events, ...right.events].every(({ at }) => at !== undefined);
  const steps: Step[] = [];
  let i = 0;
  let j = 0;
  while (i < left.events.length || j < right.events.length) {
    const a = left.events[i];
    const b = right.events[j];
    const outFirst =
      b !== undefined &&
      (a === undefined ||
        (timed
          ? b.at! < a.at!
          : b.textLength <= (left.events[i - 1]?.textLength ?? -1) && startedBy(left, i)));
    if (outFirst) j++;
    else i++;
    steps.push({ left: i, right: j });
  }
  return steps;
}

/** Whether anything has come in: before that, nothing can go out. */
const startedBy = (tape: Tape, i: number): boolean => i > 0 || tape.events.length === 0;

/** The output of the first `upto` events, one part for each block. */
export function spoken({ events }: Tape, upto: number): readonly Spoken[] {
  const parts: { of: string; text: string; name?: string; block: string }[] = [];
  for (let i = 0; i < upto; i++) {
    const event = events[i]!;
    for (const { type, block, of, text } of event.says) {
      const id = `${event.stage} ${block}`;
      if (type === 'block-start' && (of === 'tool-call' || of === 'tool-result')) {
        parts.push({ of, text: '', block: id, ...(text !== undefined && { name: text }) });
      } else if (type === 'delta') {
        const last = parts.findLast((part) => part.block === id);
        if (last === undefined) parts.push({ of: of ?? 'text', text: text ?? '', block: id });
        else last.text += text ?? '';
      } else if (type === 'error') parts.push({ of: 'error', text: text ?? '', block: id });
    }
  }
  return parts;
}

/** The name of an event on the tape: the vendor's own, else what it says first. */
export const eventName = ({ name, says }: EventView): string => name || (says[0]?.type ?? 'data');

/** A short text for an event's line on the tape, beside its name. */
export function eventText(event: EventView): string {
  const name = eventName(event);
  const texts = event.says.map(({ type, of, text, usage }) => {
    const word = type === name ? '' : type;
    if (type === 'delta') return text ?? '';
    if (type === 'usage' && usage !== undefined)
      return `${word} ${totalInput(usage)} → ${totalOutput(usage)}`.trim();
    return [word, of === undefined || type === 'block-stop' ? '' : of, text ?? '']
      .filter((part) => part !== '')
      .join(' ');
  });
  return texts.join(' · ');
}
