/** Types of a recorded exchange: its meta file, its row in lists, filters, statistics and the store that holds samples. */

import type { EntryName } from '../conversation/models/endpoint-names.ts';
import type { Note } from '../conversation/notes.ts';
import type { ProtocolName } from '../conversation/types.ts';
import type { Usage } from '../conversation/usage.ts';
import type { JsonObject } from '../lib/json/json.ts';
import type { Steps } from '../lib/loop/steps.ts';

/** A tool that this gateway ran. Times in ms. */
export interface ToolRun {
  readonly name: string;
  /** The hop that asked for it; left out: it ran before the first hop. */
  readonly hop?: number;
  readonly arguments?: string;
  readonly result?: string;
  readonly error?: string;
  /** `performance.now()` when it began; left out: it has just ended. */
  readonly started?: number;
  readonly ms?: number;
}

/** `open`: still running; `cut`: the process that recorded it died before the end; `done`: complete. */
export type SampleState = 'open' | 'cut' | 'done';

/**
 * One body on disk. Names of stages: `client-request`, `provider-request`, `provider-response`,
 * `provider-error`, `client-response`; those of later hops begin with `hop2-` and so on, those of
 * tries that did not count with `try1-` (`hop2-try1-provider-request`).
 */
export interface SampleStage {
  readonly stage: string;
  /** File name beside the meta file. */
  readonly file: string;
  readonly bytes: number;
  /** Number of credentials masked in the body. */
  readonly masked?: number;
  /** Of requests and responses at a vendor; both count from 1. */
  readonly hop?: number;
  readonly try?: number;
  /** Start and end, in milliseconds since the exchange began. */
  readonly at?: number;
  readonly until?: number;
  /** Of a request: when its new connection was established; left out where a kept connection was used. */
  readonly connected?: number;
  /** Of an answer: when the first byte of its body arrived; `at` is when its head arrived. */
  readonly first?: number;
  /** Of a stream, when its bytes arrived: `ms:byte ms:byte …`, each pair the time of the bytes from that offset on. */
  readonly pace?: string;
  readonly protocol?: ProtocolName;
  readonly target?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
  readonly error?: SampleError;
  /** The body on disk is incomplete: the process died, or the body was too large. */
  readonly cut?: boolean;
  /** There was no answer: this gateway wrote the body, which says why. */
  readonly made?: boolean;
}

export interface SampleError {
  readonly kind: string;
  readonly message: string;
  readonly status?: number;
  readonly code?: string;
}

/** A tool that the gateway ran. */
export interface SampleToolRun extends Omit<ToolRun, 'started'> {
  /** When it began, in milliseconds since the exchange began. */
  readonly at?: number;
}

/** The content of `…_meta.json`. */
export interface SampleMeta {
  readonly id: string;
  readonly entry: EntryName;
  readonly state: SampleState;
  /** The process that writes it, while it is open. */
  readonly run?: string;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly model?: string;
  /** `provider/model` of the try that counted. */
  readonly target?: string;
  readonly provider_protocol?: ProtocolName;
  readonly route?: string;
  readonly status?: number;
  readonly stream?: boolean;
  readonly error?: SampleError;
  readonly tries?: number;
  readonly hops?: number;
  readonly first_byte_ms?: number;
  readonly total_ms?: number;
  readonly usage?: Usage;
  readonly notes: readonly Note[];
  readonly session?: string;
  /** The memory space that the conversation used; erasing the space removes the sample. */
  readonly memory_space?: string;
  readonly owner?: string;
  /** The client's address; `**` where texts or images are blanked as well. */
  readonly address?: string;
  /** The query string of the client's request. */
  readonly search?: string;
  /** Credentials masked in all files, this one included. */
  readonly masked: number;
  readonly edges: readonly SampleStage[];
  readonly tools?: readonly SampleToolRun[];
  /** Texts or images were blanked as well: `texts`, `images`. */
  readonly redacted?: readonly string[];
  /** What the sample is for, where a command made it. */
  readonly about?: string;
  /** Its bodies are in the shared object store; here they may be missing. */
  readonly object?: SharedBodies;
  /** The command that made the exchange; left out: it is a client's. */
  readonly made_by?: MadeBy;
}

/** Where the object store has the bodies of a sample: one after the other, cut into parts. */
export interface SharedBodies {
  /** Each part has its number behind it: `KEY/0`, `KEY/1` … */
  readonly key: string;
  readonly parts: number;
  /** Bytes of each body, in the order of `edges`. */
  readonly sizes: readonly number[];
}

/** Commands that store exchanges of their own. */
export type MadeBy = 'bisect';

/** Nginx' status for a client that left before its answer ended: no failure. */
export const CLIENT_LEFT = 499;

