/** Fits settings to the vendor: numbers within its bounds and no sampling while the model reasons. */

import { withParts } from '../../conversation/edit.ts';
import { willReason } from '../../conversation/models/will-reason.ts';
import type { Range } from '../../conversation/profile-facts.ts';
import type { Settings } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

/** Asks in the only form that the vendor takes; what comes is given to the client in the form that it asked for. */
export const fitStream: FitRule = (conversation, { profile: { streams }, notes }) => {
  const { settings } = conversation;
  const stream = streams === undefined ? settings.stream : streams === 'always';
  if (stream === settings.stream) return conversation;
  notes.add('parameter_mapped', 'stream', stream ? 'asked as a stream' : 'asked as a whole');
  return withParts(conversation, { settings: { ...settings, stream, streamUsage: stream } });
};

/** Each sampling setting's name on the wire, and the value that has no effect. */
const SAMPLING = {
  temperature: ['temperature', 1],
  topP: ['top_p', 1],
  topK: ['top_k', undefined],
  presencePenalty: ['presence_penalty', 0],
  frequencyPenalty: ['frequency_penalty', 0],
  logitBias: ['logit_bias', undefined],
  logprobs: ['logprobs', undefined],
} as const satisfies Partial<Record<keyof Settings, readonly [string, number | undefined]>>;

/** Clamps numbers, shortens the list of stops and drops sampling settings that the vendor refuses. */
export const fitParameters: FitRule = (conversation, context) => {
  const { settings } = conversation;
  const { profile } = context;
  const changes: Partial<Record<keyof Settings, unknown>> = {
    ...lowerCap(settings, context),
    ...clamp('temperature', 'temperature', settings, profile.temperature, context),
    ...clamp('topP', 'top_p', settings, profile.topP, context),
    ...limitStops(settings, context),
    ...(profile.samplingWhileThinking === false && willReason(conversation, profile)
      ? withoutSampling(settings, context)
      : {}),
  };
  if (Object.keys(changes).length === 0) return conversation;
  return withParts(conversation, { settings: { ...settings, ...changes } as Settings });
};

/** The least that a Messages model takes as its thinking budget. */
const MIN_BUDGET = 1024;

function lowerCap(settings: Settings, { profile, protocol, notes }: FitContext): Partial<Settings> {
  const { maxOutput, defaultMaxTokens } = profile;
  const { maxTokens, reasoning } = settings;
  if (maxOutput === undefined) return {};
  if (maxTokens === undefined && defaultMaxTokens === maxOutput) {
    notes.add('parameter_mapped', 'max_tokens', `none as ${maxOutput}`);
    return { maxTokens: maxOutput };
  }
  if (maxTokens === undefined || maxTokens <= maxOutput) return {};
  notes.add('parameter_mapped', 'max_tokens', `${maxTokens} as ${maxOutput}`);
  const budget = reasoning?.budget;
  // Messages: "`max_tokens` must be greater than `thinking.budget_tokens`".
  if (protocol !== 'anthropic-messages' || budget === undefined || budget < maxOutput) {
    return { maxTokens: maxOutput };
  }
  const half = Math.floor(maxOutput / 2);
  if (half < MIN_BUDGET) {
    notes.add('parameter_dropped', 'thinking', `max_tokens ${maxOutput} is too small for a budget`);
    return { maxTokens: maxOutput, reasoning: undefined };
  }
  notes.add('parameter_mapped', 'thinking', `budget ${budget} as ${half}`);
  return { maxTokens: maxOutput, reasoning: { ...reasoning, budget: half } };
}

function clamp(
  key: 'temperature' | 'topP',
  name: string,
  settings: Settings,
  range: Range | undefined,
  { notes }: FitContext,
): Partial<Settings> {
  const value = settings[key];
  if (value === undefined || range === undefined) return {};
  const nearest = Math.min(range.max, Math.max(range.min, value));
  if (nearest === value) return {};
  notes.add('parameter_mapped', name, `${value} as ${nearest}`);
  return { [key]: nearest };
}

function limitStops(settings: Settings, { profile, notes }: FitContext): Partial<Settings> {
  const { maxStops } = profile;
  const { stop } = settings;
  if (maxStops === undefined || stop === undefined || stop.length <= maxStops) return {};
  if (maxStops === 0) {
    notes.add('parameter_dropped', 'stop');
    return { stop: undefined };
  }
  notes.add('parameter_mapped', 'stop', `the first ${maxStops} of ${stop.length}`);
  return { stop: stop.slice(0, maxStops) };
}

function withoutSampling(
  settings: Settings,
  { notes }: FitContext,
): Partial<Record<keyof Settings, undefined>> {
  const out: Partial<Record<keyof Settings, undefined>> = {};
  for (const key of Object.keys(SAMPLING) as (keyof typeof SAMPLING)[]) {
    const [name, neutral] = SAMPLING[key];
    const value = settings[key];
    if (value === undefined || value === neutral) continue;
    notes.add('parameter_dropped', name, 'not while the model reasons');
    out[key] = undefined;
  }
  return out;
}
