/** What a declaration of Messages says of a tool and another protocol has no place for. */

import { isObject } from '../../lib/json/json.ts';
import type { Notes } from '../notes.ts';
import type { FunctionTool } from '../types.ts';

// Said in the model, in the description (a screen's size), or noted where cache marks are.
const SAID: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
  'defer_loading',
  'display_width_px',
  'display_height_px',
]);

/**
 * Notes what of a foreign declaration is lost: `defer_loading` of any protocol (the tool is simply
 * loaded), and fields of Messages such as `input_examples`. Call it for tools of another protocol only.
 */
export function noteToolFields(tool: FunctionTool, notes: Notes, where: string): void {
  if (tool.deferred === true) {
    notes.add('parameter_dropped', `${where}/defer_loading`, 'the tool is simply loaded');
  }
  const from = tool.wire ?? tool.residue;
  if (from?.protocol !== 'anthropic-messages' || !isObject(from.value)) return;
  for (const key in from.value) {
    const value = from.value[key];
    if (SAID.has(key) || value === null || value === undefined) continue;
    notes.add('parameter_dropped', `${where}/${key}`);
  }
}
