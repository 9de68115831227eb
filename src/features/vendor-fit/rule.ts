/** The types of a rule of this feature and of its context. */

import type { Notes } from '../../conversation/notes.ts';
import type { Profile } from '../../conversation/profile-facts.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';

export interface FitContext {
  readonly profile: Profile;
  readonly notes: Notes;
  /** The target's protocol. */
  readonly protocol: ProtocolName;
  /** The target's provider. */
  readonly provider: string;
  /**
   * The conversation came in the target's protocol, so the codec sends unchanged parts as they came.
   * Otherwise the codec fits roles, content and tool choices itself while it converts.
   */
  readonly sameProtocol: boolean;
}

/** One rule. Idempotent; returns the same reference if there is nothing to change. */
export type FitRule = (conversation: Conversation, context: FitContext) => Conversation;
