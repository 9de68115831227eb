/**
 * Tools of Responses that the client runs, and whose calls are items of a type of their own. Other vendors get each one as a
 * function with the same arguments, and its calls go back to the client as the items that it knows.
 */

import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { GatewayError } from '../errors.ts';
import type { ClientToolKind } from '../types.ts';

interface ClientTool {
  /** Types of the declaration, of a call and of its output. */
  readonly type: string;
  readonly call: string;
  readonly output: string;
  /** How ids of calls begin. */
  readonly prefix: string;
  readonly description: string;
  readonly schema: JsonObject;
  /** The arguments of a call in the history. */
  argumentsOf(item: JsonObject): JsonObject;
  /** The members of a call's item beside its ids and status; undefined: the arguments do not say enough. */
  itemOf(given: JsonObject): JsonObject | undefined;
  /** The item of a call that was cut off: it does nothing. */
  readonly nothing: JsonObject;
  resultOf(item: JsonObject): string;
}

const STRINGS = { type: 'array', items: { type: 'string' } } as const;

const schemaOf = (properties: JsonObject, ...required: string[]): JsonObject => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/** A list of strings, or one string as a list. */
function stringsIn(value: Json | undefined): readonly string[] | undefined {
  if (typeof value === 'string') return value === '' ? undefined : [value];
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.every((one) => typeof one === 'string') ? (value as readonly string[]) : undefined;
}

const numberIn = (value: Json | undefined): number | null =>
  typeof value === 'number' ? value : null;

/** The members that are there. */
const some = (from: JsonObject, ...names: string[]): JsonObject =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = from[name];
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );

const objectAt = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

const OPERATIONS: readonly (Json | undefined)[] = ['create_file', 'update_file', 'delete_file'];

/** https://platform.openai.com/docs/guides/tools-shell, …/tools-local-shell, …/tools-apply-patch */
export const CLIENT_TOOLS: Readonly<Record<ClientToolKind, ClientTool>> = {
  shell: {
    type: 'shell',
    call: 'shell_call',
    output: 'shell_call_output',
    prefix: 'sh',
    description: 'Runs shell commands, and returns what each of them printed and how it ended.',
    schema: schemaOf(
      {
        commands: { ...STRINGS, description: 'The commands, each a line for the shell.' },
        timeout_ms: { type: 'integer' },
        max_output_length: { type: 'integer' },
      },
      'commands',
    ),
    argumentsOf: ({ action }) =>
      some(objectAt(action), 'commands', 'timeout_ms', 'max_output_length'),
    itemOf({ commands: given, command, timeout_ms, max_output_length }) {
      const commands = stringsIn(given ?? command);
      return commands && shellItem(commands, timeout_ms, max_output_length);
    },
    nothing: shellItem([]),
    resultOf: ({ output }) =>
      typeof output === 'string'
        ? output
        : (Array.isArray(output) ? output : []).map((one) => outcomeText(objectAt(one))).join('\n'),
  },
  'local-shell': {
    type: 'local_shell',
    call: 'local_shell_call',
    output: 'local_shell_call_output',
    prefix: 'lsh',
    description: 'Runs a program, and returns what it printed.',
    schema: schemaOf(
      {
        command: {
          ...STRINGS,
          description: 'The program and its arguments, as ["bash", "-lc", "ls | wc -l"].',
        },
        working_directory: { type: 'string' },
        timeout_ms: { type: 'integer' },
        env: { type: 'object', additionalProperties: { type: 'string' } },
      },
      'command',
    ),
    argumentsOf: ({ action }) =>
      some(objectAt(action), 'command', 'working_directory', 'timeout_ms', 'env', 'user'),
    itemOf({ command: given, env, ...more }) {
      // One string is a line for a shell, not the name of a program.
      const command = typeof given === 'string' ? ['sh', '-c', given] : stringsIn(given);
      const rest = some(more, 'working_directory', 'timeout_ms', 'user');
      return command && { action: { type: 'exec', command, env: objectAt(env), ...rest } };
    },
    nothing: { action: { type: 'exec', command: [], env: {} } },
    resultOf: ({ output }) => (typeof output === 'string' ? output : JSON.stringify(output ?? '')),
  },
  'apply-patch': {
    type: 'apply_patch',
    call: 'apply_patch_call',
    output: 'apply_patch_call_output',
    prefix: 'apc',
    // https://openai.github.io/openai-agents-js/openai/agents-core/functions/applydiff
    description:
      'Creates, changes or deletes one file. `diff` is a V4A diff without a header: to create a file, each line begins with "+"; to update one, sections that begin with "@@" (with a line of context behind it, if the place is not clear without it) and have lines that begin with " " (unchanged), "-" (removed) and "+" (added).',
    schema: schemaOf(
      {
        type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
        path: { type: 'string' },
        diff: { type: 'string', description: 'Left out to delete a file.' },
      },
      'type',
      'path',
    ),
    argumentsOf: ({ operation }) => some(objectAt(operation), 'type', 'path', 'diff'),
    itemOf(given) {
      const { type, path, diff } = isObject(given.operation) ? given.operation : given;
      if (!OPERATIONS.includes(type) || typeof path !== 'string' || path === '') return undefined;
      if (type === 'delete_file') return { operation: { type, path } };
      return typeof diff === 'string' ? { operation: { type: type!, path, diff } } : undefined;
    },
    nothing: { operation: { type: 'update_file', path: '', diff: '' } },
    resultOf: ({ output, status }) =>
      typeof output === 'string' && output !== '' ? output : String(status ?? ''),
  },
};

function shellItem(commands: readonly string[], timeout?: Json, length?: Json): JsonObject {
  const timeout_ms = numberIn(timeout);
  const max_output_length = numberIn(length);
  return {
    action: { commands, timeout_ms, max_output_length },
    environment: { type: 'local' },
  };
}

function outcomeText({ stdout, stderr, outcome }: JsonObject): string {
  const { type, exit_code: code } = objectAt(outcome);
  const said = [stdout, stderr].filter((one) => typeof one === 'string' && one !== '');
  if (type === 'timeout') said.push('(timed out)');
  else if (code !== undefined && code !== 0) said.push(`(exit code ${code})`);
  return said.length === 0 ? '(no output)' : said.join('\n');
}

export const isClientTool = (kind: string): kind is ClientToolKind => kind in CLIENT_TOOLS;

/** The item of a call, as far as it says what is to be done. @throws GatewayError upstream if the arguments do not fit the tool */
export function clientCallItem(kind: ClientToolKind, input: string, cut = false): JsonObject {
  const tool = CLIENT_TOOLS[kind];
  const given = tryParse(input);
  const item = isObject(given) && !cut ? tool.itemOf(given) : undefined;
  if (item !== undefined) return item;
  if (cut) return tool.nothing;
  throw new GatewayError(
    'upstream',
    `The model called the tool ${tool.type} with arguments that do not fit it.`,
    { code: 'broken_tool_arguments', retryable: true },
  );
}
