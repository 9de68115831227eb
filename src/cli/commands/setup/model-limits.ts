/** Context windows and output limits of the models that a configuration serves, for clients that need them. */

import type { Config } from '../../../config/config.ts';
import { factsOf, familyFacts, modelFacts } from '../../../config/models/model-facts.ts';
import { plainRequest, route, routingTable } from '../../../routing/index.ts';

export interface ModelLimits {
  /** Tokens. */
  readonly context: number;
  readonly output?: number;
  /** What it takes besides text. */
  readonly input?: readonly string[];
  readonly reasoning?: boolean;
}

/** The limits of a model by its name. */
export type LimitsOf = (model: string) => ModelLimits | undefined;

/**
 * The limits of what answers for a name: those of its first target, else those of the name under any vendor, else
 * the lowest of its family. Undefined where nothing is known.
 */
export function limitsIn(config: Config): LimitsOf {
  const table = routingTable(config);
  return (model) => {
    const decision = route(plainRequest(model, 'openai-chat', Date.now()), table);
    const first = decision.ok ? decision.targets[0] : undefined;
    const name = first?.target.model ?? model;
    const facts = [
      first && factsOf(first.provider, name),
      modelFacts(undefined, name),
      familyFacts(name),
    ].find((one) => one?.context !== undefined);
    return facts?.context === undefined ? undefined : { ...facts, context: facts.context };
  };
}
