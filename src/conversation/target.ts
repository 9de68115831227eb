/** A target of a request. */

import type { Profile } from './profile-facts.ts';
import type { FieldPath } from './refusal/refused-fields.ts';
import type { ProtocolName } from './types.ts';

/** A model of a provider, to which a request can be sent. */
export interface Target {
  /** The provider's name in the configuration. */
  readonly provider: string;
  /** The model name that goes on the wire. */
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly profile: Profile;
  /** How long its prompts are to be kept where the client cannot say so. Left out: as long as the vendor usually does. */
  readonly promptCache?: 'off' | '1h';
  /** The fewest tokens of a prompt that are kept. */
  readonly leastCache?: number | undefined;
  readonly refusedFields?: readonly FieldPath[];
}

const names = new WeakMap<Target, string>();

/** `provider/model`, the same string object each time: every answer carries it. */
export function targetName(target: Target): string {
  let name = names.get(target);
  if (name === undefined) {
    name = `${target.provider}/${target.model}`;
    names.set(target, name);
  }
  return name;
}
