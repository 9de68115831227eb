/** A store that speaks S3 as the shared object store. The client, which signs requests, is loaded with the first use. */

import type { ObjectsAddress } from '../../config/sections/engines.ts';
import { readEntities } from '../../lib/http/html-entities.ts';
import { MadeOnce } from '../../lib/loop/made-once.ts';
import {
  clockFinding,
  type EngineFinding,
  type EngineState,
  finding,
  latencyFinding,
  type ObjectInfo,
  type Objects,
} from './engine.ts';
import { EngineWatch } from './watch.ts';

/** A store far away, or one with a large bucket, takes seconds for a list and still serves. */
const PING_MS = 5000;
const EXAMINE_MS = 10_000;
const STEP_MS = 2000;

/** The store refused; its status and code. */
class ObjectsRefusal extends Error {
  override readonly name = 'ObjectsRefusal';

  constructor(
    private readonly method: string,
    readonly status: number,
    private readonly code: string,
    region: string,
  ) {
    const where = region === '' ? '' : ` (the bucket is in the region ${region})`;
    super(`HTTP ${status}${code === '' ? '' : ` ${code}`}${where}`);
  }

  get isNotThere(): boolean {
    return this.code === 'NoSuchKey';
  }

  /** Every call would be refused until the configuration or the store is mended: one that only reads is of no use. */
  get isForAll(): boolean {
    const { method, status, code } = this;
    // Some stores say AccessDenied of an object that is not there.
    const isHidden = status === 403 && method !== 'PUT' && (code === '' || code === 'AccessDenied');
    return !(isHidden || OF_ONE_STATUSES.has(status) || OF_ONE.has(code));
  }
}

/** Refusals of one object. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const OF_ONE: ReadonlySet<string> = new Set([
  'NoSuchKey',
  'KeyTooLongError',
  'EntityTooLarge',
  'InvalidObjectState',
]);
/** The same from a proxy before the store: too large, and a range that is not there. */
const OF_ONE_STATUSES: ReadonlySet<number> = new Set([413, 416]);

