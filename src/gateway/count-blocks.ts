/** Counts the parts of a request's history before it is decoded. */

import { isObject, type Json } from '../lib/json/json.ts';

/** Members of a body that hold lists, in all protocols. */
const LISTS = ['messages', 'input', 'system', 'tools'];
/** Members of a message or an item that hold lists. */
const INNER = ['content', 'tool_calls', 'output', 'summary'];

/** Messages, input items, content blocks, tool calls and tools of a request body. Lists below a block are not looked at. */
export function countBlocks(body: Json): number {
  if (!isObject(body)) return 0;
  let count = 0;
  for (const name of LISTS) {
    const list = body[name];
    if (!Array.isArray(list)) continue;
    count += list.length;
    for (const item of list as readonly Json[]) {
      if (!isObject(item)) continue;
      for (const inner of INNER) {
        const parts = item[inner];
        if (Array.isArray(parts)) count += parts.length;
      }
    }
  }
  return count;
}
