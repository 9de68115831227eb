/** Decides from the raw bytes whether a profile's facts can concern a body, before it is parsed. */

import type { Profile } from '../../conversation/profile-facts.ts';
import { PROTOCOL_NAMES, type ProtocolName } from '../../conversation/protocol-names.ts';
import type { Target } from '../../conversation/target.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { topLevel } from '../../lib/json/json.ts';
import { valueBehindKey } from '../../lib/json/scan-values.ts';

/** The fields of this protocol's own body; the others have theirs in common, as far as it matters here. */
const COMMON = {
  cap: ['"max_tokens"', '"max_completion_tokens"', '"max_output_tokens"'],
  topP: ['"top_p"'],
  stops: ['"stop"', '"stop_sequences"'],
  sampling: ['"temperature"', '"top_p"', '"top_k"', '_penalty"', '"logit_bias"', '"logprobs"'],
  toolChoice: ['"tool_choice"', '"function_call"'],
  schema: ['"json_schema"', '"output_format"'],
  json: ['"json_object"'],
  images: ['"image', '"input_image"'],
  documents: ['"file"', '"input_file"', '"document"'],
  thinking: ['"thinking"', '"reasoning', '"enable_thinking"', '"effort"'],
} as const;

/** Google reads both spellings. */
const GEMINI: Readonly<Record<keyof typeof COMMON, readonly string[]>> = {
  cap: ['"maxOutputTokens"', '"max_output_tokens"'],
  topP: ['"topP"', '"top_p"'],
  stops: ['"stopSequences"', '"stop_sequences"'],
  sampling: [
    '"temperature"',
    '"topP"',
    '"top_p"',
    '"topK"',
    '"top_k"',
    'Penalty"',
    '_penalty"',
    'ogprobs"',
  ],
  toolChoice: ['"toolConfig"', '"tool_config"'],
  schema: ['esponseSchema"', 'esponse_schema"', 'esponseJsonSchema"', 'esponse_json_schema"'],
  json: ['esponseMimeType"', 'esponse_mime_type"'],
  images: ['"image/', '"fileData"', '"file_data"'],
  documents: ['"inlineData"', '"inline_data"', '"fileData"', '"file_data"'],
  thinking: ['"thinkingConfig"', '"thinking_config"'],
};

/**
 * Fields that chat apps and agents add to messages of a history (diegosouzapw/OmniRoute#11026). A body with
 * one of them is looked through; all fields that the vendor does not take are dropped then.
 */
const CLIENT_FIELDS = [
  ...['"model_id"', '"modelId"', '"messageId"', '"message_id"', '"sender"', '"timestamp"'],
  ...['"created_at"', '"createdAt"'],
];

const fieldsOf = (protocol: ProtocolName) => (protocol === 'google-gemini' ? GEMINI : COMMON);

function needlesFor(profile: Profile, protocol: ProtocolName): readonly string[] {
  const found: string[] = [];
  const addIf = (applies: boolean, ...strings: readonly string[]) => {
    if (applies) found.push(...strings);
  };
  const fields = fieldsOf(protocol);
  addIf(profile.temperature !== undefined, '"temperature"');
  addIf(profile.topP !== undefined, ...fields.topP);
  addIf(profile.maxStops !== undefined, ...fields.stops);
  addIf(profile.samplingWhileThinking === false, ...fields.sampling);
  addIf(
    profile.toolChoices !== undefined || profile.thinkingToolChoices !== undefined,
    ...fields.toolChoice,
  );
  addIf(profile.jsonSchema === false, ...fields.schema);
  addIf(profile.jsonObject === false, ...fields.json);
  addIf(profile.images === false, ...fields.images);
  addIf(profile.imagesInResults === false, '"tool"');
  addIf(profile.toolReferences === false, '"tool_reference"');
  addIf(profile.documents === false, ...fields.documents);
  addIf(profile.userAfterTool === false, '"tool"', '"tool_result"', '"function_call_output"');
  addIf(profile.callIds !== undefined, '"tool_calls"', '"tool_call_id"', '"tool_use', '"call_id"');
  addIf(
    profile.thinkingDefault !== undefined ||
      profile.efforts !== undefined ||
      profile.budgetThinking === false ||
      profile.adaptiveThinking === false ||
      profile.thinkingOff !== undefined ||
      profile.reasoningParam !== undefined ||
      profile.reasoningField !== undefined,
    ...fields.thinking,
  );
  addIf(profile.reasoningReplay !== undefined, '"assistant"', '"function_call"');
  addIf(profile.userFirst === true, '"assistant"');
  addIf(profile.parallelCalls === false, '"tool_calls"', '"tool_use"', '_call"');
  addIf(profile.developerRole === false, '"developer"');
  addIf(profile.maxTokensParam === 'max_tokens', '"max_completion_tokens"');
  addIf(profile.maxTokensParam === 'max_completion_tokens', '"max_tokens"');
  if (protocol === 'google-gemini') addIf(profile.foreignParts === false, ...fields.documents);
  if (protocol === 'openai-chat') {
    addIf(profile.chatToolsWhileThinking === false, '"tools"', '"functions"');
    addIf(profile.messageFields !== undefined, ...CLIENT_FIELDS);
    addIf(profile.emptyReplies === false, '"assistant"');
    addIf(profile.contentParts === false, '"text"');
    addIf(profile.foreignParts === false, '"image', '"input_', '"output_text"', '"document"');
  }
  addIf(profile.parallelToolsParam === false, '"parallel_tool_calls"');
  addIf(profile.strictTools === false, '"strict"');
  addIf(
    profile.looseSchemas === false ||
      profile.schemaBounds === false ||
      profile.uniqueTools === true,
    '"tools"',
    '"functions"',
  );
  addIf(profile.jsonSchemaTools === false, '"parametersJsonSchema"', '"parameters_json_schema"');
  addIf(profile.instructions === false, '"system', '"developer"', '"instructions"');
  addIf(profile.toolTypes !== undefined && protocol === 'openai-responses', '"tools"', '_call');
  addIf(profile.streamUsage === false, '"stream_options"');
  return [...new Set(found)];
}

