/** A recorded exchange in words: what its meta file holds, what lists show of it, and how it is looked up. */

import type { Note } from '../conversation/notes.ts';
import type { ProtocolName } from '../conversation/types.ts';
import type { Usage } from '../conversation/usage.ts';
import type { JsonObject } from '../lib/json/json.ts';

/** `open`: still running; `cut`: the process that recorded it died meanwhile; `done`: complete. */
export type SampleState = 'open' | 'cut' | 'done';

/**
 * One body on disk. Stages: `client-request`, `provider-request`, `provider-response`,
 * `provider-error`, `client-response`; those of later hops begin with `hop2-` and so on, those of
 * tries that did not count with `try1-` (`hop2-try1-provider-request`).
 */
export interface SampleEdge {
  readonly stage: string;
  /** File name beside the meta file. */
  readonly file: string;
  readonly bytes: number;
  /** Credentials masked in it. */
  readonly masked?: number;
  /** Of requests and responses at a vendor; both count from 1. */
  readonly hop?: number;
  readonly try?: number;
  /** Milliseconds since the exchange began: begin and end. */
  readonly at?: number;
  readonly until?: number;
  /** Of a request: the connection that was made for it stood; left out where a kept one was used. */
  readonly connected?: number;
  /** The same for the first byte of an answer's body; `at` is when its head was there. */
  readonly first?: number;
  /** Of a stream, when its bytes came: `ms:byte ms:byte …`, from that byte on at that time. */
  readonly pace?: string;
  readonly protocol?: ProtocolName;
  readonly target?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
  readonly error?: SampleError;
  /** The body on disk is shorter than it was: the process died, or it was too large. */
  readonly cut?: boolean;
  /** Nothing was answered: the body tells why, in this gateway's words. */
  readonly made?: boolean;
}

export interface SampleError {
  readonly kind: string;
  readonly message: string;
  readonly status?: number;
  readonly code?: string;
}

/** A tool that the gateway ran between two hops. */
export interface SampleToolRun {
  readonly name: string;
  /** The hop that asked for it; left out: it was run before the first one. */
  readonly hop?: number;
  readonly arguments?: string;
  readonly result?: string;
  readonly error?: string;
  /** Milliseconds since the exchange began, and how long it ran. */
  readonly at?: number;
  readonly ms?: number;
}

/** The content of `…_meta.json`. */
export interface SampleMeta {
  readonly id: string;
  readonly entry: ProtocolName;
  readonly state: SampleState;
  /** Which process writes it, while it is open. */
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
  /** The memory space that its conversation used; erasing the space removes the sample. */
  readonly memory_space?: string;
  readonly owner?: string;
  /** The query string of the client's request. */
  readonly search?: string;
  /** Credentials masked in all files, this one included. */
  readonly masked: number;
  readonly edges: readonly SampleEdge[];
  readonly tools?: readonly SampleToolRun[];
  /** Texts or images were blanked as well: `texts`, `images`. */
  readonly redacted?: readonly string[];
  /** Words of whoever made it by hand. */
  readonly about?: string;
}

/** What a list shows of a sample. */
export interface SampleRow {
  readonly id: string;
  readonly entry: ProtocolName;
  readonly state: SampleState;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly model: string;
  readonly target: string;
  readonly status: number;
  /** The error's kind, '' when nothing failed. */
  readonly error: string;
  /** Something failed, be it a try that did not count. */
  readonly failed: boolean;
  readonly stream: boolean;
  readonly tries: number;
  readonly hops: number;
  /** `name` or `name=count`, comma-separated. */
  readonly notes: string;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  /** Of the input: read from the vendor's cache, written to it, and of that for one hour. */
  readonly cached_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly cache_write_1h_tokens: number | null;
  /** Of the output. */
  readonly reasoning_tokens: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  readonly session: string;
  /** Name of the gateway key that it was made with, '' without keys. */
  readonly owner: string;
  readonly memory_space?: string;
  /** On disk, all files. */
  readonly bytes: number;
}

