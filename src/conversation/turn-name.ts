/** The name of a speaker, for which Chat alone has a place. */

import { isObject } from '../lib/json/json.ts';
import type { Notes } from './notes.ts';
import type { Turn } from './types.ts';

/** Notes the `name` of a Chat message (not that of a function's result) as lost at `where`. */
export function noteLostName({ wire, residue }: Turn, notes: Notes, where: string): void {
  const from = wire ?? residue;
  if (from?.protocol !== 'openai-chat' || !isObject(from.value)) return;
  const { name, role } = from.value;
  if (typeof name !== 'string' || name === '' || role === 'tool' || role === 'function') return;
  notes.add('parameter_dropped', where, 'name of the speaker');
}