interface ProfileNeedles {
  readonly facts: readonly Buffer[];
  readonly cap: readonly Buffer[];
}

const needlesByProfile = new Map<ProtocolName, WeakMap<Profile, ProfileNeedles>>(
  PROTOCOL_NAMES.map((protocol) => [protocol, new WeakMap()]),
);

function needlesOf(profile: Profile, protocol: ProtocolName): ProfileNeedles {
  const known = needlesByProfile.get(protocol)!;
  let needed = known.get(profile);
  if (needed === undefined) {
    const caps = profile.maxOutput === undefined ? [] : fieldsOf(protocol).cap;
    needed = { facts: needles(...needlesFor(profile, protocol)), cap: needles(...caps) };
    known.set(profile, needed);
  }
  return needed;
}

const [USER, ROLE] = needles('"user"', '"role"') as [Buffer, Buffer];

/**
 * False if no rule can change this body. `client` is the protocol of the body: one of another protocol is decoded in any
 * case.
 */
export function mayNeedFit(
  body: Buffer,
  { profile, protocol }: Target,
  client: ProtocolName,
): boolean {
  if (client !== protocol) return true;
  const { facts, cap } = needlesOf(profile, protocol);
  if (profile.streams !== undefined) return true;
  if (profile.needsUserTurn === true && !body.includes(USER)) return true;
  if (containsAny(body, facts)) return true;
  const { maxOutput } = profile;
  if (maxOutput !== undefined && containsAny(body, cap) && asksForMore(body, cap, maxOutput)) {
    return true;
  }
  if (profile.rootUnions === false && hasRootUnions(body, protocol)) return true;
  const { systemTurns, sameRoleTurns, assistantLast } = profile;
  if (assistantLast === false && roleAt(body, body.lastIndexOf(ROLE)) === ASSISTANT_INITIAL)
    return true;
  if (systemTurns !== false && sameRoleTurns !== false) return false;
  return hasRefusedRoles(body, profile, protocol);
}

/** Is there an output cap above this one? */
function asksForMore(body: Buffer, keys: readonly Buffer[], most: number): boolean {
  for (const key of keys) {
    for (let at = body.indexOf(key); at >= 0; at = body.indexOf(key, at)) {
      at += key.length;
      const start = valueBehindKey(body, at);
      if (start < 0) continue;
      // proto3 JSON writes numbers as strings, too.
      at = body[start] === QUOTE ? start + 1 : start;
      let value = 0;
      for (; body[at]! >= 0x30 && body[at]! <= 0x39; at++) value = value * 10 + body[at]! - 0x30;
      if (value > most || body[at] === 0x65 || body[at] === 0x45) return true;
    }
  }
  return false;
}

const [PARAMETERS, INPUT_SCHEMA] = needles('"parameters"', '"input_schema"') as [Buffer, Buffer];
const UNIONS = ['anyOf', 'oneOf', 'allOf', 'enum', 'not'];

/** Is there a tool schema with a union at its root, or one that cannot be read? */
function hasRootUnions(body: Buffer, protocol: ProtocolName): boolean {
  const key = protocol === 'anthropic-messages' ? INPUT_SCHEMA : PARAMETERS;
  for (let at = body.indexOf(key); at >= 0; at = body.indexOf(key, at)) {
    at += key.length;
    const start = valueBehindKey(body, at);
    if (start < 0 || body[start] !== BRACE) continue;
    at = start;
    const members = topLevel(body.subarray(at));
    if (members === undefined || UNIONS.some((name) => members.has(name))) return true;
    // Skips what was read, so that no byte is read twice.
    let end = 0;
    for (const { valueEnd } of members.values()) end = Math.max(end, valueEnd);
    at += end;
  }
  return false;
}

const BRACE = 0x7b;
const QUOTE = 0x22;
const [ASSISTANT_INITIAL, DEVELOPER_INITIAL, SYSTEM_INITIAL, USER_INITIAL] = [
  0x61, 0x64, 0x73, 0x75,
];

/** Are there instructions in mid-dialogue, or neighbours of one role? */
function hasRefusedRoles(body: Buffer, profile: Profile, protocol: ProtocolName): boolean {
  // On Messages leading instructions are a separate field, so any `system` role is late.
  const separate = protocol === 'anthropic-messages';
  let before = separate ? 0 : -1;
  for (let at = body.indexOf(ROLE); at >= 0; at = body.indexOf(ROLE, at + ROLE.length)) {
    const role = roleAt(body, at);
    if (role === undefined) continue;
    const instructs = role === SYSTEM_INITIAL || role === DEVELOPER_INITIAL;
    if (instructs && before >= 0) return true;
    const speaks = role === USER_INITIAL || role === ASSISTANT_INITIAL;
    if (profile.sameRoleTurns === false && speaks && role === before) return true;
    before = role;
  }
  return false;
}

/** The first letter of the role whose key begins at `at`; 0 if it is no string, undefined if it is no key. */
function roleAt(body: Buffer, at: number): number | undefined {
  if (at < 0) return undefined;
  const start = valueBehindKey(body, at + ROLE.length);
  if (start < 0) return undefined;
  return body[start] === QUOTE ? body[start + 1] : 0;
}
