/** A JSON schema for vendors that have a JSON mode only: the schema is said in the prompt. */

import { withParts } from '../../conversation/edit.ts';
import type { OutputFormat } from '../../conversation/types.ts';
import type { Rule } from './rule.ts';

/** The model must learn the shape from somewhere, or a client that parses the answer breaks. */
export const fitFormat: Rule = (conversation, { profile, protocol, notes }) => {
  const { format } = conversation.settings;
  if (profile.jsonSchema !== false || format?.type !== 'schema') return conversation;
  notes.add('content_bridged', 'response_format', 'the schema is said in the prompt');
  const mode: OutputFormat | undefined =
    // Messages has no JSON mode: the words are all there is.
    protocol === 'anthropic-messages' ? undefined : { type: 'json' };
  return withParts(conversation, {
    system: [...conversation.system, { type: 'text', text: wordsOf(format) }],
    settings: { ...conversation.settings, format: mode },
  });
};

function wordsOf(format: OutputFormat & { type: 'schema' }): string {
  const about = format.description === undefined ? '' : ` It is: ${format.description}`;
  return `Answer with one JSON object and nothing else.${about} It must be valid against this JSON Schema:\n${JSON.stringify(format.schema)}`;
}
