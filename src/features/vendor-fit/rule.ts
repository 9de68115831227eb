/** What every rule of this feature is given, and how a rule says that it did something. */

import type { Notes } from '../../conversation/notes.ts';
import type { Profile } from '../../conversation/target.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';

export interface FitContext {
  readonly profile: Profile;
  readonly notes: Notes;
  /** What the target speaks. */
  readonly protocol: ProtocolName;
  /**
   * The conversation came in the target's own protocol, so that the codec sends its parts as they
   * came. In any other case the codec fits roles, content and choices itself while it converts.
   */
  readonly sameProtocol: boolean;
}

/** One rule: the same reference where it has nothing to do; idempotent. */
export type FitRule = (conversation: Conversation, fit: FitContext) => Conversation;
