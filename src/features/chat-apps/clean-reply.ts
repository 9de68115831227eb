/** Removes the markup of leaked calls from a chat's reply, as an interceptor. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { Interceptor } from '../feature.ts';
import { type MarkupRemover, markupRemover } from './leaked-markup.ts';

/**
 * @param onFound called at most once for each text that contained markup
 * @param cleans whether reasoning is cleaned like the text
 */
export function cleanReply(
  onFound: () => void,
  cleans: { readonly reasoning: boolean },
): Interceptor {
  let text: MarkupRemover | undefined;
  let reported = false;

  function reportOnce({ count }: MarkupRemover): void {
    if (count === 0 || reported) return;
    reported = true;
    onFound();
  }

  function event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (event.type === 'delta') {
      if (text === undefined) return event;
      const cleaned = text.push(event.text);
      reportOnce(text);
      if (cleaned === event.text) return event;
      return cleaned === '' ? [] : { ...event, text: cleaned };
    }
    if (event.type === 'block-start') {
      const { head } = event;
      reported = false;
      const applies = head.type === 'text' || (head.type === 'reasoning' && cleans.reasoning);
      text = applies ? markupRemover() : undefined;
      if (head.type !== 'whole' || head.block.type !== 'text') return event;
      const whole = markupRemover();
      const cleaned = whole.push(head.block.text) + whole.end();
      reportOnce(whole);
      if (whole.count === 0) return event;
      const { wire: _, ...block } = head.block;
      return { ...event, head: { type: 'whole', block: { ...block, text: cleaned } } };
    }
    if (event.type !== 'block-stop' || text === undefined) return event;
    const rest = text.end();
    reportOnce(text);
    text = undefined;
    return rest === '' ? event : [{ type: 'delta', index: event.index, text: rest }, event];
  }

  return { event, end: () => [] };
}