/** Whether an exchange with this status and error ended because its client left; a vendor may say 499 as well. */
export const clientLeft = (
  status: number | undefined,
  error: Pick<SampleError, 'kind'> | undefined,
): boolean => status === CLIENT_LEFT && (error === undefined || error.kind === 'timeout');

/** What a list shows of a sample. */
export interface SampleRow {
  readonly id: string;
  readonly entry: EntryName;
  readonly state: SampleState;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly model: string;
  readonly target: string;
  readonly status: number;
  /** The error's kind, '' when nothing failed. */
  readonly error: string;
  /** Something failed, even if only a try that did not count. */
  readonly failed: boolean;
  readonly stream: boolean;
  readonly tries: number;
  readonly hops: number;
  /** `name` or `name=count`, comma-separated. */
  readonly notes: string;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  /** Parts of the input: read from the vendor's cache, written to it, and written to it for one hour. */
  readonly cached_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly cache_write_1h_tokens: number | null;
  /** Part of the output. */
  readonly reasoning_tokens: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  readonly session: string;
  /** Name of the gateway key of the request, '' without keys. */
  readonly owner: string;
  /** `Claude Code`, `Codex`, `OpenAI SDK`, … by the user agent; '' without one. */
  readonly client: string;
  readonly memory_space?: string;
  /** The command that made it, '' for a client's. */
  readonly made_by: MadeBy | '';
  /** Size of all bodies. */
  readonly bytes: number;
  /** Held in the memory of this process alone; nothing of it is on disk. */
  readonly in_memory?: boolean;
}

/**
 * How an exchange ended. `unfinished`: its process died. `left`: the client did not wait. `cut`: a stream with a good status broke off.
 * `retried`: a later try made a failure good.
 */
export type End = 'running' | 'unfinished' | 'left' | 'cut' | 'failed' | 'retried' | 'fine';

export function endOf(
  row: Pick<SampleRow, 'state' | 'status' | 'error' | 'stream' | 'failed'>,
): End {
  const { state, status, error, stream, failed } = row;
  if (state === 'open') return 'running';
  if (state === 'cut') return 'unfinished';
  if (status === CLIENT_LEFT && error === '') return 'left';
  if (stream && status < 400 && error !== '') return 'cut';
  if (status >= 400 || error !== '') return 'failed';
  return failed ? 'retried' : 'fine';
}

/** The exchange brought no whole answer, and not because its client left. */
export const isFailure = (end: End): boolean =>
  end === 'unfinished' || end === 'cut' || end === 'failed';

/** All given conditions must hold. */
export interface SampleFilter {
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
  /**
   * `500`, `5xx`, `429,5xx`, `ok`, `failed`, `open`; `cut`: the answer ended early; `unfinished`: the
   * recording process died.
   */
  readonly status?: string;
  /** Part of the requested model's or the target's name; `*` stands for anything. */
  readonly model?: string;
  readonly note?: string;
  readonly session?: string;
  readonly entry?: string;
  readonly error?: string;
  /** Name of the gateway key whose exchanges may be seen. */
  readonly owner?: string;
  /** Name of the gateway key that is looked for. */
  readonly key?: string;
  /** Part of the client's name; `*` stands for anything. */
  readonly client?: string;
  /** Part of the target's name; `*` stands for anything. */
  readonly target?: string;
  /** `bisect`: made by this command; `traffic`: by a client. */
  readonly made?: string;
  /** At least so many milliseconds in all. */
  readonly slower?: number;
  /** At least so many USD, by `rates`. */
  readonly cost?: number;
  readonly rates?: readonly TargetRates[];
  /** Part of the id, model, target, session, error or notes. */
  readonly q?: string;
  /** Ids that fit as well as those that `q` finds. */
  readonly found?: readonly string[];
  /** Newest first when left out. */
  readonly sort?: SampleSort;
  /** What its patterns fit, once they are looked up: {@link SampleStore.named}. */
  readonly names?: FittingNames;
  /** Behind this one; `value` is its value in a sorted list. */
  readonly before?: {
    readonly time: number;
    readonly id: string;
    readonly value?: string | number;
  };
  readonly limit?: number;
}

/** Names of the index that fit the patterns of a filter, by the filter's member. */
export type FittingNames = Readonly<
  Partial<Record<'model' | 'target' | 'client' | 'note', readonly string[]>>
>;

export const SAMPLE_SORTS = [
  'time',
  'status',
  'hops',
  'tokens',
  'out',
  'cached',
  'first',
  'total',
  'bytes',
  'cost',
  'model',
  'target',
  'client',
  'key',
  'session',
] as const;
export type SampleSortName = (typeof SAMPLE_SORTS)[number];

