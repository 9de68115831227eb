/** What a writer of one output item gets, and what it does with the events of its block. */

import type { StreamEvent } from '../../../conversation/events.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext } from '../../codec.ts';

/** What item writers need of the stream around them. */
export interface ItemStream {
  readonly context: ClientContext;
  /** Appends one event; `members` is JSON text of its members behind `sequence_number`. */
  send(type: string, members: string): void;
  /** The next item's place and id. */
  nextItem(prefix: string): { readonly index: number; readonly id: string };
  /** The item is complete: its `output_item.done` is sent, and it is part of the output. */
  done(index: number, item: JsonObject): void;
}

/** One item being written. */
export interface ItemWriter {
  event(event: StreamEvent): void;
  /** @param cut the answer ended incomplete while this item was the open one */
  close(cut: boolean): void;
}
