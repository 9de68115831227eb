/** Fits a request to the known limits of the vendor that receives it; every change is a note. */

import type { Notes } from '../../conversation/notes.ts';
import { targetAfterRefusals } from '../../conversation/refusal/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { Feature } from '../feature.ts';
import { fitCallIds } from './call-ids.ts';
import { fitMedia } from './media.ts';
import { fitFormat } from './output-format.ts';
import { fitParameters, fitStream } from './parameters.ts';
import { mayNeedFit } from './prefilter.ts';
import { fitBoundThinking, fitChatTools, fitReasoning } from './reasoning.ts';
import { fitReplay } from './replay.ts';
import type { FitContext, FitRule } from './rule.ts';
import { fitSpelling } from './spelling.ts';
import { fitChoice, fitToolReferences, fitTools, fitToolTypes } from './tools.ts';
import { fitChatTemplate, fitInstructions, fitNeighbours, fitTurns } from './turn-order.ts';

// Reasoning is decided first: tool choice, parameters and replay depend on it. Spelling is last: any
// change before it makes the codec write the body anyway.
const RULES: readonly FitRule[] = [
  fitReasoning,
  fitChatTools,
  fitChoice,
  fitParameters,
  fitStream,
  fitFormat,
  fitTools,
  fitToolReferences,
  fitMedia,
  fitInstructions,
  fitChatTemplate,
  fitTurns,
  fitNeighbours,
  fitReplay,
  fitCallIds,
  fitBoundThinking,
  fitSpelling,
  fitToolTypes,
];

/**
 * The request pass that applies the target's profile. Place it after every feature that changes turns,
 * tools or settings, so that it sees what will be sent. It does nothing for a target without facts.
 */
export function vendorFit(): Feature {
  return {
    name: 'vendor-fit',
    mayApply: (body, { client, target, refusals }) =>
      refusals !== undefined || mayNeedFit(body, target, client),
    request: (conversation, { target, notes, refusals }) =>
      applyRules(conversation, targetAfterRefusals(target, refusals), notes, RULES),
  };
}

function applyRules(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  rules: readonly FitRule[],
): Conversation {
  const context: FitContext = {
    profile: target.profile,
    notes,
    protocol: target.protocol,
    provider: target.provider,
    sameProtocol: conversation.origin?.protocol === target.protocol,
  };
  return rules.reduce((current, rule) => rule(current, context), conversation);
}

/** Applies only the rules about the order of turns, for repairing a history offline. */
export const fitTurnOrder = (
  conversation: Conversation,
  target: Target,
  notes: Notes,
): Conversation =>
  applyRules(conversation, target, notes, [fitChatTemplate, fitTurns, fitNeighbours]);
