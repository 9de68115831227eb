/** Cuts recalled texts to what a prompt has room for: passages around the words of the question. */

import type { RecalledEvent } from '../../../conversation/memory.ts';
import { estimatedTokens } from '../../../conversation/usage.ts';
import { queryTerms } from './terms.ts';

/** Tokens of an event beside its text: id, time, source, and the signs around them. */
const AROUND = 30;
/** Tokens of text that each event keeps if there is room. */
const MIN = 90;
/** Characters within which a passage begins or ends with a sentence. */
const SLACK = 60;
/** Places of a word that are looked at. */
const MAX_PLACES = 200;
/** The end of a longer word may differ; a shorter one is looked for as it is. */
const LONG_WORD = 5;

const tokensOf = (text: string) => estimatedTokens(Buffer.byteLength(text));

/**
 * The first events that fit, their long texts cut around what the question asks for. The first event is always there,
 * and has what the others leave.
 * @param maxTokens of all events together; 0: no limit
 */
export function withinTokens(
  events: readonly RecalledEvent[],
  query: string,
  maxTokens: number,
): readonly RecalledEvent[] {
  if (maxTokens === 0) return events;
  const sizes = events.map(({ text }) => tokensOf(text));
  const needed = sizes.map((size) => AROUND + Math.min(size, MIN));
  let count = 0;
  for (let sum = 0; count < events.length; count++) {
    sum += needed[count]!;
    if (sum > maxTokens && count > 0) break;
  }
  let left = maxTokens - needed.slice(0, count).reduce((sum, one) => sum + one, 0);
  const words = wordsOf(query);
  return events.slice(0, count).map((event, at) => {
    const room = Math.max(1, needed[at]! - AROUND + left);
    left -= Math.max(0, Math.min(room, sizes[at]!) - (needed[at]! - AROUND));
    if (sizes[at]! <= room) return event;
    const bytesPerCharacter = Buffer.byteLength(event.text) / event.text.length;
    const characters = Math.floor((room * 4) / bytesPerCharacter);
    return { ...event, text: passageOf(event.text, words, characters), excerpt: true };
  });
}

/** Beginnings of the words that are asked for, as they stand in texts. */
const wordsOf = (query: string): readonly string[] =>
  queryTerms(query).map((term) =>
    /^[a-z]+$/.test(term) && term.length > LONG_WORD ? term.slice(0, -1) : term,
  );

/** A part of a text, of this many characters, where most of the words stand. */
export function passageOf(text: string, words: readonly string[], characters: number): string {
  if (text.length <= characters) return text;
  const lower = text.toLowerCase();
  const places: (readonly [place: number, word: number])[] = [];
  // A text whose lower case has another length has its words elsewhere.
  if (lower.length === text.length) {
    words.forEach((word, at) => {
      let place = lower.indexOf(word);
      for (let found = 0; place >= 0 && found < MAX_PLACES; found++) {
        places.push([place, at]);
        place = lower.indexOf(word, place + word.length);
      }
    });
  }
  places.sort(([a], [b]) => a - b);
  const middle = bestMiddle(places, words.length, characters);
  const from = Math.max(0, Math.min(text.length - characters, Math.round(middle - characters / 2)));
  return trimmed(text, from, from + characters);
}

/** The middle of the words where most different ones stand within so many characters, the rarest first. */
function bestMiddle(
  places: readonly (readonly [number, number])[],
  words: number,
  characters: number,
): number {
  const often = new Array<number>(words).fill(0);
  for (const [, word] of places) often[word]!++;
  const inside = new Array<number>(words).fill(0);
  let worth = 0;
  let best = 0;
  let middle = 0;
  let first = 0;
  for (const [place, word] of places) {
    if (inside[word]!++ === 0) worth += 1 / often[word]!;
    while (place - places[first]![0] > characters * 0.8) {
      const [, gone] = places[first++]!;
      if (--inside[gone]! === 0) worth -= 1 / often[gone]!;
    }
    if (worth <= best + 1e-9) continue;
    best = worth;
    middle = (places[first]![0] + place) / 2;
  }
  return middle;
}

const ENDS = /[.!?。！？\n]/;

/** The part, moved to the beginning and the end of sentences where these are near, otherwise to gaps between words. */
function trimmed(text: string, from: number, to: number): string {
  let start = from;
  if (from > 0) {
    const near = text.slice(from, from + SLACK);
    const end = near.search(ENDS);
    const blank = near.indexOf(' ');
    start = from + (end >= 0 ? end + 1 : blank >= 0 ? blank + 1 : 0);
  }
  let stop = to;
  if (to < text.length) {
    const near = text.slice(Math.max(start, to - SLACK), to);
    let end = near.length - 1;
    while (end >= 0 && !ENDS.test(near[end]!)) end--;
    const blank = near.lastIndexOf(' ');
    stop = to - near.length + (end >= 0 ? end + 1 : blank > 0 ? blank : near.length);
  }
  const passage = text.slice(start, stop).toWellFormed().replaceAll('\ufffd', '').trim();
  return `${start > 0 ? '… ' : ''}${passage}${stop < text.length ? ' …' : ''}`;
}
