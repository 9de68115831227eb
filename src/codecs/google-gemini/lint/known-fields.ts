/** The fields of a Gemini request, for the words of Google's JSON parser about all others. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { didYouMean, OWN_FIELD, type Report } from '../../lint.ts';
import { inBothSpellings } from '../wire.ts';

const both = (names: string) => inBothSpellings(names.split(' '));

/** https://ai.google.dev/api/generate-content, and Vertex AI's; `model` and `stream` are the address's, as the gateway writes it. */
export const BODY = both(
  `model stream contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent serviceTier store labels modelArmorConfig ${OWN_FIELD}`,
);
export const CONTENT = both('role parts');
export const PART = both(
  'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse thought thoughtSignature videoMetadata partMetadata mediaResolution',
);
/** The members of a part that are its content: one of them. */
export const PART_DATA = both(
  'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse',
);
export const CALL = both('id name args partialArgs willContinue');
export const RESPONSE = both('id name response parts willContinue scheduling');
export const CONFIG = both(
  'stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers speechConfig thinkingConfig imageConfig mediaResolution audioTimestamp routingConfig _responseJsonSchema translationConfig',
);
export const THINKING = both('includeThoughts thinkingBudget thinkingLevel');
export const FUNCTION = both(
  'name description parameters parametersJsonSchema response responseJsonSchema behavior',
);
export const SCHEMA = both(
  'type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum',
);

/** Reports the members that Google's parser does not know, in its words. */
export function lintFields(
  value: JsonObject,
  known: ReadonlySet<string>,
  at: string,
  place: string,
  report: Report,
): void {
  for (const key of Object.keys(value)) {
    if (known.has(key)) continue;
    const where = place === '' ? '' : ` at '${place}'`;
    report(
      `${at}/${key}`,
      'unknown-field',
      `Invalid JSON payload received. Unknown name "${key}"${where}: Cannot find field.${didYouMean(key, known)}`,
    );
  }
}

const MAX_DEPTH = 64;

/** Reports keywords that Google's own schema language does not have. */
export function lintSchema(
  schema: Json | undefined,
  at: string,
  place: string,
  report: Report,
  depth = 0,
): void {
  if (!isObject(schema) || depth > MAX_DEPTH) return;
  lintFields(schema, SCHEMA, at, place, report);
  const { properties, items, anyOf } = schema;
  if (isObject(properties)) {
    for (const [name, one] of Object.entries(properties)) {
      lintSchema(one, `${at}/properties/${name}`, `${place}.properties[].value`, report, depth + 1);
    }
  }
  lintSchema(items, `${at}/items`, `${place}.items`, report, depth + 1);
  if (Array.isArray(anyOf)) {
    (anyOf as readonly Json[]).forEach((one, i) => {
      lintSchema(one, `${at}/anyOf/${i}`, `${place}.any_of[${i}]`, report, depth + 1);
    });
  }
}
