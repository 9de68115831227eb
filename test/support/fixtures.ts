/** The recorded provider exchanges beside the checkout; tests that need them skip visibly when they are absent. */

import { test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { type JsonObject, parseJson } from '../../src/lib/json/json.ts';

const SHARED = new URL('../../../shared/', import.meta.url);
const FIXTURES = new URL('fixtures/', SHARED);
const CAPTURES = new URL('captures/', SHARED);

/** One recorded response, as the index describes it. */
export interface Fixture {
  readonly file: string;
  readonly provider: string;
  readonly protocol: string;
  readonly kind: 'sse' | 'json' | 'jsonl';
  readonly bytes: number;
  readonly status: number | null;
  readonly model: string;
  readonly features: readonly string[];
  /** File of the request's body, if the source had it. */
  readonly request: string | null;
  /** `raw` | `reserialised-json` | `sse-reconstructed` */
  readonly wire: string;
  readonly anomalies: readonly string[];
  readonly synthetic_suspect: boolean;
  /** `ok`, or the error of the official SDK's stream accumulator. */
  readonly sdk_accumulator: string | null;
}

/** One constructed case of tool calls leaked as text. */
export interface LeakCase {
  readonly id: string;
  readonly family: string;
  readonly text: string;
  readonly reasoning?: string;
  readonly tools?: readonly JsonObject[];
  readonly expect: JsonObject;
  readonly chunks: readonly string[];
}

/** Whether the recorded exchanges are available. */
export const haveFixtures = existsSync(new URL('index.json', FIXTURES));
/** Whether the captured client requests are available. */
export const haveCaptures = existsSync(new URL('codex/', CAPTURES));
/** For names of tests over recordings: says where they are left out, and why. */
export const unlessRecorded = haveFixtures
  ? ''
  : ' (SKIPPED: the recorded exchanges are not beside this checkout)';

let index: readonly Fixture[] | undefined;

/** The recorded exchanges that pass the filter `keep`; none if the recordings are absent. */
export function fixtures(keep: (fixture: Fixture) => boolean = () => true): readonly Fixture[] {
  if (!haveFixtures) return [];
  index ??= JSON.parse(readFileSync(new URL('index.json', FIXTURES), 'utf8')) as Fixture[];
  return index.filter(keep);
}

/** The response's body, or another file of the recordings. */
export function fixtureBytes(file: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(file, FIXTURES)));
}

export const fixtureText = (file: string): string => readFileSync(new URL(file, FIXTURES), 'utf8');

/** The body of the request behind a recorded response; undefined where it was not recorded. */
export function fixtureRequest(fixture: Fixture): JsonObject | undefined {
  if (fixture.request === null) return undefined;
  return JSON.parse(readFileSync(new URL(fixture.request, FIXTURES), 'utf8')) as JsonObject;
}

/** The constructed leak cases; none if absent. */
export function leakCases(): readonly LeakCase[] {
  if (!existsSync(new URL('leaks/cases.json', FIXTURES))) return [];
  return JSON.parse(readFileSync(new URL('leaks/cases.json', FIXTURES), 'utf8')) as LeakCase[];
}

/** One captured request of a real client. Long strings are cut and end in `…[length]`. */
export interface Capture {
  /** `client/variant/file` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: JsonObject;
}

/** The captured requests of a client (`codex`, `claude-code`, …), or of all; none if absent. */
export function captures(client = '.'): readonly Capture[] {
  if (!haveCaptures) return [];
  const folder = new URL(`${client}/`, CAPTURES);
  const files = [...new Bun.Glob('**/*.json').scanSync({ cwd: Bun.fileURLToPath(folder) })].sort();
  return files.map((file) => ({
    ...(parseJson(readFileSync(new URL(file, folder), 'utf8')) as unknown as Capture),
    name: `${client}/${file}`,
  }));
}

/** A test over recorded material; without the material, a visibly skipped one. */
export function fixtureTest(name: string, run: () => void | Promise<void>, timeout?: number): void {
  if (haveFixtures && haveCaptures) test(name, run, timeout);
  else test.skip(`SKIPPED, recorded exchanges not found beside the checkout: ${name}`, run);
}
