/** The words in a body that can concern a profile's facts, for a look at the bytes before anybody parses them. */

import type { Profile, Target } from '../../conversation/target.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { topLevel } from '../../lib/json/json.ts';

const THINKING = ['"thinking"', '"reasoning', '"enable_thinking"', '"effort"'];
const SAMPLING = ['"temperature"', '"top_p"', '"top_k"', '_penalty"', '"logit_bias"', '"logprobs"'];

function needlesFor(profile: Profile): readonly string[] {
  const words: string[] = [];
  const on = (is: boolean, ...these: string[]) => {
    if (is) words.push(...these);
  };
  on(profile.temperature !== undefined, '"temperature"');
  on(profile.topP !== undefined, '"top_p"');
  on(profile.maxStops !== undefined, '"stop"', '"stop_sequences"');
  on(profile.samplingWhileThinking === false, ...SAMPLING);
  on(
    profile.toolChoices !== undefined || profile.thinkingToolChoices !== undefined,
    '"tool_choice"',
    '"function_call"',
  );
  on(profile.jsonSchema === false, '"json_schema"', '"output_format"');
  on(profile.images === false, '"image', '"input_image"');
  on(profile.documents === false, '"file"', '"input_file"', '"document"');
  on(profile.userAfterTool === false, '"tool"', '"tool_result"', '"function_call_output"');
  on(profile.callIds !== undefined, '"tool_calls"', '"tool_call_id"', '"tool_use', '"call_id"');
  on(
    profile.thinkingDefault !== undefined ||
      profile.efforts !== undefined ||
      profile.budgetThinking === false ||
      profile.adaptiveThinking === false ||
      profile.reasoningParam !== undefined ||
      profile.reasoningField !== undefined,
    ...THINKING,
  );
  on(profile.reasoningReplay !== undefined, '"assistant"', '"function_call"');
  on(profile.userFirst === true, '"assistant"');
  on(profile.parallelCalls === false, '"tool_calls"', '"tool_use"', '_call"');
  on(profile.developerRole === false, '"developer"');
  on(profile.maxTokensParam === 'max_tokens', '"max_completion_tokens"');
  on(profile.maxTokensParam === 'max_completion_tokens', '"max_tokens"');
  on(profile.parallelToolsParam === false, '"parallel_tool_calls"');
  on(profile.strictTools === false, '"strict"');
  on(profile.streamUsage === false, '"stream_options"');
  return [...new Set(words)];
}

const needlesByProfile = new WeakMap<Profile, readonly Buffer[]>();
const [USER, ROLE] = needles('"user"', '"role"') as [Buffer, Buffer];

/** False: no rule can have anything to do with this body, which came in the protocol `client`. */
export function mayNeedFit(
  body: Buffer,
  { profile, protocol }: Target,
  client: ProtocolName,
): boolean {
  let words = needlesByProfile.get(profile);
  if (words === undefined) {
    words = needles(...needlesFor(profile));
    needlesByProfile.set(profile, words);
  }
  if (profile.needsUserTurn === true && !body.includes(USER)) return true;
  if (containsAny(body, words)) return true;
  if (profile.rootUnions === false && client === protocol && hasRootUnions(body, protocol)) {
    return true;
  }
  const { systemTurns, sameRoleTurns, assistantLast } = profile;
  if (assistantLast === false && roleAt(body, body.lastIndexOf(ROLE)) === ASSISTANT) return true;
  if (systemTurns !== false && sameRoleTurns !== false) return false;
  // A body of another protocol is decoded anyway.
  return client !== protocol || hasRefusedRoles(body, profile, protocol);
}

const [PARAMETERS, INPUT_SCHEMA] = needles('"parameters"', '"input_schema"') as [Buffer, Buffer];
const UNIONS = ['anyOf', 'oneOf', 'allOf', 'enum', 'not'];

/** Does a tool's schema name a union at its root, or stand where it cannot be read? */
function hasRootUnions(body: Buffer, protocol: ProtocolName): boolean {
  const key = protocol === 'anthropic-messages' ? INPUT_SCHEMA : PARAMETERS;
  for (let at = body.indexOf(key); at >= 0; at = body.indexOf(key, at)) {
    at += key.length;
    while (body[at]! <= 0x20) at++;
    if (body[at] !== COLON) continue;
    at++;
    while (body[at]! <= 0x20) at++;
    if (body[at] !== BRACE) continue;
    const members = topLevel(body.subarray(at));
    if (members === undefined || UNIONS.some((name) => members.has(name))) return true;
    // What stands inside has been gone over: nothing is read twice.
    let end = 0;
    for (const { valueEnd } of members.values()) end = Math.max(end, valueEnd);
    at += end;
  }
  return false;
}

const BRACE = 0x7b;
const [QUOTE, COLON] = [0x22, 0x3a];
const [ASSISTANT, DEVELOPER, SYSTEM, USERS] = [0x61, 0x64, 0x73, 0x75];

/** Do instructions stand where they may not, or members `role` of one kind side by side? */
function hasRefusedRoles(body: Buffer, profile: Profile, protocol: ProtocolName): boolean {
  // Messages has a place of its own for what leads.
  const nowhere = protocol === 'anthropic-messages';
  let before = nowhere ? 0 : -1;
  for (let at = body.indexOf(ROLE); at >= 0; at = body.indexOf(ROLE, at + ROLE.length)) {
    const role = roleAt(body, at);
    if (role === undefined) continue;
    const instructs = role === SYSTEM || role === DEVELOPER;
    if (instructs && before >= 0) return true;
    const speaks = role === USERS || role === ASSISTANT;
    if (profile.sameRoleTurns === false && speaks && role === before) return true;
    before = role;
  }
  return false;
}

/** The first letter of the value of the member `role` at `at`; undefined where that is none. */
function roleAt(body: Buffer, at: number): number | undefined {
  if (at < 0) return undefined;
  let i = at + ROLE.length;
  while (body[i]! <= 0x20) i++;
  if (body[i] !== COLON) return undefined;
  i++;
  while (body[i]! <= 0x20) i++;
  return body[i] === QUOTE ? body[i + 1] : 0;
}
