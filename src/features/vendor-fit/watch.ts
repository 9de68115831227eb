/** The words in a body that can concern a profile's facts, for a look at the bytes before anybody parses them. */

import type { Profile, Target } from '../../conversation/target.ts';
import { holdsAny, marks } from '../../lib/bytes.ts';

const THINKING = ['"thinking"', '"reasoning', '"enable_thinking"', '"effort"'];
const SAMPLING = ['"temperature"', '"top_p"', '"top_k"', '_penalty"', '"logit_bias"', '"logprobs"'];

function wordsFor(profile: Profile): readonly string[] {
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
  on(profile.systemTurns === false, '"system"', '"developer"');
  on(profile.developerRole === false, '"developer"');
  on(profile.maxTokensParam === 'max_tokens', '"max_completion_tokens"');
  on(profile.maxTokensParam === 'max_completion_tokens', '"max_tokens"');
  on(profile.parallelToolsParam === false, '"parallel_tool_calls"');
  on(profile.strictTools === false, '"strict"');
  on(profile.streamUsage === false, '"stream_options"');
  return [...new Set(words)];
}

const known = new WeakMap<Profile, readonly Buffer[]>();
const USER = Buffer.from('"user"');

/** False: no rule can have anything to do with this body. */
export function concerns(body: Buffer, { profile }: Target): boolean {
  let words = known.get(profile);
  if (words === undefined) {
    words = marks(...wordsFor(profile));
    known.set(profile, words);
  }
  if (profile.needsUserTurn === true && !body.includes(USER)) return true;
  return holdsAny(body, words);
}
