/** Which targets have room for a prompt, by what is known of their models' windows. */

import { factsOf } from '../config/models/model-facts.ts';
import type { RoutedTarget } from './request.ts';

/** Tokens of a target's window; undefined where it is not known. */
export const contextOf = ({ provider, target }: RoutedTarget): number | undefined =>
  factsOf(provider, target.model)?.context;

/** An estimate may be wrong by this much: a window must be smaller than that to count as too small. */
const SURELY = 0.8;

/**
 * The targets in their order, those last whose window is known to be too small for the prompt. The same list where
 * none is.
 * @param bytes of the body: what has fewer bytes than a window has tokens fits
 * @param prompt `tokens` is an estimate, which is made only where it may matter
 */
export const withRoomFirst = (
  targets: readonly RoutedTarget[],
  bytes: number,
  prompt: { readonly tokens: number },
): readonly RoutedTarget[] =>
  targets.length < 2 || bytes < MIN_BYTES ? targets : smallLast(targets, bytes, prompt);

function smallLast(
  targets: readonly RoutedTarget[],
  bytes: number,
  prompt: { readonly tokens: number },
): readonly RoutedTarget[] {
  const small = targets.filter((routed) => {
    const context = contextOf(routed);
    return context !== undefined && context < bytes && context < prompt.tokens * SURELY;
  });
  if (small.length === 0 || small.length === targets.length) return targets;
  return [...targets.filter((routed) => !small.includes(routed)), ...small];
}

/** No window in use is smaller: a shorter body needs no look. */
const MIN_BYTES = 8192;
