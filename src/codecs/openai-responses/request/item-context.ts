/** What the encoders of items and of their parts share for one request. */

import type { Notes } from '../../../conversation/notes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { ToolNames } from '../../../conversation/tools/tool-names.ts';

export interface ItemContext {
  readonly target: Target;
  readonly notes: Notes;
  readonly names: ToolNames;
  /** The conversation came in this protocol: namespaces stand as they are. */
  readonly own: boolean;
  /** File ids are of a vendor that this target may know. */
  readonly fileIds: boolean;
}
