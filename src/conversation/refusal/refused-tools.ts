/** Reads from a vendor's error that a model takes no tools, or which types of tools it knows: most servers of Responses know functions alone. */

import type { ErrorKind, GatewayError } from '../errors.ts';

/** Types of tools in Responses (openai-node, resources/responses: Tool; github.com/openai/codex codex-rs/core). */
const TYPES = [
  ...['function', 'custom', 'namespace', 'tool_search', 'web_search', 'file_search', 'mcp'],
  ...['image_generation', 'code_interpreter', 'computer', 'computer_use_preview'],
  ...['shell', 'local_shell', 'apply_patch'],
];

/** Those that agents declare, or items of the input that need them. */
const UNKNOWN =
  '(?:namespace|custom|tool_search|additional_tools|web_search(?:_preview\\w{0,20})?|file_search|mcp|image_generation|code_interpreter|computer_use_preview|shell|local_shell|apply_patch)';

/**
 * The group lists the types that the vendor knows; without one it knows functions. Sentences are in lower case, without
 * quotes; each is a row of test/features/refusal-retry/tool-types.test.ts, with its source.
 */
const SENTENCES: readonly RegExp[] = [
  new RegExp(`unknown variant ${UNKNOWN}, expected (?:one of )?(.{1,500}?)(?: at line|$)`),
  new RegExp(`invalid value: ${UNKNOWN}\\. supported values are: ([^.]{1,500})`),
  // A namespace of the client's has a name of the vendor's own.
  /user-defined namespace \S{1,100} collides with an existing tool namespace()/,
  /\btype of tool must be function\b|\btools\[\d{1,4}\] must be a function tool\b/,
  /only type:function tools are supported/,
  /\btools\.\d{1,4}\.type: invalid literal value, expected function\b/,
  new RegExp(
    `(?:unsupported|unknown|invalid) (?:\\w{1,20} ){0,3}tool type:? ?(?:${UNKNOWN}|\\{type:${UNKNOWN})`,
  ),
  new RegExp(`(?:unsupported|unknown)[a-z ]{0,30} (?:input|item) (?:item )?type: ?${UNKNOWN}`),
  /invalid input type:? (?:agent_message|additional_tools|tool_search_(?:call|output))|input\[\d{1,6}\] did not match any supported type/,
  /did not match any variant of untagged enum modelinput|invalid \w{1,40}_call item: missing field/,
  new RegExp(`support the native ${UNKNOWN} tool type`),
  // pydantic: {loc: (body, tools, 11, CustomTool, type), msg: Input should be custom, input: namespace}
  new RegExp(`\\btools, \\d{1,4}, \\w{1,40}, type\\b.{0,200}input: ${UNKNOWN}`),
];

/** The vendor knows other types than the one of the group. */
const NOT_SUPPORTED =
  '(?:is|are|was|were|has been|have been) (?:(?:not|no longer|not yet) (?:supported|available|enabled|allowed)|unsupported|deprecated|removed)\\b';
const ONE_TYPE: readonly RegExp[] = [
  new RegExp(`\\btools?(?: of)?(?: type)?:? (${UNKNOWN}) ${NOT_SUPPORTED}`),
  new RegExp(`\\b(${UNKNOWN}) tools? (?:type )?${NOT_SUPPORTED}`),
];

/** LM Studio says no more than "Invalid". */
const AT_TYPE = /^tools\.\d{1,4}\.type$/;

/**
 * The types of tools that the vendor knows; undefined: the error is about something else.
 * @param words of the message, in lower case and without quotes
 */
export function knownToolTypes(
  words: string,
  param: string | undefined,
): readonly string[] | undefined {
  if (param !== undefined && AT_TYPE.test(param)) return ['function'];
  for (const sentence of SENTENCES) {
    const found = sentence.exec(words);
    if (found === null) continue;
    const [, list] = found;
    if (list === undefined) return ['function'];
    const known = list === '' ? ['custom'] : (list.match(/[a-z][\w:]{3,40}/g) ?? []);
    return [...new Set(['function', ...known])];
  }
  for (const sentence of ONE_TYPE) {
    const type = sentence.exec(words)?.[1]?.split('_preview')[0];
    if (type !== undefined) return TYPES.filter((known) => !known.startsWith(type));
  }
  return undefined;
}

/** In lower case, without quotation marks. Each is a row of test/gateway/no-tools.test.ts, with its source. */
const NO_TOOLS =
  /(?:does not|doesnt|not) support (?:tools|tool (?:use|calls?|calling)|function[- ]call(?:s|ing)|functions)\b(?! in streaming)|no endpoints found that support tool use|requires --(?:enable-auto-tool-choice|tool-call-parser|jinja)|(?:tool|function) (?:call(?:ing|s)?|use) (?:is|are) not (?:supported|enabled)|\btools (?:is|are) not supported|\btools: extra inputs are not permitted|(?:unsupported param|unknown (?:field|parameter)|unrecognized request argument supplied):? tools\b(?!\.|\[)/;

const MAY_BE_ABOUT_TOOLS: ReadonlySet<ErrorKind> = new Set([
  'invalid_request',
  'not_found',
  'upstream',
]);

/** Characters of an error that are searched: a template of a server that fails quotes itself behind them. */
export const SEARCHED_CHARS = 4000;

/** Does the vendor say that this model takes no tools at all? llama.cpp says it with status 500. */
export function refusesTools({ fromUpstream, kind, message }: GatewayError): boolean {
  if (!fromUpstream || !MAY_BE_ABOUT_TOOLS.has(kind)) return false;
  const words = message.slice(0, SEARCHED_CHARS).replace(/[`'"“”‘’]/g, '');
  return NO_TOOLS.test(words.toLowerCase());
}