export interface SampleSort {
  readonly by: SampleSortName;
  /** Smallest first; exchanges without the value come last all the same. */
  readonly up: boolean;
}

/** Picodollars (1e-12 USD, integers) for a token at a target, where the prompt has more than `above` and at most `up_to` tokens. */
export interface TargetRates {
  readonly target: string;
  readonly above: number;
  readonly up_to: number;
  readonly input: number;
  readonly cached: number;
  readonly write: number;
  readonly write_1h: number;
  readonly output: number;
  /** For the request itself. */
  readonly request: number;
}

/** One text of an exchange, for the search. */
export interface SaidText {
  readonly text: string;
  /** This exchange said it first: it stands in the new turns of the request, or in the answer. */
  readonly added: boolean;
}

/** The search in what was said. Texts that several exchanges carry are stored once. */
export interface SampleTexts {
  /** Ids whose texts are not in the index yet, oldest first. */
  unread(limit: number): readonly string[];
  /** How many exchanges of an owner, or of all, are in the index, and how many of them are not read yet. */
  progress(owner?: string): { readonly all: number; readonly unread: number };
  /** Puts the texts of an exchange into the index. */
  put(id: string, texts: readonly SaidText[]): void;
  /** The same, a piece of a text in a step. */
  putInSteps(id: string, texts: readonly SaidText[]): Generator<void, void, void>;
  /**
   * Exchanges that said all these words in one text; each is a generator step of a few milliseconds. Words are
   * parts of the text, whatever their case; those of one or two letters are beginnings of words.
   * @param owner only exchanges of this one, and nothing depends on those of others
   */
  find(words: readonly string[], owner?: string): Generator<void, FoundTexts, void>;
  /** A text by the number that {@link find} gave. */
  text(number: number): string | undefined;
}

export interface FoundTexts {
  /** Numbers of texts by the ids of the exchanges that said them. */
  readonly by: ReadonlyMap<string, number>;
  /** Older texts were not looked at: too many fit. */
  readonly partial: boolean;
}

/** Nearest-rank percentiles in milliseconds; null where nothing was measured. */
export interface SamplePercentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Is notified of exchanges while they are recorded. */
export interface SampleWatcher {
  /** A new or changed exchange. */
  row(row: SampleRow): void;
  /** Removed: too old, or not kept after all. */
  gone(ids: readonly string[]): void;
}

/** A sample as one file, for export: texts as they are, other bytes as base64. */
export interface ExportedSample {
  readonly hopgate_sample: 1;
  readonly meta: SampleMeta;
  readonly files: readonly {
    readonly stage: string;
    readonly name: string;
    readonly text?: string;
    readonly base64?: string;
  }[];
}

/** Recorded exchanges on disk, as commands and the page use them; works while a gateway writes. */
export interface SampleStore {
  readonly root: string;
  list(filter?: SampleFilter): readonly SampleRow[];
  /** The filter with the names that its patterns fit: lists with it compare no pattern. */
  named(filter: SampleFilter): Steps<SampleFilter>;
  /** All that fit, newest first, a page at a time; without those that are in memory only. */
  pages(filter: SampleFilter): Iterable<readonly SampleRow[]>;
  targets(): readonly string[];
  readonly texts: SampleTexts;
  /** By id, or by a part that only one id has. Undefined: no such sample, or several. */
  find(id: string): SampleMeta | undefined;
  /** At most `limit` samples whose ids contain this text, newest first. */
  matching(part: string, limit: number): readonly SampleRow[];
  row(meta: SampleMeta): SampleRow;
  /**
   * Fetches the bodies of a sample that another replica recorded; everything else is here already.
   * @throws GatewayError when they cannot be fetched now, or are gone
   */
  fetch(meta: SampleMeta): Promise<void>;
  /** The body of a stage; undefined when there is none. */
  read(meta: SampleMeta, stage: string): Uint8Array | undefined;
  path(meta: SampleMeta, stage: string): string;
  export(meta: SampleMeta, redact: boolean): Steps<ExportedSample>;
  /** Masks credentials once more. @throws Error for anything but an exported sample */
  import(sample: ExportedSample): SampleMeta;
  /** Removes all samples of a memory space and returns their number. */
  eraseSpace(space: string): number;
  close(): void;
}

/** A change between two bodies, with the rules that may have caused it. */
export interface ExplainedChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** JSON pointer into the first body (removed, changed) or the second (added). */
  readonly at: string;
  /** Its place in the second body, where that differs. */
  readonly to?: string;
  readonly before?: JsonObject[string];
  readonly after?: JsonObject[string];
  readonly rules: readonly string[];
}
