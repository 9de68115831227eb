/** Pictures of a request: taken from its body in the browser, shown as an image and never as a document. */

import { useLayoutEffect, useState } from 'preact/hooks';
import type { Json } from '../../../lib/json/json.ts';
import { valueAt } from '../../../lib/json/pointer.ts';
import { t } from '../kit/language.ts';
import { parsedBody } from './bodies.ts';

/** Kinds that browsers show without running anything. */
const SAFE = /^image\/(?:png|jpeg|gif|webp)$/;

/** The value at a place of a body that was loaded for the pictures of one view. */
export type PictureSource = (at: string) => Promise<Json | undefined>;

/** Loads a body once, when the first picture of it is drawn. */
export function picturesOf(id: string, stage: string): PictureSource {
  let body: Promise<Json | undefined> | undefined;
  return async (at) => {
    body ??= parsedBody(id, stage, false).then(
      ({ value }) => value,
      () => undefined,
    );
    const value = await body;
    return value === undefined ? undefined : valueAt(value, at);
  };
}

/** The longest text inside a block: its content. */
function contentOf(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value)
    .map((one) => contentOf(one as Json))
    .reduce((longest, one) => (one.length > longest.length ? one : longest), '');
}

interface PictureProps {
  readonly source: PictureSource;
  readonly at: string;
  readonly mime: string;
}

/** The picture at this place of the body, where there is one. */
export function Picture({ source, at, mime }: PictureProps) {
  const [url, setUrl] = useState<string>();
  useLayoutEffect(() => {
    let made: string | undefined;
    const load = async () => {
      const content = contentOf(await source(at)).replace(/^data:[^,]{0,200},/, '');
      const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
      made = URL.createObjectURL(new Blob([bytes], { type: mime }));
      setUrl(made);
    };
    // Where it is not base64, its kind and size are shown beside it.
    if (SAFE.test(mime)) load().catch(() => {});
    return () => {
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [source, at, mime]);
  return url === undefined ? null : <img src={url} alt={t`From the request`} />;
}