export class ObjectStore implements Objects {
  readonly #address: ObjectsAddress;
  readonly #watch: EngineWatch;
  readonly #client = new MadeOnce(async () => {
    const { AwsClient } = await import('aws4fetch');
    const { region, accessKeyId, secretAccessKey, sessionToken } = this.#address;
    return new AwsClient({
      accessKeyId,
      secretAccessKey: secretAccessKey.reveal(),
      ...(sessionToken !== undefined && { sessionToken: sessionToken.reveal() }),
      service: 's3',
      region,
      retries: 0,
    });
  });

  constructor(address: ObjectsAddress, onChange: (state: EngineState) => void) {
    this.#address = address;
    this.#watch = new EngineWatch({
      name: 'objects',
      ping: () => this.#list('', '', PING_MS, 1),
      pingDeadlineMs: PING_MS,
      isAway: (thrown) => !(thrown instanceof ObjectsRefusal) || thrown.isForAll,
      onChange,
    });
  }

  get state(): EngineState {
    return this.#watch.state;
  }

  put(key: string, body: Uint8Array, deadlineMs: number): Promise<void> {
    return this.#watch.use(deadlineMs, async () => {
      await this.#send('PUT', key, deadlineMs, { body });
    });
  }

  get(
    key: string,
    range: readonly [number, number] | undefined,
    deadlineMs: number,
  ): Promise<Uint8Array | undefined> {
    return this.#watch.use(deadlineMs, async () => {
      const headers =
        range === undefined ? undefined : { range: `bytes=${range[0]}-${range[1] - 1}` };
      try {
        const answer = await this.#send('GET', key, deadlineMs, headers && { headers });
        return new Uint8Array(await answer.arrayBuffer());
      } catch (thrown) {
        if (thrown instanceof ObjectsRefusal && thrown.isNotThere) return undefined;
        throw thrown;
      }
    });
  }

  list(prefix: string, after: string, deadlineMs: number): Promise<readonly ObjectInfo[]> {
    return this.#watch.use(deadlineMs, () => this.#list(prefix, after, deadlineMs));
  }

  remove(key: string, deadlineMs: number): Promise<void> {
    return this.#watch.use(deadlineMs, async () => {
      try {
        await this.#send('DELETE', key, deadlineMs);
      } catch (thrown) {
        // Most stores say of such an object that it is removed.
        if (!(thrown instanceof ObjectsRefusal && thrown.isNotThere)) throw thrown;
      }
    });
  }

  open(): Promise<void> {
    return this.#watch.open();
  }

  examine(): Promise<readonly EngineFinding[]> {
    return this.#watch.use(EXAMINE_MS, async () => {
      const key = `doctor-${crypto.randomUUID()}`;
      const body = crypto.getRandomValues(new Uint8Array(64));
      const times: number[] = [];
      const timed = async <T>(work: () => Promise<T>): Promise<T> => {
        const began = performance.now();
        const result = await work();
        times.push(performance.now() - began);
        return result;
      };
      const put = await timed(() => this.#send('PUT', key, STEP_MS, { body }));
      const skew = Date.parse(put.headers.get('date') ?? '') - Date.now();
      const back = await timed(() => this.#send('GET', key, STEP_MS));
      const same = Buffer.from(await back.arrayBuffer()).equals(body);
      const listed = (await timed(() => this.#list('doctor-', '', STEP_MS))).some(
        (one) => one.key === key,
      );
      await timed(() => this.#send('DELETE', key, STEP_MS));
      const { bucket, prefix } = this.#address;
      const where = `${bucket}/${prefix}`;
      return [
        same && listed
          ? finding('ok', `objects in ${where} can be written, read, listed and removed`)
          : finding('fail', `an object in ${where} was written and is not there`),
        ...(Number.isNaN(skew) ? [] : [clockFinding(skew, 1000)]),
        latencyFinding(times),
      ];
    });
  }

  async close(): Promise<void> {
    this.#watch.close();
  }

  async #list(
    prefix: string,
    after: string,
    deadlineMs: number,
    most?: number,
  ): Promise<readonly ObjectInfo[]> {
    const own = this.#address.prefix;
    const query = new URLSearchParams({ 'list-type': '2', prefix: own + prefix });
    if (after !== '') query.set('start-after', own + after);
    if (most !== undefined) query.set('max-keys', `${most}`);
    const answer = await this.#send('GET', undefined, deadlineMs, { query: `?${query}` });
    const text = await answer.text();
    if (!text.includes('<ListBucketResult')) throw new Error(FOREIGN);
    return contentsOf(text).map(({ key, bytes }) => ({
      key: key.slice(own.length),
      bytes,
    }));
  }

  /** @throws ObjectsRefusal, or the network's error */
  async #send(
    method: string,
    key: string | undefined,
    deadlineMs: number,
    more: { body?: Uint8Array; headers?: Record<string, string>; query?: string } = {},
  ): Promise<Response> {
    const { bucket, prefix, endpoint } = this.#address;
    const path =
      key === undefined ? '' : `/${(prefix + key).split('/').map(encodeURIComponent).join('/')}`;
    const client = await this.#client.get();
    const answer = await client
      .fetch(`${endpoint}/${bucket}${path}${more.query ?? ''}`, {
        method,
        // The signature is for this host alone, and so are the bodies.
        redirect: 'manual',
        signal: AbortSignal.timeout(deadlineMs),
        ...(more.headers !== undefined && { headers: more.headers }),
        ...(more.body !== undefined && { body: more.body as Uint8Array<ArrayBuffer> }),
      })
      .catch(refuseToConnect);
    const { headers, status } = answer;
    if (answer.ok) {
      const mayLackTag = method === 'DELETE' || key === undefined;
      if (mayLackTag || headers.has('etag')) return answer;
      throw new Error(FOREIGN);
    }
    const text = await answer.text();
    const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1] ?? '';
    const its = headers.get('x-amz-bucket-region') ?? /<Region>([^<]{1,40})</.exec(text)?.[1] ?? '';
    throw new ObjectsRefusal(method, status, code, /^[\w-]{1,40}$/.test(its) ? its : '');
  }
}

/** A proxy or another server says 200 to everything: what it got is not stored, what it lists is not all. */
const FOREIGN = 'the answer is not that of an object store: look at its endpoint';

/** The runtime asks in its message whether the computer can reach the URL; the code says more. */
function refuseToConnect(thrown: unknown): never {
  const { code } = thrown as { code?: unknown };
  if (typeof code !== 'string') throw thrown;
  throw new Error(`the object store cannot be reached (${code})`, { cause: thrown });
}

function contentsOf(xml: string): readonly ObjectInfo[] {
  return xml
    .split('<Contents>')
    .slice(1)
    .map((part) => ({
      key: readEntities(between(part, '<Key>', '</Key>')),
      bytes: Number(between(part, '<Size>', '</Size>')),
    }));
}

function between(text: string, open: string, close: string): string {
  const start = text.indexOf(open);
  const end = text.indexOf(close, start);
  return start < 0 || end < 0 ? '' : text.slice(start + open.length, end);
}
