/** Declarations of tools in the target's own protocol with what the vendor refuses left out of them. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { plainRoot } from '../../conversation/tools/root-schema.ts';
import type { Rule } from './rule.ts';

/**
 * `strict` and the wish for one call at a time, where Messages and Responses bodies would go out as
 * they came; the Chat codec fits a body of its own whenever it writes it (see spelling.ts). A schema with
 * a union at its root is made plain in every protocol: codecs leave untouched declarations as they are.
 */
export const fitTools: Rule = (conversation, { profile, protocol, own, notes }) => {
  if (!own) return conversation;
  let { tools, settings } = conversation;
  if (profile.rootUnions === false) {
    tools = mapUnchanged(tools, (tool) => {
      if (tool.type !== 'function') return tool;
      const schema = plainRoot(tool.schema, profile, notes, `/tools/${tool.name}`);
      return schema === tool.schema ? tool : editNode(tool, { schema });
    });
  }
  if (protocol === 'openai-chat') {
    return tools === conversation.tools ? conversation : withParts(conversation, { tools });
  }
  if (profile.strictTools === false) {
    tools = mapUnchanged(tools, (tool) => {
      if (tool.type !== 'function' || tool.strict === undefined) return tool;
      notes.add('parameter_dropped', `/tools/${tool.name}`, 'strict');
      return editNode(tool, { strict: undefined });
    });
  }
  if (profile.parallelToolsParam === false && settings.parallelTools !== undefined) {
    notes.add('parameter_dropped', 'parallel_tool_calls');
    settings = { ...settings, parallelTools: undefined };
  }
  return tools === conversation.tools && settings === conversation.settings
    ? conversation
    : withParts(conversation, { tools, settings });
};
