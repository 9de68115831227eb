/** Takes what is left of leaked calls out of a chat's reply, and tells of it. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { Interceptor } from '../feature.ts';
import { type Suppressor, suppressor } from './suppress.ts';

/**
 * @param onFound told at most once per text that held some
 * @param cleans whether reasoning is cleaned like the text
 */
export function cleanReply(
  onFound: () => void,
  cleans: { readonly reasoning: boolean },
): Interceptor {
  let text: Suppressor | undefined;
  let told = false;

  function tell({ count }: Suppressor): void {
    if (count === 0 || told) return;
    told = true;
    onFound();
  }

  function event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (event.type === 'delta') {
      if (text === undefined) return event;
      const said = text.push(event.text);
      tell(text);
      if (said === event.text) return event;
      return said === '' ? [] : { ...event, text: said };
    }
    if (event.type === 'block-start') {
      const { head } = event;
      told = false;
      const cleaned = head.type === 'text' || (head.type === 'reasoning' && cleans.reasoning);
      text = cleaned ? suppressor() : undefined;
      if (head.type !== 'whole' || head.block.type !== 'text') return event;
      const whole = suppressor();
      const said = whole.push(head.block.text) + whole.end();
      tell(whole);
      if (whole.count === 0) return event;
      const { wire: _, ...block } = head.block;
      return { ...event, head: { type: 'whole', block: { ...block, text: said } } };
    }
    if (event.type !== 'block-stop' || text === undefined) return event;
    const rest = text.end();
    tell(text);
    text = undefined;
    return rest === '' ? event : [{ type: 'delta', index: event.index, text: rest }, event];
  }

  return { event, end: () => [] };
}
