/** The interfaces between the stream encoder and the writers of single output items. */

import type { StreamEvent } from '../../../conversation/events.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';

export interface ItemStream {
  readonly context: ClientContext;
  /** Appends one event. `members` is the JSON text of its members after `sequence_number`. */
  send(type: string, members: string): void;
  /** The output index and id of the next item. */
  nextItem(prefix: string): { readonly index: number; readonly id: string };
  /** Sends the item's `output_item.done` and adds it to the output. */
  done(index: number, item: JsonObject): void;
}

export interface ItemWriter {
  event(event: StreamEvent): void;
  /** @param cut the answer ended incomplete while this item was open */
  close(cut: boolean): void;
}
