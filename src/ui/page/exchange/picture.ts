/** Pictures of a request: taken from its body in the browser, shown as an image and never as a document. */

import type { Json } from '../../../lib/json/json.ts';
import { h, replace } from '../kit/dom.ts';
import { parsedBody } from './bodies.ts';

/** Kinds that browsers show without running anything. */
const SAFE = /^image\/(?:png|jpeg|gif|webp)$/;

/** The bodies that were loaded for pictures of one view. */
export type PictureSource = (at: string) => Promise<Json | undefined>;

/** Loads a body once, when the first picture of it is drawn. */
export function picturesOf(id: string, stage: string, signal: AbortSignal): PictureSource {
  let body: Promise<Json | undefined> | undefined;
  return async (at) => {
    body ??= parsedBody(id, stage, false, signal).then(
      ({ value }) => value,
      () => undefined,
    );
    return valueAt(await body, at);
  };
}

function valueAt(root: Json | undefined, pointer: string): Json | undefined {
  let value = root;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replace(/~1/g, '/').replace(/~0/g, '~');
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, Json>)[name];
  }
  return value;
}

/** The longest text inside a block: its content. */
function contentOf(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value)
    .map((one) => contentOf(one as Json))
    .reduce((longest, one) => (one.length > longest.length ? one : longest), '');
}

/** Puts the picture at this place of the body into `box`, where there is one. */
export async function showPicture(
  box: HTMLElement,
  source: PictureSource,
  at: string,
  mime: string,
): Promise<void> {
  if (!SAFE.test(mime)) return;
  const content = contentOf(await source(at)).replace(/^data:[^,]{0,200},/, '');
  try {
    const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type: mime }));
    const image = h('img', { src: url, alt: 'Picture in the request' });
    image.addEventListener('load', () => URL.revokeObjectURL(url));
    replace(box, image);
  } catch {
    // Not base64: its kind and size are shown beside it.
  }
}
