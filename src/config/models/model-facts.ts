/** Facts of models: the configuration overrides the vendor's list, which overrides the models file in force. */

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelFacts } from '../../conversation/models/model-entry.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { globTest } from '../../lib/text/glob.ts';
import type { ModelPrice } from '../sections/prices.ts';
import shipped from './models.jsonl' with { type: 'file' };
import { type KnownModel, ModelsFile, type Price, verifiedText } from './models-file.ts';
import { MAX_NAME, plainName } from './names.ts';

let current: ModelsFile | undefined;
let home: string | undefined;
/** The file of the home when it was last looked at: its time and size. */
let stamp = '';

/** Read at the first question: most commands ask none. */
export const modelsFile = (): ModelsFile =>
  (current ??= fromHome() ?? new ModelsFile(shippedText()));

/** The path of the file that `hopgate models update` installs. */
export const homeModelsPath = (folder: string): string => join(folder, 'models.jsonl');

/** Answers come from the home's file, too, if it is newer than the one of the program. Looks whether it has changed. */
export function followModels(folder: string): void {
  const now = modelsStamp(folder);
  if (folder === home && now === stamp) return;
  if (stamp !== now || folder !== home) current = undefined;
  home = folder;
  stamp = now;
}

/** Which file a home has; '' for none that can be looked at. */
export function modelsStamp(folder: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(homeModelsPath(folder));
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    // The home may be another user's, or no folder.
    return '';
  }
}

/** A file that cannot be used is as none; `hopgate doctor` tells why. */
function fromHome(): ModelsFile | undefined {
  if (home === undefined || stamp === '') return undefined;
  const kept = keptModels(home);
  if (typeof kept === 'string' || kept === undefined) return undefined;
  return kept.date >= dateOf(shippedText()) ? kept : undefined;
}

/** The file in a home; a text: why it cannot be used; undefined: there is none. */
export function keptModels(folder: string): ModelsFile | string | undefined {
  let signed: string;
  try {
    signed = readFileSync(homeModelsPath(folder), 'utf8');
  } catch (error) {
    return (error as { code?: string }).code === 'ENOENT' ? undefined : 'it cannot be read';
  }
  const text = verifiedText(signed);
  return text === undefined ? 'its signature is not that of a release' : new ModelsFile(text);
}

const dateOf = (text: string): string =>
  (JSON.parse(text.slice(0, text.indexOf('\n'))) as { date: string }).date;

/** The text of the file that comes with the program. */
export const shippedText = (): string => readFileSync(shipped, 'utf8');

/** From now on this file answers; undefined: the one that comes with the program. */
export function useModelsFile(file: ModelsFile | undefined): void {
  current = file;
}

const isName = (model: string): boolean => model.length <= MAX_NAME;

/** A model at this very vendor. */
export const modelAt = (vendor: string | undefined, model: string): KnownModel | undefined =>
  vendor !== undefined && isName(model) ? modelsFile().at(vendor, model) : undefined;

/** The newest of a family, for a model of it that is newer than the file and that nothing is known of. */
export function predecessorOf(vendor: string | undefined, model: string): KnownModel | undefined {
  if (vendor === undefined || !isName(model)) return undefined;
  const file = modelsFile();
  return file.at(vendor, model) === undefined
    ? (file.predecessor(model, vendor) ?? file.predecessor(model))
    : undefined;
}

/**
 * What is known of a model: by the vendor that serves it, or else by any other, its maker first, or else of its
 * predecessor. Undefined for names that the file does not have.
 * @param vendor `ProviderConfig.vendor`
 * @param model as the vendor spells it; with or without a date, in any case
 */
export function modelFacts(vendor: string | undefined, model: string): ModelFacts | undefined {
  if (!isName(model)) return undefined;
  const file = modelsFile();
  const known = file.at(vendor, model) ?? file.anywhere(model);
  if (known !== undefined) return known.facts;
  const before = predecessorOf(vendor, model);
  return before && { ...before.facts, name: model };
}

/** Facts of a model at exactly this vendor. */
export const vendorFacts = (vendor: string | undefined, model: string): ModelFacts | undefined =>
  (modelAt(vendor, model) ?? predecessorOf(vendor, model))?.facts;

