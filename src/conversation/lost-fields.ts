/** Notes about fields of one protocol that no other protocol has a place for. */

import { isObject } from '../lib/json/json.ts';
import type { Notes } from './notes.ts';
import type { FunctionTool, Turn } from './types.ts';

// Said in the model, in the description (a screen's size), or noted where cache marks are.
const KEPT_FIELDS: ReadonlySet<string> = new Set([
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
export function noteLostToolFields(tool: FunctionTool, notes: Notes, where: string): void {
  if (tool.deferred === true) {
    notes.add('parameter_dropped', `${where}/defer_loading`, 'the tool is simply loaded');
  }
  const from = tool.wire ?? tool.residue;
  if (from?.protocol !== 'anthropic-messages' || !isObject(from.value)) return;
  for (const key in from.value) {
    const value = from.value[key];
    if (KEPT_FIELDS.has(key) || value === null || value === undefined) continue;
    notes.add('parameter_dropped', `${where}/${key}`);
  }
}

/** Notes the `name` of a Chat message (not that of a function's result) as lost at `where`. */
export function noteLostName({ wire, residue }: Turn, notes: Notes, where: string): void {
  const from = wire ?? residue;
  if (from?.protocol !== 'openai-chat' || !isObject(from.value)) return;
  const { name, role } = from.value;
  if (typeof name !== 'string' || name === '' || role === 'tool' || role === 'function') return;
  notes.add('parameter_dropped', where, 'name of the speaker');
}
