/** Answers a request for which nothing is to be generated: its input is remembered, and no vendor is asked. */

import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import { inputItems } from '../../codecs/openai-responses/stored-items.ts';
import type { Config } from '../../config/config.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import { Notes } from '../../conversation/notes.ts';
import {
  chainItems,
  ownerOf,
  previousNotFound,
  type ResponseStore,
} from '../../features/response-store/index.ts';
import { clientRequest, type RepairBody } from '../../gateway/client-request.ts';
import type { RememberedChain } from '../../gateway/stream/client-lane.ts';
import type { Exchange, Gateway } from '../../gateway/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';

export interface WarmUpOptions {
  readonly store: ResponseStore;
  readonly repairBody: RepairBody;
  readonly config: () => Config;
}

/** An answer without content: the response completes with the tokens of nothing. */
const NOTHING: readonly StreamEvent[] = [
  { type: 'usage', usage: { input: 0, output: 0 } },
  { type: 'finish', reason: 'stop' },
  { type: 'end' },
];

/**
 * `generate: false` on a WebSocket: a response with an id to continue from, and no output. The lane remembers what
 * the request says.
 * @throws GatewayError what the client gets instead, also for a response to continue that is not known here
 */
export function warmUp({ store, repairBody, config }: WarmUpOptions): Gateway {
  async function before(
    { lane, owner }: Exchange,
    id: string | undefined,
  ): Promise<RememberedChain | readonly JsonObject[]> {
    if (id === undefined) return [];
    const recalled = lane?.recall(id);
    if (recalled !== undefined) return recalled;
    const whose = ownerOf(owner);
    const reads = await store.fetch({ responses: [id], chains: true }, whose);
    if (reads.known(id, whose) === undefined) throw previousNotFound(id);
    return chainItems(await reads.chain(id, whose));
  }
  return async (exchange) => {
    const { blocks: mostBlocks } = config().limits;
    const request = await clientRequest(openaiResponses, exchange.body, {
      mend: repairBody,
      mostBlocks,
    });
    const { conversation } = request;
    const earlier = await before(exchange, conversation.settings.previousResponseId);
    const encoder = openaiResponses.encodeStream({
      request: conversation,
      requestId: exchange.id,
      provider: '',
      notes: new Notes(),
    });
    let text = '';
    for (const event of NOTHING) text += encoder.event(event);
    const { id } = encoder.response();
    const items = inputItems(conversation.origin?.value ?? {});
    exchange.lane?.remember(String(id), earlier, items);
    return new Response(text, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
  };
}
