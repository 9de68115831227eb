/** A recorded exchange in words: what its meta file holds, what lists show of it, and how it is looked up. */

import type { JsonObject } from '../lib/json.ts';
import type { Note } from './notes.ts';
import type { ProtocolName } from './types.ts';
import type { Usage } from './usage.ts';

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
  /** Milliseconds since the exchange began: first byte and last. */
  readonly at?: number;
  readonly until?: number;
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
  readonly hop?: number;
  readonly arguments?: string;
  readonly result?: string;
  readonly error?: string;
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
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  readonly session: string;
  /** On disk, all files. */
  readonly bytes: number;
}

/** All that are given must hold; newest first. */
export interface SampleFilter {
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
  /** `500`, `5xx`, `429,5xx`, `ok`, `failed`. */
  readonly status?: string;
  /** Part of the asked model's or the target's name; `*` stands for anything. */
  readonly model?: string;
  /** Name of a note. */
  readonly note?: string;
  readonly session?: string;
  readonly entry?: string;
  /** Kind of error. */
  readonly error?: string;
  readonly limit?: number;
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
export interface SampleBook {
  readonly root: string;
  list(filter?: SampleFilter): readonly SampleRow[];
  /** By id, or by the unique end or beginning of one. Undefined: no such sample. */
  find(id: string): SampleMeta | undefined;
  /** The body of an edge; undefined when there is none. */
  read(meta: SampleMeta, stage: string): Uint8Array | undefined;
  /** Where the file of an edge is. */
  path(meta: SampleMeta, stage: string): string;
  export(meta: SampleMeta, redact: boolean): ExportedSample;
  /** Credentials are masked once more. @throws Error for what is no exported sample */
  import(sample: ExportedSample): SampleMeta;
  remove(meta: SampleMeta): void;
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
