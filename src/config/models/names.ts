/** Names of models: what differs between vendors, versions, and the family that a name belongs to. */

/** The longest name that is looked up: clients choose them. */
export const MAX_NAME = 256;

/** `-20250929`, `-2025-09-29`, `@20250929`, `@default`, `-latest`: what marks a version of the same model. */
const VERSION = /(?:-20\d{6}|-20\d{2}-\d{2}-\d{2}|-latest|@[a-z0-9]+)$/;
const REGION = /^(?:us|eu|apac|jp|au|in|global|us-gov)\./;

export const withoutRegion = (id: string): string => id.replace(REGION, '');

/** The name without what marks a version, and without the region of a cloud before it. */
export const withoutVersion = (id: string): string => withoutRegion(id.replace(VERSION, ''));

const MAKER =
  /^(?:anthropic|amazon|meta|mistral|cohere|deepseek|openai|qwen|google|minimax|moonshotai?|nvidia|writer|xai|zai)\./;
const RELEASE = /-v\d(?::\d)?$/;

const ownName = (id: string): string => withoutRegion(id).replace(MAKER, '').replace(RELEASE, '');

/** Bedrock's name as its answers say it, without region, maker and release; undefined: it has no maker. */
export const answerName = (id: string): string | undefined =>
  MAKER.test(withoutRegion(id)) ? ownName(id) : undefined;

/**
 * Parts of a name that may differ while the model, and so its price, is the same:
 * - the collection of Google's models
 * - the profile of Bedrock that leads to it (https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-use.html)
 * - how its host is chosen (https://openrouter.ai/docs/guides/routing/model-variants, https://huggingface.co/docs/inference-providers)
 * - SiliconFlow's paid tier: the models that the file has under both names have one price
 * - whose it is, where OpenAI tuned it; all cost the same
 */
const AROUND: readonly (readonly [RegExp, string])[] = [
  [/^(?:publishers\/[a-z0-9-]+\/)?models\//, ''],
  [/^pro\//, ''],
  [/^arn:aws[a-z-]*:bedrock:[^/]*\//, ''],
  [/(?::(?:nitro|floor|exacto|online|fastest|cheapest|preferred)){1,4}$/, ''],
  [/^(ft:[^:]+):.*$/, '$1'],
];

/** The name without what stands around it; see {@link AROUND}. */
export const bareName = (id: string): string =>
  AROUND.reduce((name, [around, own]) => name.replace(around, own), id);

/**
 * A model's name without what differs between vendors: case, what stands before the last slash, Bedrock's region
 * and maker before it and version behind it, a tag (`:free`, `:fireworks-ai`, `:Q4_K_M`), a date, dots (`4.5` is `4-5`).
 * Ollama's `gpt-oss:120b-cloud` is `gpt-oss-120b`.
 */
export function plainName(model: string): string {
  const last = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return ownName(last)
    .replace(/:(\d{1,4}(?:\.\d)?[bt])(?:-[\w-]{1,30})?$/, '-$1')
    .replace(/:[a-z][\w-]{0,40}$/, '')
    .replace(VERSION, '')
    .replaceAll('.', '-');
}

/** What a vendor's answer may add to a name, and it is the same model: `-0613`, `-001`, `-preview-05-20`, `-1106-preview`. */
const ADDED = /^(?:-\d{3,8}|-preview|-exp)(?:-\d{2,4}|-preview|-exp)*$/;

/** These name one model: they differ only in what {@link plainName} leaves out, or in a version of it. */
export function isSameModel(a: string, b: string): boolean {
  if (a === b) return true;
  const [short, long] = [plainName(a), plainName(b)].sort((x, y) => x.length - y.length);
  return long!.startsWith(short!) && (long === short || ADDED.test(long!.slice(short!.length)));
}

/**
 * A name in parts: `claude-opus-5-5` is `claude-opus` in version 5.5. Numbers behind the word that follows a version are
 * dates and sizes.
 */
export interface FamilyName {
  /** The whole name without numbers. */
  readonly family: string;
  /** The first word: the maker's line. */
  readonly line: string;
  readonly version: readonly number[];
}

const VERSIONED = /^([a-z]*)(\d{1,2})$/;

/** @param plain a {@link plainName} */
export function familyOf(plain: string): FamilyName {
  const words: string[] = [];
  const version: number[] = [];
  let ended = false;
  for (const part of plain.split('-')) {
    const [, word = '', number] = VERSIONED.exec(part) ?? [];
    if (number === undefined || ended || (word !== '' && version.length > 0)) {
      ended ||= version.length > 0;
      words.push(part);
      continue;
    }
    if (word !== '') words.push(word);
    // `4.20` is older than `4.7`: what follows the first number is a fraction.
    version.push(version.length === 0 ? Number(number) : Number(`0.${number}`));
  }
  return { family: words.join('-'), line: words[0] ?? '', version };
}

/** Above 0: the first is newer. */
export function compareVersions(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
