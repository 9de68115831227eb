/** Google's grounding as citations, and citations as grounding: Google counts bytes of UTF-8, citations characters. */

import type { Citation } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { compact, field, list, number, object, objects, text } from '../wire.ts';

/** Sources of one answer are a few dozen at most; what a broken vendor sends beyond this is not read. */
const MAX = 1000;
/** Characters of a cited text that are repeated beside its place. */
const MAX_SEGMENT = 2000;

/**
 * The sources of `groundingMetadata`: one citation for each support and chunk, else one for each chunk.
 * @param written the answer's text, to which the supports refer; undefined: it is not known
 */
export function decodeGrounding(
  metadata: JsonObject,
  written: string | undefined,
): readonly Citation[] {
  const chunks = objects(field(metadata, 'groundingChunks')).slice(0, MAX).map(sourceOf);
  if (chunks.length === 0) return [];
  const supports = objects(field(metadata, 'groundingSupports')).slice(0, MAX);
  if (written === undefined || supports.length === 0) return chunks.filter(isNamed);
  const spans = supports.map((support) => {
    const segment = object(support.segment) ?? {};
    return {
      from: number(field(segment, 'startIndex')) ?? 0,
      to: number(field(segment, 'endIndex')) ?? 0,
      citedText: text(segment.text),
      chunks: list(field(support, 'groundingChunkIndices')) ?? [],
    };
  });
  const places = characterPlaces(
    written,
    spans.flatMap(({ from, to }) => [from, to]),
  );
  const out: Citation[] = [];
  for (const { from, to, citedText, chunks: indices } of spans) {
    for (const index of indices) {
      const source = typeof index === 'number' ? chunks[index] : undefined;
      if (source === undefined || !isNamed(source) || out.length >= MAX) continue;
      const [start, end] = [places.get(from), places.get(to)];
      const place = start === undefined || end === undefined ? {} : { start, end };
      out.push({ ...source, ...place, citedText });
    }
  }
  return out;
}

function sourceOf(chunk: JsonObject): Citation {
  const source =
    object(chunk.web) ?? object(field(chunk, 'retrievedContext')) ?? object(chunk.maps) ?? {};
  return { url: text(source.uri), title: text(source.title) };
}

const isNamed = ({ url, title }: Citation): boolean => url !== undefined || title !== undefined;

/** Character places of byte places in a text, in one pass over it. */
function characterPlaces(written: string, bytes: readonly number[]): ReadonlyMap<number, number> {
  const wanted = [...new Set(bytes)].sort((a, b) => a - b);
  const places = new Map<number, number>();
  const encoded = Buffer.from(written);
  let at = 0;
  let characters = 0;
  for (const place of wanted) {
    if (place < 0 || place > encoded.length) continue;
    characters += encoded.toString('utf8', at, place).length;
    at = place;
    places.set(place, characters);
  }
  return places;
}

/** How many searches Google made for an answer, as it bills them: different ones that are not empty (BerriAI/litellm#36377). */
export function searchesOf(metadata: JsonObject): number {
  const queries = list(field(metadata, 'webSearchQueries')) ?? [];
  return new Set(queries.filter((query) => typeof query === 'string' && query !== '')).size;
}

/** A citation with its place in the whole answer. */
export interface PlacedCitation {
  readonly citation: Citation;
  /** Characters of the answer's text. */
  readonly from: number;
  readonly to: number;
}

/**
 * Citations and searches as `groundingMetadata`; undefined if there are none.
 * @param written the whole text of the answer; undefined: it was not kept, so no places are given
 */
export function encodeGrounding(
  all: readonly PlacedCitation[],
  queries: readonly string[],
  written: string | undefined,
): JsonObject | undefined {
  const citations = all.slice(0, MAX);
  if (citations.length === 0 && queries.length === 0) return undefined;
  const chunks: JsonObject[] = [];
  const indices = new Map<string, number>();
  const supports: Json[] = [];
  const places =
    written &&
    bytePlaces(
      written,
      citations.flatMap(({ from, to }) => [from, to]),
    );
  for (const { citation, from, to } of citations) {
    const uri = citation.url ?? '';
    const key = `${uri} ${citation.title ?? ''}`;
    let index = indices.get(key);
    if (index === undefined) {
      index = chunks.length;
      indices.set(key, index);
      chunks.push({ web: compact({ uri: citation.url, title: citation.title }) });
    }
    if (!places || written === undefined) continue;
    const segment = {
      startIndex: places.get(from) ?? 0,
      endIndex: places.get(to) ?? 0,
      text: written.slice(from, Math.min(to, from + MAX_SEGMENT)),
    };
    supports.push({ segment, groundingChunkIndices: [index] });
  }
  return compact({
    webSearchQueries: queries.length > 0 ? queries : undefined,
    groundingChunks: chunks.length > 0 ? chunks : undefined,
    groundingSupports: supports.length > 0 ? supports : undefined,
  });
}

/** Byte places of character places in a text, in one pass over it. */
function bytePlaces(written: string, characters: readonly number[]): ReadonlyMap<number, number> {
  const wanted = [...new Set(characters)].sort((a, b) => a - b);
  const places = new Map<number, number>();
  let at = 0;
  let bytes = 0;
  for (const place of wanted) {
    bytes += Buffer.byteLength(written.slice(at, place));
    at = place;
    places.set(place, bytes);
  }
  return places;
}
