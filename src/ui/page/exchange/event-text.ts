/** An event of a stream in words. */

import { totalInput, totalOutput } from '../../../conversation/usage.ts';
import type { EventView } from '../../api/api.ts';

/** The vendor's own name of an event, else what it says first. */
export const eventName = ({ name, says }: EventView): string => name || (says[0]?.type ?? 'data');

/** A short text beside the name of an event. */
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
