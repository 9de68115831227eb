/** What the page's API works with, handed in by compose. */

import type { Config } from '../../config/config.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { Json } from '../../lib/json/json.ts';
import type { SampleServices } from '../../samples/replay/tools.ts';
import type { SampleWatcher } from '../../samples/sample.ts';
import type { Access } from '../../server/auth.ts';

export interface UiParts extends SampleServices {
  readonly version: string;
  /** Checks key, Host and Origin, as for the API of the models. */
  readonly access: () => Access;
  /** The configuration in force. */
  readonly config: () => Config;
  /** Folder that the recorder of this process writes to. */
  readonly root: string;
  /** A raw body with everything in it readable for the decoder of its protocol. */
  mend(body: Json, protocol: ProtocolName, notes: Notes): Json;
  /** Told of every exchange that is recorded in this process; call what comes back to be left alone. */
  watch(watcher: SampleWatcher): () => void;
}
