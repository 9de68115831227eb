import type { Config } from '../../config/config.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { Json } from '../../lib/json/json.ts';
import type { SampleServices } from '../../samples/in-process-gateway.ts';
import type { Recorder } from '../../samples/record/recorder.ts';
import type { SampleMeta, SampleRow, SampleWatcher } from '../../samples/sample.ts';
import type { Access } from '../../server/auth.ts';

/** What other replicas record and run. */
export interface ReplicaSamples {
  /** Brings the bodies of a sample here. @throws GatewayError */
  fetch(meta: SampleMeta): Promise<void>;
  watch(watcher: SampleWatcher): () => void;
  /** Exchanges that run there; undefined where nobody tells. */
  readonly running:
    | {
        rows(): readonly SampleRow[];
        find(id: string): SampleMeta | undefined;
        /** Left out: the bodies cannot be read from here. */
        body?(id: string, stage: string): Uint8Array | undefined;
      }
    | undefined;
}

/** Names of the keys made at run time, whose exchanges carry their ids. */
export interface KeyNames {
  nameOf(id: string): string | undefined;
  idOf(name: string): string | undefined;
}

export interface UiOptions extends SampleServices {
  readonly version: string;
  /** Checks key, Host and Origin, as for model requests. */
  readonly access: () => Access;
  /** The configuration in force. */
  readonly config: () => Config;
  /** Folder that the recorder of this process writes to. */
  readonly root: string;
  /** Repairs a raw body so that the decoder of its protocol accepts it. */
  mend(body: Json, protocol: ProtocolName, notes: Notes): Json;
  /** Its mode may be switched here, and the exchanges that it holds in memory are shown. */
  readonly recorder: Pick<Recorder, 'mode' | 'switchMode' | 'recent' | 'running' | 'look'>;
  readonly keys: KeyNames;
  /** `usage`, `spend` and `health`, as the admin API answers them. */
  readonly reports: Readonly<
    Record<string, (query: URLSearchParams) => Response | Promise<Response>>
  >;
  /** Exchanges of other replicas. */
  readonly replicas?: ReplicaSamples;
  /** Calls the watcher for every exchange that this process records, until the returned function is called. */
  watch(watcher: SampleWatcher): () => void;
}
