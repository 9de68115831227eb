/** Loads bodies as JSON values, where an event stream becomes the list of its events, and shows the pictures in them. */

import { useLayoutEffect, useState } from 'preact/hooks';
import { type Json, tryParse } from '../../../lib/json/json.ts';
import { valueAt } from '../../../lib/json/pointer.ts';
import { ask, frameOf } from '../kit/fetching.ts';
import { t } from '../kit/language.ts';

/** Most bytes of a body that are loaded for a tree or a diff. */
export const MAX = 4 * 1024 * 1024;

export interface Body {
  readonly text: string;
  /** Bytes of the whole body; `text` may be only its beginning. */
  readonly bytes: number;
  readonly whole: boolean;
}

/** The beginning of a body. @param most bytes */
export async function getBody(
  id: string,
  stage: string,
  most: number,
  signal?: AbortSignal,
): Promise<Body> {
  const params = { id, stage, bytes: most };
  const response = await ask('/samples/:id/edges/:stage', { params, signal });
  const content = await response.arrayBuffer();
  const total = response.headers.get('x-hopgate-bytes');
  const bytes = total === null ? content.byteLength : Number(total);
  const text = new TextDecoder().decode(content);
  return { text, bytes, whole: content.byteLength >= bytes };
}

export interface Parsed {
  readonly body: Body;
  /** Undefined: the body is not JSON, or only its beginning was loaded. */
  readonly value: Json | undefined;
}

export async function parsedBody(
  id: string,
  stage: string,
  stream: boolean,
  signal?: AbortSignal,
): Promise<Parsed> {
  const body = await getBody(id, stage, MAX, signal);
  if (stream) return { body, value: eventsOf(body.text) };
  if (!body.whole) return { body, value: undefined };
  return { body, value: tryParse(body.text) };
}

const eventsOf = (text: string): Json =>
  text
    .replace(/\r\n?/g, '\n')
    .split('\n\n')
    .map(frameOf)
    .filter(({ data }) => data !== '')
    .map(({ event, data }) => ({ ...(event !== '' && { event }), data: tryParse(data) ?? data }));

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
