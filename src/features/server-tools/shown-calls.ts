/** The call and result blocks that a client sees where it declared the hosted tool. */

import type { StreamEvent } from '../../conversation/events.ts';
import type {
  Block,
  OpaqueBlock,
  ProtocolName,
  ToolResultBlock,
} from '../../conversation/types.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import { mintSource, type NumberedSource } from './citations/sources.ts';
import type { ServerCall } from './run-calls.ts';
import type { ToolOutcome } from './tool.ts';

const PREFIX: Readonly<Record<ProtocolName, string>> = {
  'anthropic-messages': 'srvtoolu_hg',
  'openai-responses': 'ws_hg',
  'openai-chat': 'call_hg',
  'google-gemini': 'gs_hg',
};

/** Is this the id of a call that this gateway ran and showed? */
export const isShownId = (id: string): boolean =>
  /^(?:srvtoolu|ws|call|gs)_hg[0-9a-f]{24}$/.test(id);

export const newShownId = (client: ProtocolName): string => prefixedId(PREFIX[client]);

/** The events of the complete call: head, arguments, end. */
export function shownCallEvents(
  call: ServerCall,
  id: string,
  index: number,
): readonly StreamEvent[] {
  const { offered, input } = call;
  const name = offered.declared?.name ?? offered.tool.name;
  return [
    {
      type: 'block-start',
      index,
      head: { type: 'tool-call', id, name, kind: 'function', by: 'gateway' },
    },
    // The client gets a call that it can parse, even where the model's arguments are invalid.
    { type: 'delta', index, text: isObject(tryParse(input)) ? input : '{}' },
    { type: 'block-stop', index },
  ];
}

/** The events of the result, a block that comes whole. */
export function shownResultEvents(
  hosted: string,
  id: string,
  outcome: ToolOutcome,
  sources: readonly NumberedSource[],
  index: number,
): readonly StreamEvent[] {
  const block: ToolResultBlock = {
    type: 'tool-result',
    callId: id,
    kind: 'function',
    content: shownContent(hosted, outcome, sources),
    isError: !outcome.ok,
    by: 'gateway',
  };
  return [
    { type: 'block-start', index, head: { type: 'whole', block } },
    { type: 'block-stop', index },
  ];
}

function shownContent(
  hosted: string,
  outcome: ToolOutcome,
  sources: readonly NumberedSource[],
): readonly Block[] {
  if (!outcome.ok) {
    const code = outcome.code ?? 'unavailable';
    return [onMessages(`${hosted}_tool_result_error`, { error_code: code }, `Error: ${code}`)];
  }
  if (outcome.shown !== undefined) return outcome.shown;
  if (hosted === 'web_search') {
    return sources.map((source) => {
      const { url, title, published } = source;
      const page = {
        url,
        title,
        encrypted_content: mintSource(source),
        page_age: published ?? null,
      };
      return onMessages('web_search_result', page, `${title}\n${url}`);
    });
  }
  const { text } = outcome;
  return [{ type: 'text', text: typeof text === 'string' ? text : text(sources[0]?.n ?? 1) }];
}

/** A block in the form of the Messages protocol, which says most of the three. */
function onMessages(type: string, fields: JsonObject, text: string): OpaqueBlock {
  const wire = { protocol: 'anthropic-messages', value: { type, ...fields } } as const;
  return { type: 'opaque', name: type, text, wire };
}
