/** Encodes reasoning settings as `thinking` and `output_config.effort`. */

import { budgetOfEffort } from '../../../conversation/models/efforts.ts';
import type { ReasoningSettings } from '../../../conversation/types.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { BlockWriter } from './encode-blocks.ts';

/** The API's minimum for `budget_tokens`. */
const MIN_BUDGET = 1024;

/** https://platform.claude.com/docs/en/build-with-claude/preserved-thinking */
const DROP = { block_binding: { prefix_mismatch_behavior: 'drop_block' } } as const;

export interface EncodedReasoning {
  readonly thinking?: JsonObject;
  /** Members of `output_config`. */
  readonly config: JsonObject;
  readonly maxTokens: number;
}

/**
 * A budget takes at most half of the client's output cap. A forced tool excludes a budget.
 * @param mayRaise the client set no cap, so the budget is added to the default cap
 */
export function encodeReasoning(
  reasoning: ReasoningSettings | undefined,
  maxTokens: number,
  mayRaise: boolean,
  forcedTool: boolean,
  { target, notes }: BlockWriter,
): EncodedReasoning {
  const none: EncodedReasoning = { config: {}, maxTokens };
  if (reasoning === undefined) return none;
  const { enabled, effort, budget } = reasoning;
  const binding = reasoning.dropUnbound === true ? DROP : {};
  if (enabled === false || effort === 'none') {
    return {
      thinking: { type: target.profile.thinkingOff ?? 'disabled', ...binding },
      config: {},
      maxTokens,
    };
  }
  // The request only says how to show thinking, not whether or how much to think.
  if (enabled === undefined && effort === undefined && budget === undefined) {
    if (reasoning.dropUnbound !== true) return none;
    return { ...none, thinking: { type: 'adaptive', ...binding } };
  }
  if (target.profile.adaptiveThinking === true) {
    const display =
      reasoning.display ?? (reasoning.summary === undefined ? undefined : 'summarized');
    return {
      thinking: { type: 'adaptive', ...(display === undefined ? {} : { display }), ...binding },
      config: adaptiveEffort(effort, budget),
      maxTokens,
    };
  }
  if (forcedTool) {
    notes.add('parameter_dropped', 'thinking', 'a forced tool excludes a thinking budget');
    return none;
  }
  const wanted = Math.max(MIN_BUDGET, budget ?? budgetOfEffort(effort));
  if (effort !== undefined && budget === undefined) {
    notes.add('parameter_mapped', 'reasoning_effort', `${effort} to a budget of ${wanted} tokens`);
  }
  const display = reasoning.display === undefined ? {} : { display: reasoning.display };
  const enable = (tokens: number) => ({
    type: 'enabled',
    budget_tokens: tokens,
    ...display,
    ...binding,
  });
  if (wanted < maxTokens && (budget !== undefined || wanted <= maxTokens / 2)) {
    return { thinking: enable(wanted), config: {}, maxTokens };
  }
  if (mayRaise) {
    return { thinking: enable(wanted), config: {}, maxTokens: wanted + maxTokens };
  }
  const half = Math.floor(maxTokens / 2);
  if (half < MIN_BUDGET) {
    notes.add('parameter_dropped', 'thinking', `max_tokens ${maxTokens} is too small for a budget`);
    return none;
  }
  notes.add(
    'parameter_mapped',
    'thinking',
    `budget ${wanted} to ${half}: max_tokens is ${maxTokens}`,
  );
  return { thinking: enable(half), config: {}, maxTokens };
}

/** The effort for an adaptive model. Anthropic has no `minimal`; a budget becomes the nearest effort. */
function adaptiveEffort(effort: string | undefined, budget: number | undefined): JsonObject {
  if (effort !== undefined) return { effort: effort === 'minimal' ? 'low' : effort };
  if (budget === undefined) return {};
  if (budget <= 2048) return { effort: 'low' };
  if (budget <= 10240) return { effort: 'medium' };
  return { effort: budget <= 24576 ? 'high' : 'xhigh' };
}
