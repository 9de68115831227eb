/** Follows the `previous` links of stored responses back to the start of a conversation. */

import type { JsonObject } from '../../lib/json/json.ts';
import type { ChainLink } from './stored-response.ts';

/** An item of a chain, and the provider that knows it by its id. */
export interface ChainItem {
  readonly item: JsonObject;
  readonly keeper: string | undefined;
}

/** All items, oldest first, or the id of the missing link. */
export type Chain =
  | {
      readonly items: readonly JsonObject[];
      readonly links: number;
      /** The items for a provider: without the references that only another provider can resolve. */
      itemsFor(provider: string | undefined): readonly JsonObject[];
    }
  | { readonly missing: string };

/**
 * The input and output items of every link up to and including `id`, oldest first. A link that comes
 * twice (in a damaged file) counts as missing, so the walk always ends. Yields after every link, so that
 * a long chain can be walked in steps.
 */
export function* chainSteps(
  id: string,
  read: (id: string) => ChainLink | undefined,
): Generator<void, Chain> {
  const links: ChainLink[] = [];
  const seen = new Set<string>();
  for (let at: string | undefined = id; at !== undefined; ) {
    const link: ChainLink | undefined = seen.has(at) ? undefined : read(at);
    if (link === undefined) return { missing: at };
    seen.add(at);
    links.push(link);
    at = link.previous;
    yield;
  }
  const all: ChainItem[] = [];
  for (let i = links.length - 1; i >= 0; i--) {
    const { input, output, keeper } = links[i]!;
    for (const item of input) all.push({ item, keeper: undefined });
    for (const item of output) all.push({ item, keeper });
  }
  return {
    items: all.map(({ item }) => item),
    links: links.length,
    itemsFor: (provider) =>
      all
        .filter(({ item, keeper }) => !isVendorReference(item) || (keeper ?? '') === provider)
        .map(({ item }) => item),
  };
}

/** Walks a chain in one go. */
export function walkChain(id: string, read: (id: string) => ChainLink | undefined): Chain {
  const steps = chainSteps(id, read);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Does the item only refer to content that its vendor stores? */
export const isVendorReference = ({
  type,
  id,
  encrypted_content,
  content,
  result,
}: JsonObject): boolean =>
  typeof id === 'string' &&
  ((type === 'reasoning' && !filled(encrypted_content) && !filled(content)) ||
    (type === 'image_generation_call' && !filled(result)));

const filled = (value: unknown) =>
  typeof value === 'string' ? value !== '' : Array.isArray(value) && value.length > 0;
