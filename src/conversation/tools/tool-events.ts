/** Tool events as apps read them, in the member `hopgate` of a frame or a reply of any protocol. */

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

/** The members that report all tool events in a whole reply; none if there were no events. */
export function toolEventMembers({ toolEvents }: Reply): JsonObject {
  return toolEvents === undefined || toolEvents.length === 0
    ? {}
    : { hopgate: { tool_events: toolEvents.map(toolEventWire) } };
}
