/** A replica of these tests: a recorder with a folder of its own, shared over real engines. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../../src/config/secret.ts';
import { Recorder } from '../../../src/samples/record/recorder.ts';
import { Sharing, type SharingOptions } from '../../../src/samples/replicas/sharing.ts';
import type { SampleMeta, SampleStore } from '../../../src/samples/sample.ts';
import { DEFAULT_RETENTION, type Retention } from '../../../src/samples/store/retention.ts';
import { openSampleStore } from '../../../src/samples/store/sample-store.ts';
import { ObjectStore } from '../../../src/state/engines/objects.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { ReplicaErasures } from '../../../src/state/erasures.ts';
import { textSeal } from '../../../src/state/text-seal.ts';
import type { DatabaseServer } from '../../support/engines/database-servers.ts';
import {
  OBJECTS_KEY,
  OBJECTS_SECRET,
  type ObjectServer,
} from '../../support/engines/object-servers.ts';
import { exchange, JSON_TYPE, play, told } from '../record/support.ts';

export const SEAL = ['the secret of these tests, long enough to seal'];

export interface Servers {
  readonly database: DatabaseServer;
  readonly objects: ObjectServer;
  /** The name of a fresh prefix. */
  readonly prefix: string;
}

export const openDatabase = ({ database }: Servers) =>
  new PostgresDatabase({ url: new Secret(database.url) }, () => {});

export const openObjects = ({ objects, prefix }: Servers) =>
  new ObjectStore(
    {
      bucket: objects.bucket,
      prefix: `${prefix}/`,
      endpoint: objects.endpoint,
      region: 'us-east-1',
      accessKeyId: OBJECTS_KEY,
      secretAccessKey: new Secret(OBJECTS_SECRET),
    },
    () => {},
  );

export interface ReplicaOptions {
  readonly retention?: Partial<Retention>;
  readonly seal?: readonly string[];
  readonly onStep?: SharingOptions['onStep'];
  /** One that was there before. */
  readonly root?: string;
}

export class Replica {
  readonly root: string;
  readonly recorder: Recorder;
  readonly sharing: Sharing;
  readonly erasures: ReplicaErasures;
  readonly store: SampleStore;
  readonly warnings: string[] = [];
  /** Samples that wait for their upload, as last told. */
  pending: number | undefined;
  readonly database: PostgresDatabase;
  readonly objects: ObjectStore;

  constructor(servers: Servers, options: ReplicaOptions = {}) {
    this.root = options.root ?? mkdtempSync(join(tmpdir(), 'hopgate-replica-'));
    this.database = openDatabase(servers);
    this.objects = openObjects(servers);
    const retention = { ...DEFAULT_RETENTION, ...options.retention };
    this.erasures = new ReplicaErasures({
      database: this.database,
      cache: undefined,
      positionPath: join(this.root, 'erasures.json'),
      onProblem: (message) => this.warnings.push(message),
    });
    this.recorder = new Recorder({
      root: this.root,
      mode: 'all',
      recent: {},
      retention,
      onPurged: (ids) => this.sharing.purged(ids),
    });
    this.sharing = new Sharing({
      root: this.root,
      database: this.database,
      objects: this.objects,
      cache: undefined,
      seal: textSeal(options.seal ?? SEAL),
      erasures: this.erasures,
      retention: () => retention,
      warn: (message) => this.warnings.push(message),
      cleanMs: 500,
      onPending: (count) => {
        this.pending = count;
      },
      ...(options.onStep !== undefined && { onStep: options.onStep }),
    });
    this.store = openSampleStore(this.root, true, (meta) => this.sharing.fetch(meta));
    this.erasures.listen(({ name, at }) => this.recorder.eraseSpace(name, at));
    this.recorder.watch({ row: ({ state }) => state !== 'open' && this.sharing.wake(), gone() {} });
    this.sharing.open();
    this.erasures.follow();
  }

  /** An exchange that says these words, complete or only started. */
  begin(words: string, space?: string): { readonly id: string; end(): void } {
    const request = exchange({
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: words }] }),
    });
    const recording = this.recorder.begin(request)!;
    if (space !== undefined) recording.space?.(space);
    play(recording, { answer: [`{"answer":"to ${words}"}`] });
    recording.clientStart(200, JSON_TYPE);
    recording.clientChunk(`{"answer":"to ${words}"}`);
    return { id: request.id, end: () => recording.end(told()) };
  }

  async record(words: string, space?: string): Promise<string> {
    const { id, end } = this.begin(words, space);
    end();
    await this.recorder.flush();
    return id;
  }

  lists(id: string): boolean {
    return this.store.list().some((row) => row.id === id && row.state === 'done');
  }

  /** The body of a stage, fetched where another replica recorded it. */
  async body(id: string, stage: string): Promise<string> {
    const meta = this.store.find(id) as SampleMeta;
    await this.store.fetch(meta);
    return Buffer.from(this.store.read(meta, stage)!).toString();
  }

  /** As `DELETE /memory/SPACE` does it. */
  async erase(space: string): Promise<void> {
    const { name } = await this.erasures.note(space);
    await this.recorder.eraseSpace(space);
    await this.sharing.eraseSpace(name.hash);
  }

  /** Files of the folder that hold these bytes, the index and its log included. */
  traces(of: string): readonly string[] {
    return tracesIn(this.root, of);
  }

  async close(keep = false): Promise<void> {
    await this.recorder.close();
    await this.sharing.close();
    await this.erasures.close();
    this.store.close();
    await this.database.close();
    await this.objects.close();
    if (!keep) rmSync(this.root, { recursive: true, force: true });
  }
}

export const tracesIn = (root: string, of: string): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => path.includes(of) || readFileSync(path).includes(of));
