/** Numbers and lists that a vendor takes only within bounds, or not while its model reasons. */

import { withParts } from '../../conversation/edit.ts';
import type { Range } from '../../conversation/target.ts';
import type { Settings } from '../../conversation/types.ts';
import { reasons } from './reasoning.ts';
import type { Fit, Rule } from './rule.ts';

/** The wire's names of sampling settings, and the value with which each one says nothing. */
const SAMPLING = {
  temperature: ['temperature', 1],
  topP: ['top_p', 1],
  topK: ['top_k', undefined],
  presencePenalty: ['presence_penalty', 0],
  frequencyPenalty: ['frequency_penalty', 0],
  logitBias: ['logit_bias', undefined],
  logprobs: ['logprobs', undefined],
} as const satisfies Partial<Record<keyof Settings, readonly [string, number | undefined]>>;

/** Clamps, counts and drops; each change is a note. */
export const fitParameters: Rule = (conversation, fit) => {
  const changes: Partial<Record<keyof Settings, unknown>> = {
    ...clamped('temperature', 'temperature', conversation.settings, fit.profile.temperature, fit),
    ...clamped('topP', 'top_p', conversation.settings, fit.profile.topP, fit),
    ...fewerStops(conversation.settings, fit),
    ...(fit.profile.samplingWhileThinking === false && reasons(conversation, fit.profile)
      ? withoutSampling(conversation.settings, fit)
      : {}),
  };
  if (Object.keys(changes).length === 0) return conversation;
  const settings = { ...conversation.settings, ...changes } as Settings;
  return withParts(conversation, { settings });
};

function clamped(
  key: 'temperature' | 'topP',
  name: string,
  settings: Settings,
  range: Range | undefined,
  { notes }: Fit,
): Partial<Settings> {
  const value = settings[key];
  if (value === undefined || range === undefined) return {};
  const near = Math.min(range.max, Math.max(range.min, value));
  if (near === value) return {};
  notes.add('parameter_mapped', name, `${value} as ${near}`);
  return { [key]: near };
}

function fewerStops(settings: Settings, { profile, notes }: Fit): Partial<Settings> {
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
  { notes }: Fit,
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
