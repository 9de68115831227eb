/** Tool events as apps get them, the same in every protocol: the member `hopgate` of a frame or a reply. */

import type { JsonObject } from '../../lib/json/json.ts';
import type { Reply, ToolEvent } from '../events.ts';

/** The object inside a frame: `{event, id, name, arguments | result, duration_ms}`. */
export function toolEventWire(event: ToolEvent): JsonObject {
  const { event: kind, id, name } = event;
  if (kind === 'tool_call') return { event: kind, id, name, arguments: event.arguments ?? {} };
  return {
    event: kind,
    id,
    name,
    result: event.result ?? null,
    ...(event.failed === true ? { failed: true } : {}),
    duration_ms: event.durationMs ?? 0,
  };
}

/** The members of a whole reply that tell them all; none where there is nothing to tell. */
export function toolEventMembers({ toolEvents }: Reply): JsonObject {
  return toolEvents === undefined || toolEvents.length === 0
    ? {}
    : { hopgate: { tool_events: toolEvents.map(toolEventWire) } };
}
