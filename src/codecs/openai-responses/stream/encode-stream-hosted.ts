/** Writes the items of hosted tools, and other content without an item of its own, to a Responses stream. */

import type { StreamEvent } from '../../../conversation/events.ts';
import type { Block, MediaBlock, ToolResultBlock } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { objects, ownWire, text } from '../wire.ts';
import { MessageWriter } from './encode-stream-message.ts';
import type { ItemStream, ItemWriter } from './item-writer.ts';

const SEARCH = 'web_search';

/**
 * A hosted call. An item of this protocol goes out unchanged. Another protocol's web search becomes a
 * `web_search_call` if the client declared the tool, and stays open until its result comes. Other hosted
 * calls are left out with a note: the client cannot have asked for them.
 */
export class HostedWriter implements ItemWriter {
  #input = '';
  #callId: string | undefined;
  #item: { readonly index: number; readonly id: string } | undefined;
  #result: ToolResultBlock | undefined;

  constructor(private readonly out: ItemStream) {}

  /** Is this block the result of the open search? */
  accepts(block: Block): boolean {
    return (
      this.#item !== undefined && block.type === 'tool-result' && block.callId === this.#callId
    );
  }

  event(event: StreamEvent): void {
    if (event.type === 'delta') this.#input += event.text;
    else if (event.type === 'block-stop') this.#search();
    else if (event.type === 'block-start') {
      const { head } = event;
      if (head.type === 'tool-call') this.#open(head.name, head.id);
      else if (head.type === 'whole') this.#whole(head.block);
    }
  }

  #whole(block: Block): void {
    if (block.type === 'tool-result' && this.accepts(block)) {
      this.#result = block;
      return;
    }
    const wire = 'wire' in block && block.wire !== undefined ? ownWire(block) : undefined;
    if (isObject(wire) && typeof wire.type === 'string') this.#unchanged(wire);
    else if (block.type === 'tool-call' && block.by !== 'client') {
      this.#input = block.input;
      this.#open(block.name, block.id);
    } else if (block.type === 'media') this.#image(block);
    else if (block.type !== 'tool-result') this.#asText(block);
  }

  /** An image made by a model of another protocol, as an `image_generation_call`. */
  #image(block: MediaBlock): void {
    const { source } = block;
    if (block.media === 'image' && source.type === 'base64') {
      const { index, id } = this.out.nextItem('ig');
      const item = { id, type: 'image_generation_call' };
      this.out.send(
        'response.output_item.added',
        `"output_index":${index},"item":${JSON.stringify({ ...item, status: 'in_progress', result: null })}`,
      );
      this.out.done(index, { ...item, status: 'completed', result: source.data });
      return;
    }
    const named = source.type === 'url' ? `![${block.media}](${source.url})` : '';
    this.#writeText(named, block.media);
  }

  #asText(block: Block): void {
    const value = block.type === 'opaque' || block.type === 'text' ? (block.text ?? '') : '';
    this.#writeText(value, block.type === 'opaque' ? block.name : block.type);
  }

  /** Writes text in place of content without an item; empty text is left out. Both add a note. */
  #writeText(text: string, what: string): void {
    const { notes } = this.out.context;
    notes.add(text === '' ? 'content_dropped' : 'content_bridged', 'output', what);
    if (text === '') return;
    const message = new MessageWriter(this.out);
    message.event({ type: 'block-start', index: 0, head: { type: 'text' } });
    message.event({ type: 'delta', index: 0, text });
    message.event({ type: 'block-stop', index: 0 });
    message.close(false);
  }

  #open(name: string, id: string): void {
    const declared = this.out.context.request.tools.some(
      (tool) => tool.type === 'hosted' && tool.name === SEARCH,
    );
    if (name === SEARCH && declared) this.#callId = id;
    else this.out.context.notes.add('hosted_call_dropped', 'output', name);
  }

  /** Opens the item: its query is known and the search is running. */
  #search(): void {
    if (this.#callId === undefined || this.#item !== undefined) return;
    const { index, id } = this.out.nextItem('ws');
    // An id of this protocol's form is kept, because a later request may refer to it.
    const item = { index, id: /^ws_\w+$/.test(this.#callId) ? this.#callId : id };
    this.#item = item;
    this.out.send(
      'response.output_item.added',
      `"output_index":${item.index},"item":{"id":"${item.id}","type":"web_search_call","status":"in_progress"}`,
    );
    this.#progress('in_progress');
    this.#progress('searching');
  }

  #progress(state: string): void {
    if (this.#item === undefined) return;
    const { index, id } = this.#item;
    this.out.send(`response.web_search_call.${state}`, `"output_index":${index},"item_id":"${id}"`);
  }

  close(): void {
    this.#search();
    if (this.#item === undefined) return;
    const failed = this.#result?.isError === true;
    if (!failed) this.#progress('completed');
    const { index, id } = this.#item;
    const status = failed ? 'failed' : 'completed';
    this.out.done(index, { id, type: 'web_search_call', status, action: this.#action() });
  }

  #action(): JsonObject {
    const input = tryParse(this.#input);
    const given = isObject(input) ? input : {};
    // The input may already be an action of this protocol.
    if (typeof given.type === 'string') return given;
    const query = text(given.query) ?? '';
    const action = { type: 'search', query, queries: [query] };
    const { include } = this.out.context.request.settings;
    if (include?.includes('web_search_call.action.sources') !== true) return action;
    return { ...action, sources: sourcesOf(this.#result) };
  }

  /** An item of a Responses upstream, with the events that its type requires. */
  #unchanged(item: JsonObject): void {
    const { index, id: minted } = this.out.nextItem('item');
    const id = text(item.id) ?? minted;
    const { action: _, ...begun } = item;
    const added = item.status === undefined ? item : { ...begun, status: 'in_progress' };
    this.out.send(
      'response.output_item.added',
      `"output_index":${index},"item":${JSON.stringify({ ...added, id })}`,
    );
    if (item.type === 'web_search_call') {
      for (const state of ['in_progress', 'searching', 'completed']) {
        this.out.send(
          `response.web_search_call.${state}`,
          `"output_index":${index},"item_id":${JSON.stringify(id)}`,
        );
      }
    }
    this.out.done(index, { ...item, id });
  }
}

/** The pages of a search result, in the form of whichever protocol it came in. */
function sourcesOf(result: ToolResultBlock | undefined): readonly JsonObject[] {
  const value = result?.wire?.value;
  const parts = result?.content.map((block) => block.wire?.value) ?? [];
  const listed = isObject(value) ? objects(value.content) : objects(parts as readonly Json[]);
  return listed.flatMap((page) => {
    const url = text(page.url);
    return url === undefined ? [] : [{ type: 'url', url }];
  });
}
