/** OpenAI's words for a parameter that is missing or of the wrong type. */

import type { Json } from '../lib/json/json.ts';
import { GatewayError } from './errors.ts';

export const missing = (param: string, code?: 'missing_required_parameter'): GatewayError =>
  new GatewayError('invalid_request', `Missing required parameter: '${param}'.`, { param, code });

export function wrongType(
  param: string,
  expected: string,
  given: Json | undefined,
  code?: 'invalid_type',
): GatewayError {
  const words = `Invalid type for '${param}': expected ${expected}, but got ${kindOf(given)} instead.`;
  return new GatewayError('invalid_request', words, { param, code });
}

function kindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return `a ${typeof value}`;
}
