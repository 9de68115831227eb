/** Tool choices that a vendor takes, in general and while its model reasons. */

import { withParts } from '../../conversation/edit.ts';
import type { ToolChoice } from '../../conversation/types.ts';
import { canBeOff, reasons } from './reasoning.ts';
import type { Rule } from './rule.ts';

/**
 * A choice that the vendor refuses goes to the nearest one it takes. Where only reasoning stands in
 * the way of a forced tool, reasoning gives way: the client can do without it, not without the call.
 * Without the choice "none" the tools themselves are left out.
 */
export const fitChoice: Rule = (conversation, fit) => {
  const { settings } = conversation;
  const { profile, notes } = fit;
  const choice = settings.toolChoice;
  if (choice === undefined || conversation.tools.length === 0) return conversation;
  const kind = choice.type === 'allowed' ? choice.mode : choice.type;
  const always = profile.toolChoices;
  const thinking = profile.thinkingToolChoices;
  const taken = !always || always.includes(kind);
  const refused =
    thinking !== undefined && !thinking.includes(kind) && reasons(conversation, profile);
  if (taken && !refused) return conversation;
  if (taken && canBeOff(fit) && kind !== 'none') {
    notes.add('parameter_mapped', 'reasoning', 'off: it excludes a forced tool');
    return withParts(conversation, { settings: { ...settings, reasoning: { enabled: false } } });
  }
  if (kind === 'none') {
    notes.add('parameter_mapped', 'tool_choice', 'none: the tools are left out');
    return withParts(conversation, {
      tools: [],
      settings: { ...settings, toolChoice: undefined, parallelTools: undefined },
    });
  }
  const left = (refused ? thinking : always) ?? [];
  const other: ToolChoice = {
    type: kind === 'tool' && left.includes('required') ? 'required' : 'auto',
  };
  if (kind === 'auto') return conversation;
  notes.add('parameter_mapped', 'tool_choice', `${kind} as ${other.type}`);
  return withParts(conversation, { settings: { ...settings, toolChoice: other } });
};
