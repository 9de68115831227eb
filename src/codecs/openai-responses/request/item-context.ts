/** The context that the encoders of items and parts share within one request. */

import type { Notes } from '../../../conversation/notes.ts';
import type { KnownNodes } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { ToolNames } from '../../../conversation/tools/tool-names.ts';

export interface ItemContext {
  readonly target: Target;
  readonly notes: Notes;
  readonly names: ToolNames;
  /** The conversation came in this protocol: namespaces are kept. */
  readonly own: boolean;
  /** The target may know the conversation's file ids. */
  readonly fileIds: boolean;
  /** What was made of nodes before. */
  readonly known?: KnownNodes | undefined;
}
