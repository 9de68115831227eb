/** Shared by the three checks: their options, and a short notation for the fields of an object. */

import type { Json } from '../../../src/lib/json/json.ts';
import { isRecord } from './refusal.ts';

/** Strictness where vendors differ. */
export interface Strictness {
  /** Messages: the first message must be the user's (Bedrock, older deployments). */
  firstUser?: boolean;
  /** Messages: neighbours of one role are refused instead of merged (Bedrock). */
  alternate?: boolean;
  /** Messages: `role: "system"` inside messages is refused (models before the newest). */
  noSystemRole?: boolean;
  /** Messages: a conversation that ends with the assistant's turn is refused (newest models). */
  noPrefill?: boolean;
  /** Accepts seals of any origin, for recorded requests whose signatures cannot be checked here. */
  anySeal?: boolean;
  /** Messages: calls need no results, and thinking may follow other content: what tool pairing repairs. */
  anyOrder?: boolean;
  /** Chat: assistant messages may not carry `reasoning_content` (OpenAI itself). */
  noReasoningField?: boolean;
  /** Chat: unknown top-level and message fields are accepted (other vendors). */
  lenientFields?: boolean;
}

export type FieldType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'any';

/** `?` allows null. */
export type Fields = Readonly<Record<string, FieldType | `${FieldType}?`>>;

/** Whether a value has the named type. */
export function hasType(value: Json | undefined, type: string): boolean {
  if (type.endsWith('?')) return value === null || hasType(value, type.slice(0, -1));
  if (type === 'any') return true;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isRecord(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}
