/** Writes a call that the client runs to a Responses stream. */

import type { BlockHead, StreamEvent } from '../../../conversation/events.ts';
import {
  CLIENT_TOOLS,
  clientCallItem,
  isClientTool,
} from '../../../conversation/tools/client-tools.ts';
import type { ToolKind } from '../../../conversation/types.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { compact } from '../wire.ts';
import type { ItemStream, ItemWriter } from './item-writer.ts';

type CallHead = BlockHead & { readonly type: 'tool-call' };

const CALLS = {
  function: {
    type: 'function_call',
    prefix: 'fc',
    field: 'arguments',
    event: 'function_call_arguments',
  },
  custom: {
    type: 'custom_tool_call',
    prefix: 'ctc',
    field: 'input',
    event: 'custom_tool_call_input',
  },
  'tool-search': { type: 'tool_search_call', prefix: 'tsc', field: 'arguments', event: '' },
} as const;

/** How the items of a kind are written. */
const formOf = (kind: ToolKind) =>
  isClientTool(kind)
    ? { type: CLIENT_TOOLS[kind].call, prefix: CLIENT_TOOLS[kind].prefix, field: '', event: '' }
    : CALLS[kind];

/** A call that the client runs, with the kind and namespace of the client's declaration. */
export class CallWriter implements ItemWriter {
  readonly #index: number;
  readonly #id: string;
  readonly #at: string;
  #input = '';

  constructor(
    private readonly out: ItemStream,
    private readonly head: CallHead,
  ) {
    const { index, id } = out.nextItem(formOf(head.kind).prefix);
    this.#index = index;
    this.#id = id;
    this.#at = `"item_id":"${id}","output_index":${index}`;
    // Before its end, nothing is known of what the client is to run.
    if (!isClientTool(head.kind)) this.#added();
  }

  #added(cut = false): void {
    this.out.send(
      'response.output_item.added',
      `"output_index":${this.#index},"item":${JSON.stringify(this.#item('in_progress', cut))}`,
    );
  }

  #item(status: 'in_progress' | 'completed' | 'incomplete', cut = false): JsonObject {
    const { kind, id, name, namespace } = this.head;
    const common = { id: this.#id, type: formOf(kind).type, status };
    // A client could not answer a call without an id.
    const call_id = id === '' ? `call_${this.#id}` : id;
    if (isClientTool(kind))
      return { ...common, call_id, ...clientCallItem(kind, this.#input, cut) };
    switch (kind) {
      case 'tool-search': {
        const parsed = tryParse(this.#input);
        return {
          ...common,
          execution: 'client',
          call_id,
          arguments: isObject(parsed) ? parsed : {},
        };
      }
      case 'custom':
        return compact({ ...common, call_id, name, namespace, input: this.#input });
      default:
        return compact({ ...common, arguments: this.#input, call_id, name, namespace });
    }
  }

  event(event: StreamEvent): void {
    if (event.type === 'delta' && event.text !== '') this.#delta(event.text);
  }

  #delta(text: string): void {
    this.#input += text;
    const { event } = formOf(this.head.kind);
    if (event === '') return;
    this.out.send(`response.${event}.delta`, `${this.#at},"delta":${JSON.stringify(text)}`);
  }

  close(cut: boolean): void {
    const { kind, name } = this.head;
    // Missing arguments mean none, but Codex reads '' as broken JSON. A call that was cut stays without
    // arguments, so that no client runs it.
    if (kind === 'function' && !cut && this.#input.trim() === '') this.#delta('{}');
    const { event, field } = formOf(kind);
    if (isClientTool(kind)) this.#added(cut);
    if (event !== '') {
      const named = kind === 'function' ? `"name":${JSON.stringify(name)},` : '';
      const input = JSON.stringify(this.#input);
      this.out.send(`response.${event}.done`, `${this.#at},${named}"${field}":${input}`);
    }
    this.out.done(this.#index, this.#item(cut ? 'incomplete' : 'completed', cut));
  }
}
