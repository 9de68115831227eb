/** Fits a conversation to what is known of the vendor that will read it; every change is a note. */

import type { Notes } from '../../conversation/notes.ts';
import { targetAfterRefusal } from '../../conversation/refusal.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { Feature } from '../feature.ts';
import { fitCallIds } from './call-ids.ts';
import { fitChoice } from './choice.ts';
import type { Fit, Rule } from './fit.ts';
import { fitFormat } from './format.ts';
import { fitMedia } from './media.ts';
import { fitParameters } from './parameters.ts';
import { fitReasoning } from './reasoning.ts';
import { fitReplay } from './replay.ts';
import { fitNeighbours, fitShapes } from './shapes.ts';
import { fitSpelling } from './spelling.ts';
import { fitTools } from './tools.ts';
import { fitTurns } from './turns.ts';
import { concerns } from './watch.ts';

// Whether the model reasons is settled first: choices, parameters and replay depend on it. Spelling is
// last, since whatever was changed before it makes the codec write the body anyway.
const RULES: readonly Rule[] = [
  fitReasoning,
  fitChoice,
  fitParameters,
  fitFormat,
  fitTools,
  fitMedia,
  fitShapes,
  fitTurns,
  fitNeighbours,
  fitReplay,
  fitCallIds,
  fitSpelling,
];

/**
 * The pass that reads the target's profile. Put it behind every feature that changes turns, tools or
 * settings, so that it sees what will be sent. Idle for a target without facts.
 */
export function vendorFit(): Feature {
  return {
    name: 'vendor-fit',
    mayApply: (body, { client, target, refusal }) =>
      refusal !== undefined || concerns(body, target, client),
    request: (conversation, { target, notes, refusal }) =>
      fitAll(conversation, targetAfterRefusal(target, refusal), notes, RULES),
  };
}

function fitAll(
  conversation: Conversation,
  target: Target,
  notes: Notes,
  rules: readonly Rule[],
): Conversation {
  const fit: Fit = {
    profile: target.profile,
    notes,
    protocol: target.protocol,
    own: conversation.origin?.protocol === target.protocol,
  };
  return rules.reduce((current, rule) => rule(current, fit), conversation);
}

/** Only what concerns the order of turns, for who repairs a history offline. */
export const fitTurnShapes = (
  conversation: Conversation,
  target: Target,
  notes: Notes,
): Conversation => fitAll(conversation, target, notes, [fitShapes, fitTurns, fitNeighbours]);