/** The least prompt tokens that its vendor's cache keeps; undefined where it is not known. */
export function leastCacheLength(vendor: string | undefined, model: string): number | undefined {
  if (!isName(model)) return undefined;
  const file = modelsFile();
  const known = file.at(vendor, model);
  return (
    known?.leastCache ??
    file.anywhere(model)?.leastCache ??
    (known === undefined ? file.predecessor(model)?.leastCache : undefined)
  );
}

/** The parts of a provider that say what its models are and cost. */
interface CatalogueProvider {
  /** Its name in the file of models. */
  readonly vendor?: string | undefined;
  readonly prices: readonly ModelPrice[];
  /** Of single models, from the configuration. */
  readonly facts: Readonly<Record<string, ModelFacts>>;
}

/**
 * What is known of a provider's model: what the configuration says, then what the vendor lists, then the file of
 * models. Undefined where nothing is.
 * @param listed what the vendor said last in its own list
 */
export function factsOf(
  provider: Pick<CatalogueProvider, 'vendor' | 'facts'>,
  model: string,
  listed?: ModelFacts,
): ModelFacts | undefined {
  const own = memberOf(provider.facts, model);
  const known = modelFacts(provider.vendor, model);
  return own === undefined && listed === undefined ? known : { ...known, ...listed, ...own };
}

/**
 * What a model costs at a provider now: by the configuration's `prices`, or else by the file of models. Undefined where
 * neither has a price: a vendor that is not known may ask for anything.
 */
export function priceOf(
  provider: Pick<CatalogueProvider, 'vendor' | 'prices'>,
  model: string,
): Price | undefined {
  const now = Date.now();
  const own = provider.prices.find(
    (price) => price.effectiveFrom <= now && globTest(price.model)(model),
  );
  return own === undefined
    ? cataloguePrice(provider.vendor, model)
    : { ...own, source: 'configuration' };
}

/** https://huggingface.co/docs/inference-providers (`:novita`), https://openrouter.ai/docs/guides/routing/model-variants */
const TAG = /:[a-z][a-z0-9-]{0,40}$/i;
const OTHER_PRICE = /:(?:free|batch)$/i;

/** The price of a model, or of the one that it is most like, in the models file. */
export function cataloguePrice(vendor: string | undefined, model: string): Price | undefined {
  const known = modelAt(vendor, model);
  if (known !== undefined) return known.price;
  // A model that its host gives away would be billed at its family's price.
  if (vendor === undefined || !isName(model) || OTHER_PRICE.test(model)) return undefined;
  const file = modelsFile();
  // Behind its name stands who serves it, or how: about the same price.
  const before = (file.at(vendor, model.replace(TAG, '')) ?? file.predecessor(model, vendor))
    ?.price;
  return before && { ...before, source: 'family' };
}

/** The day of the file's data, `2026-11-26`. */
export const modelsDate = (): string => modelsFile().date;

/**
 * What is known of a name's family: of the predecessor of a model that is newer than the file, else the lowest window
 * and output cap of the models whose names begin as this one does; undefined for a family that is not known.
 */
export function familyFacts(model: string): Pick<ModelFacts, 'context' | 'output'> | undefined {
  if (!isName(model)) return undefined;
  const file = modelsFile();
  const before = file.predecessor(model)?.facts;
  if (before?.context !== undefined) return { context: before.context, output: before.output };
  for (let name = plainName(model); /-|\d/.test(name); name = withoutLast(name)) {
    const own = file.anywhere(name)?.facts;
    if (own?.context !== undefined) return { context: own.context, output: own.output };
    const family = [...file.beginningWith(`${name}-`)].filter(({ facts }) => facts.tools);
    const least = (key: 'context' | 'output') =>
      Math.min(...family.map(({ facts }) => facts[key] ?? Number.POSITIVE_INFINITY));
    const context = least('context');
    if (Number.isFinite(context)) {
      const output = least('output');
      return { context, ...(Number.isFinite(output) && { output }) };
    }
  }
  return undefined;
}

const withoutLast = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf('-')));