/** All that are given must hold; newest first. */
export interface SampleFilter {
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
  /**
   * `500`, `5xx`, `429,5xx`, `ok`, `failed`, `open`; `cut`: an answer that broke off; `unfinished`: the
   * process that recorded it died.
   */
  readonly status?: string;
  /** Part of the asked model's or the target's name; `*` stands for anything. */
  readonly model?: string;
  /** Name of a note. */
  readonly note?: string;
  readonly session?: string;
  readonly entry?: string;
  /** Kind of error. */
  readonly error?: string;
  /** Name of the gateway key. */
  readonly owner?: string;
  /** Part of the id, model, target, session, error or notes. */
  readonly q?: string;
  /** Older than this one. */
  readonly before?: { readonly time: number; readonly id: string };
  readonly limit?: number;
}

/** Sums over samples with the same `time` (a bucket) and `target`. */
export interface SampleSums {
  /** Number of the bucket, from 0. */
  readonly bucket: number;
  readonly target: string;
  readonly requests: number;
  readonly failed: number;
  /** How many of them know their tokens. */
  readonly counted: number;
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly cache_write_tokens: number;
  readonly cache_write_1h_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  /** Input tokens of those whose vendor tells of its cache. */
  readonly cacheable_tokens: number;
}

/** How often something was seen in a bucket at a target. */
export interface SampleCount {
  readonly bucket: number;
  readonly target: string;
  readonly name: string;
  readonly count: number;
}

/** Nearest-rank percentiles in milliseconds; null where nothing was measured. */
export interface SamplePercentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Which times a statistic groups by: single buckets, single targets, or all together. */
export type SampleGrouping = 'bucket' | 'target' | 'all';

/** What a folder of samples says in numbers; every question is one look into the index. */
export interface SampleStatistics {
  sums(): readonly SampleSums[];
  /** By status, kind of error, and text of notes (`name=count,…`); '' is left out. */
  counts(of: 'status' | 'error' | 'notes'): readonly SampleCount[];
  /** By number of the bucket, name of the target, or ''. */
  percentiles(
    of: 'first_byte_ms' | 'total_ms',
    by: SampleGrouping,
  ): ReadonlyMap<number | string, SamplePercentiles>;
}

/** Told of recorded exchanges while they are recorded. */
export interface SampleWatcher {
  /** New, or more is known of it. */
  row(row: SampleRow): void;
  /** No longer there: aged out, or not wanted after all. */
  gone(ids: readonly string[]): void;
}

/** What is put into a file to be carried elsewhere: texts as they are, other bytes as base64. */
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

/** Recorded exchanges on disk, as commands use them; works while a gateway writes. */
export interface SampleStore {
  readonly root: string;
  list(filter?: SampleFilter): readonly SampleRow[];
  /** Samples from `since` on in buckets of `bucketMs`; `filter` must say since and until. */
  statistics(
    filter: SampleFilter & { readonly since: number; readonly until: number },
    bucketMs: number,
  ): SampleStatistics;
  /** By id, or by the unique end or beginning of one. Undefined: no such sample. */
  find(id: string): SampleMeta | undefined;
  /** Those in whose ids this text stands, newest first, so many at most. */
  matching(part: string, limit: number): readonly SampleRow[];
  /** What a list shows of it. */
  row(meta: SampleMeta): SampleRow;
  /** The body of an edge; undefined when there is none. */
  read(meta: SampleMeta, stage: string): Uint8Array | undefined;
  /** Where the file of an edge is. */
  path(meta: SampleMeta, stage: string): string;
  export(meta: SampleMeta, redact: boolean): ExportedSample;
  /** Credentials are masked once more. @throws Error for what is no exported sample */
  import(sample: ExportedSample): SampleMeta;
  remove(meta: SampleMeta): void;
  /** Removes all samples of a memory space; how many. */
  eraseSpace(space: string): number;
  close(): void;
}

/** A change between two bodies, with the rules that may have caused it. */
export interface ExplainedChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** JSON pointer into the first body (removed, changed) or the second (added). */
  readonly at: string;
  /** Where it stands in the second body, when elsewhere. */
  readonly to?: string;
  readonly before?: JsonObject[string];
  readonly after?: JsonObject[string];
  readonly rules: readonly string[];
}
