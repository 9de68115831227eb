/** Parses configurations from texts, for the tests of this folder. */

import type { Config } from '../../src/config/config.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { describeProblem, type Problem } from '../../src/config/file/problem.ts';
import { type LoadResult, parseConfig } from '../../src/config/load.ts';

type Variables = Record<string, string>;

export const env = (variables: Variables = {}) =>
  environmentFrom({ HOME: '/home/u', ...variables });

export const parse = (text: string, variables: Variables = {}, path = '/c/hopgate.yaml') =>
  parseConfig(text, path, env(variables));

/** The configuration, or an exception that tells what is wrong with it. */
export function config(result: LoadResult): Config {
  if (!result.ok) throw new Error(result.problems.map((one) => describeProblem(one)).join('\n'));
  return result.config;
}

export const good = (text: string, variables: Variables = {}, path?: string): Config =>
  config(parse(text, variables, path));

export function bad(text: string, variables: Variables = {}): readonly Problem[] {
  const result = parse(text, variables);
  if (result.ok) throw new Error('was taken');
  return result.problems;
}

/** The least that a file can say. */
export const PROVIDER =
  'providers:\n  p: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1" }\n';
