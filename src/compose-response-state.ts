/** Joins the Responses protocol and the response store: continuation, keeping, and the stored routes. */

import type { Conversation } from './conversation/types.ts';
import type { Feature } from './features/feature.ts';
import {
  expand,
  listInputItems,
  ownerOf,
  type ResponseStore,
  record,
  remove,
  resolveReferences,
  retrieve,
} from './features/response-store/index.ts';
import type { Ask } from './gateway/ask.ts';
import type { Exchange } from './gateway/exchange.ts';
import type { Extras } from './gateway/gateway.ts';
import type { Said } from './gateway/lane.ts';
import { isObject, type Json, type JsonObject, tryParse } from './lib/json.ts';
import { openaiResponses } from './protocols/openai-responses/index.ts';
import { inputItems, outputItems, prependItems } from './protocols/openai-responses/state.ts';

const PREVIOUS = Buffer.from('"previous_response_id"');
const REFERENCE = Buffer.from('"item_reference"');

const bodyOf = (ask: Ask): JsonObject => ask.conversation.origin?.value ?? {};

/** Is the target the one that keeps the responses? Then everything about them is its own business. */
const keptThere: (context: Parameters<NonNullable<Feature['request']>>[1]) => boolean = ({
  target,
  client,
}) => target.protocol === client && target.profile.storesResponses === true;

export function responseState(store: ResponseStore) {
  function extras(exchange: Exchange, ask: Ask, space: string | undefined): Extras | undefined {
    if (ask.protocol !== openaiResponses) return undefined;
    const owner = ownerOf(exchange.owner);
    let kept = true;
    const continuation: Feature = {
      name: 'response-state',
      looksAt(body, context) {
        kept = !keptThere(context);
        return kept && (body.includes(PREVIOUS) || body.includes(REFERENCE));
      },
      request(conversation: Conversation, { target, notes }): Conversation {
        if (conversation !== ask.conversation) return conversation;
        const body = resolveReferences(bodyOf(ask), store, owner);
        const own = body === bodyOf(ask) ? conversation : openaiResponses.decodeRequest(body);
        const items = expand(body, store, owner);
        if (items === undefined) return own;
        notes.add('previous_response_expanded', 'previous_response_id', `${items.length} items`);
        const whole = prependItems(own, items.filter(isObject));
        if (target.protocol === openaiResponses.name) return whole;
        // Said in full now: another protocol's encoder must not report the id as lost.
        const { previousResponseId: _, ...settings } = whole.settings;
        return { ...whole, settings };
      },
    };
    return {
      features: [continuation],
      // Codex and other agents keep their own history; what is not to be stored costs nothing here.
      onAnswer: storeOff(ask) ? undefined : keep,
    };
    function keep(answer: Parameters<NonNullable<Extras['onAnswer']>>[0]): void {
      const response = kept ? responseOf(answer) : undefined;
      if (response === undefined) return;
      const body = bodyOf(ask);
      record(store, { body, response, owner, space, inputItems, outputItems });
    }
  }

  const owned = (owner: string) => ownerOf(owner);
  return {
    extras,
    retrieve: (id: string, owner: string) => retrieve(store, id, owned(owner)),
    remove: (id: string, owner: string) => remove(store, id, owned(owner)),
    inputItems: (id: string, owner: string, url: URL) =>
      listInputItems(store, id, owned(owner), Object.fromEntries(url.searchParams)),
  };
}

/** `store: false`: the text is searched first, so that a body that must be kept is not decoded for it. */
function storeOff(ask: Ask): boolean {
  const body = Buffer.from(ask.bytes.buffer, ask.bytes.byteOffset, ask.bytes.length);
  return body.includes('"store"') && ask.conversation.settings.store === false;
}

/** The response object as the client got it; undefined when there is none to be had. */
function responseOf(
  answer: Said | { readonly kind: 'json'; readonly text: string },
): JsonObject | undefined {
  if (answer.kind === 'json') return withoutToolEvents(asObject(tryParse(answer.text)));
  if (answer.kind === 'reply') {
    return withoutToolEvents(openaiResponses.encodeReply(answer.reply, answer.client));
  }
  for (const { data } of [...answer.frames].reverse()) {
    const event = data === undefined ? undefined : tryParse(data);
    if (!isObject(event) || !isObject(event.response)) continue;
    if (event.type === 'response.completed' || event.type === 'response.incomplete') {
      return event.response;
    }
  }
  return undefined;
}

/** What tools gave (what was recalled, too) is told once, and not kept. */
function withoutToolEvents(response: JsonObject | undefined): JsonObject | undefined {
  if (response?.hopgate === undefined) return response;
  const { hopgate: _, ...rest } = response;
  return rest;
}

const asObject = (value: Json | undefined) => (isObject(value) ? value : undefined);
