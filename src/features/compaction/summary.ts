/** Turns the model's answer into one compaction item that holds its text as a summary. */

import type { BlockHead, StreamEvent } from '../../conversation/events.ts';
import { wrapSummary } from '../../conversation/seal.ts';
import type { OpaqueBlock } from '../../conversation/types.ts';
import { randomBase36 } from '../../lib/text/ids.ts';
import type { Interceptor } from '../feature.ts';

/** The type of the item that stands for a compacted history. */
export const COMPACTION = 'compaction';

const NONE: readonly StreamEvent[] = [];

/**
 * Holds the whole answer back: until the summary is complete, another attempt leaves no trace. An answer without text
 * becomes none, which the gateway takes for a failed attempt.
 */
export class SummaryInterceptor implements Interceptor {
  #summary = '';
  #open: BlockHead['type'] | undefined;

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    switch (event.type) {
      case 'block-start':
        this.#open = event.head.type;
        return NONE;
      case 'delta':
        if (this.#open === 'text') this.#summary += event.text;
        return NONE;
      case 'sealed':
      case 'citation':
      case 'logprobs':
      case 'block-stop':
        return NONE;
      case 'finish':
        return this.#summary.trim() === '' ? event : [...itemEvents(this.#summary.trim()), event];
      default:
        return event;
    }
  }

  end(): readonly StreamEvent[] {
    return NONE;
  }
}

function itemEvents(summary: string): readonly StreamEvent[] {
  const value = {
    type: COMPACTION,
    id: `cmp_${randomBase36(24)}`,
    encrypted_content: wrapSummary(summary),
  };
  const wire = { protocol: 'openai-responses', value } as const;
  const block: OpaqueBlock = { type: 'opaque', name: COMPACTION, wire };
  return [
    { type: 'block-start', index: 0, head: { type: 'whole', block } },
    { type: 'block-stop', index: 0 },
  ];
}
