/** Keeps executed-tool records out of a streamed answer: holds what may begin one until it is clear. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Interceptor } from '../feature.ts';
import { ENVELOPE_MARK } from './envelope.ts';
import { objectEnd, withoutResidue } from './residue.ts';

// A record's first key, with or without escaped quotes. Anything else behind a brace is let through.
const KEYS = ['version', 'tool', 'arguments', 'executed', 'result', 'meta'];
const FIRST_KEY = new RegExp(`^\\{\\s*\\\\?"(${KEYS.join('|')})\\\\?"`);
/** The beginning of such a head, cut off anywhere. */
function mayBegin(text: string): boolean {
  const rest = /^\{\s*(.*)$/s.exec(text)?.[1];
  if (rest === undefined) return false;
  if (rest === '' || rest === '\\') return true;
  const name = /^\\?"([a-z]*)(\\?)$/.exec(rest)?.[1];
  return name !== undefined && KEYS.some((key) => key.startsWith(name));
}

/** Characters after which an object without the mark is taken for what the model meant to say. */
const PATIENCE = 16_384;

/** An interceptor for one answer; texts without a suspicious brace pass as the very events they were. */
export function residueInterceptor(notes: Notes): Interceptor {
  let index = -1;
  /** What waits; always begins with what may be (or is) a record, perhaps with its code fence. */
  let held = '';
  /** A fence was swallowed with its record: so is the line that closes it. */
  let fenced = false;

  /** Inside a code fence that was given out: the next fence closes it. */
  let inFence = false;

  const give = (text: string): StreamEvent[] => {
    if (text === '') return [];
    if (fencesIn(text) % 2 === 1) inFence = !inFence;
    return [{ type: 'delta', index, text }];
  };

  /** Nothing is held, and nothing of this begins a record or closes a fence. */
  const isPlain = (text: string) => held === '' && !fenced && !/[{`~]/.test(text);

  /** Gives out what is certain and keeps the rest. `last`: nothing more will come. */
  const advance = (last: boolean): StreamEvent[] => {
    let out = '';
    while (held !== '') {
      if (fenced) {
        const close = /^\s*(```|~~~)[ \t]*\n?/.exec(held);
        if (close === null && !last && /^\s*[`~]{0,2}$/.test(held)) break;
        held = close === null ? held : held.slice(close[0].length);
        fenced = false;
        continue;
      }
      const open = inFence !== (fencesIn(out) % 2 === 1);
      const start = suspect(held, last, open);
      out += held.slice(0, start);
      held = held.slice(start);
      if (held === '') break;
      const brace = held.indexOf('{');
      if (brace < 0) {
        // Only a fence so far.
        if (!last) break;
        out += held;
        held = '';
        break;
      }
      const end = objectEnd(held, brace);
      const piece = end < 0 ? held : held.slice(0, end);
      if (end < 0 && !last && undecided(held.slice(brace))) break;
      if (piece.includes(ENVELOPE_MARK) && withoutResidue(piece.slice(brace)) === '') {
        notes.add('tool_residue_removed', 'response');
        if (end < 0 && !last) break;
        fenced = brace > 0;
        held = end < 0 ? '' : held.slice(end);
        continue;
      }
      // No record: the brace goes out, and what stands behind it is looked at anew.
      out += held.slice(0, brace + 1);
      held = held.slice(brace + 1);
    }
    return give(out);
  };

  return {
    event(event) {
      switch (event.type) {
        case 'block-start':
          index = event.head.type === 'text' ? event.index : -1;
          held = '';
          fenced = false;
          inFence = false;
          return event;
        case 'delta': {
          if (event.index !== index) return event;
          if (isPlain(event.text)) return event;
          const before = held;
          held += event.text;
          // Inside a record only a brace can end it: no need to read it all again.
          if (before.includes(ENVELOPE_MARK) && !event.text.includes('}')) return [];
          const out = advance(false);
          const same =
            before === '' && held === '' && out.length === 1 && said(out[0]!) === event.text;
          return same ? event : out;
        }
        case 'block-stop': {
          if (event.index !== index || held === '') return event;
          const out = advance(true);
          return [...out, event];
        }
        default:
          return event;
      }
    },
    minds: () => (held === '' && !fenced ? '{`~' : undefined),
    passes: (event) => event.index !== index || isPlain(event.text),
    // The stream was cut inside a text block: what is certain no record was still said.
    end: () => (held === '' ? [] : advance(true)),
  };
}

const said = (event: StreamEvent) => (event.type === 'delta' ? event.text : undefined);

const undecided = (text: string) =>
  text.includes(ENVELOPE_MARK) ||
  mayBegin(text) ||
  (FIRST_KEY.test(text) && text.length < PATIENCE);

/** The index of the first place that may begin a record, its code fence included; the length where there is none. */
function suspect(text: string, last: boolean, inFence: boolean): number {
  for (let brace = text.indexOf('{'); brace >= 0; brace = text.indexOf('{', brace + 1)) {
    const rest = text.slice(brace);
    if (!FIRST_KEY.test(rest) && (last || !mayBegin(rest))) continue;
    const fence = /(```|~~~)[a-zA-Z]*\s*$/.exec(text.slice(0, brace));
    return fence === null ? brace : fence.index;
  }
  if (last) return text.length;
  const fence = /(`{1,3}|~{1,3})[a-zA-Z]*\s*$/.exec(text);
  if (fence === null || fence[0].includes('\n\n')) return text.length;
  // A fence that closes another one begins nothing.
  const closes = inFence !== (fencesIn(text.slice(0, fence.index)) % 2 === 1);
  return closes && fence[1]!.length === 3 ? text.length : fence.index;
}

const fencesIn = (text: string) => text.split('```').length - 1;
