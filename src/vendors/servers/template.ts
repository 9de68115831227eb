/** Facts of servers that apply a model's own chat template. */

import type { Codes } from '../vendor.ts';

/**
 * What the template or a parser refuses is reported as a failure of the server (500, `server_error`).
 * @see https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
 */
const MESSAGES: Codes = {
  'error rendering prompt with jinja template': { kind: 'invalid_request', retryable: false },
  'jinja exception': { kind: 'invalid_request', retryable: false },
  'failed to parse tool call arguments as json': { kind: 'invalid_request', retryable: false },
  '[json.exception.': { kind: 'invalid_request', retryable: false },
  'system message must be at the beginning': { kind: 'invalid_request', retryable: false },
  'conversation roles must alternate': { kind: 'invalid_request', retryable: false },
  'only supports single tool-calls at once': { kind: 'invalid_request', retryable: false },
  'unknown method': { kind: 'invalid_request', retryable: false },
  'value is not callable': { kind: 'invalid_request', retryable: false },
  'while executing': { kind: 'invalid_request', retryable: false },
  'unable to generate parser for this template': { kind: 'invalid_request', retryable: false },
};

/**
 * Servers that apply a model's own chat template. Templates know the roles system, user, assistant and
 * tool; many want the system message first ("System message must be at the beginning") and alternating
 * roles ("roles must alternate"). No template refuses messages in that form.
 */
export const TEMPLATE = {
  developerRole: false,
  systemTurns: false,
  sameRoleTurns: false,
  // llama.cpp leaves others out and says so in its log alone; LM Studio and Ollama refuse them.
  toolTypes: ['function'],
  errorWords: MESSAGES,
} as const;
