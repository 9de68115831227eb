/** Adds notes for fields of one protocol that the target's protocol has no field for. */

import { isObject } from '../lib/json/json.ts';
import { wordSet } from '../lib/text/words.ts';
import type { Notes } from './notes.ts';
import type { FunctionTool, Settings, Turn } from './types.ts';

// Fields that the conversation model carries, that go into the description (screen size), or that get a note elsewhere.
const KEPT_FIELDS = wordSet(`
  type name description input_schema strict cache_control defer_loading display_width_px display_height_px`);

/**
 * Notes the fields of a tool that are lost: `defer_loading` of any protocol (the tool is loaded at once), and
 * Messages fields such as `input_examples`. Call it only for tools of another protocol than the target's.
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

/** Notes that a Chat message's `name` of the speaker is lost. A function result's name is another field. */
export function noteLostName({ wire, residue }: Turn, notes: Notes, where: string): void {
  const from = wire ?? residue;
  if (from?.protocol !== 'openai-chat' || !isObject(from.value)) return;
  const { name, role } = from.value;
  if (typeof name !== 'string' || name === '' || role === 'tool' || role === 'function') return;
  notes.add('parameter_dropped', where, 'name of the speaker');
}

/** Settings whose name in notes is not their own with underscores. */
const NOTED_AS: Readonly<Partial<Record<keyof Settings, string>>> = {
  parallelTools: 'parallel_tool_calls',
  cacheKey: 'prompt_cache_key',
};

/** Values that say what holds without the setting. */
const USUAL: Readonly<Partial<Record<keyof Settings, unknown>>> = {
  n: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  parallelTools: true,
  store: false,
};

/** Notes the settings that the target's protocol has no field for. @param takes does it have one for this setting? */
export function noteLostSettings(
  settings: Settings,
  notes: Notes,
  takes: (name: keyof Settings) => boolean,
): void {
  for (const name of Object.keys(settings) as (keyof Settings)[]) {
    // `rest` holds fields of one protocol alone, which are noted by their own names.
    const value = settings[name];
    const isIdle =
      value === undefined || value === USUAL[name] || (Array.isArray(value) && value.length === 0);
    if (name === 'rest' || isIdle || takes(name)) continue;
    const own = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    notes.add('parameter_dropped', NOTED_AS[name] ?? own);
  }
}
