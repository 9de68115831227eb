/** The interface of a protocol linter: it reads requests and streams strictly and reports what a vendor or client would refuse. */

import type { ProtocolName } from '../conversation/types.ts';
import type { SseFrame } from '../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { suggest } from '../lib/text/did-you-mean.ts';

export interface Finding {
  /**
   * A JSON pointer into the body: `/messages/2/content/0/id`. In a stream its first part is the number of
   * the event, from 0: `/7/choices/0/delta`. The number after the last event stands for the end of the stream.
   */
  readonly at: string;
  /** The rule's stable name, in kebab-case. */
  readonly rule: string;
  /** The vendor's own message where it is known. */
  readonly message: string;
  /** Nothing that is known to be refused, but probably a mistake. */
  readonly warning?: true;
}

/** Checks one stream, frame by frame. A state machine without I/O. */
export interface StreamLinter {
  push(frame: SseFrame): readonly Finding[];
  /** The stream is over: reports what is missing. */
  end(): readonly Finding[];
}

export interface Linter {
  readonly name: ProtocolName;
  /** Everything that the protocol's own vendor is known to refuse, and warnings. Never throws. */
  request(body: Json): readonly Finding[];
  stream(): StreamLinter;
}

/** Reports one finding. */
export type Report = (at: string, rule: string, message: string) => void;

/** Collects findings. */
export function findings(): {
  readonly list: Finding[];
  readonly report: Report;
  readonly warn: Report;
} {
  const list: Finding[] = [];
  return {
    list,
    report: (at, rule, message) => void list.push({ at, rule, message }),
    warn: (at, rule, message) => void list.push({ at, rule, message, warning: true }),
  };
}

/** The field of a request that is for the gateway itself, in every protocol. No vendor gets it. */
export const OWN_FIELD = 'hopgate';

/** ` (did you mean "max_tokens"?)`, or nothing if no known field is near. */
export function didYouMean(field: string, known: Iterable<string>): string {
  const meant = suggest(field, known);
  return meant === undefined ? '' : ` (did you mean "${meant}"?)`;
}

/**
 * Warns of the fields of a body that are not known: vendors add fields to the OpenAI protocols, so one of them is
 * either too new or misspelt.
 */
export function warnOfUnknown(body: JsonObject, known: ReadonlySet<string>, warn: Report): void {
  for (const key of Object.keys(body)) {
    if (known.has(key)) continue;
    const words = `No vendor is known to take "${key}": it is refused or has no effect${didYouMean(key, known)}.`;
    warn(`/${key}`, 'unknown-field', words);
  }
}

/** Reports the first of these members of a usage that is no whole number; true: all of them are. */
export function lintCounts(
  usage: JsonObject,
  keys: readonly string[],
  at: string,
  report: Report,
): boolean {
  for (const key of keys) {
    const value = usage[key];
    if (Number.isInteger(value) && Number(value) >= 0) continue;
    const words = `${key} is ${value === undefined ? 'missing' : 'not a count'}`;
    report(`${at}/${key}`, 'usage-count', words);
    return false;
  }
  return true;
}

/** Reads the events of one stream. `number` is the event's number; `report` puts it before every pointer. */
export interface EventReader {
  /** @param name what the event line says */
  read(event: JsonObject, name: string, report: Report, number: number): void;
  /** The mark `[DONE]`; left out: the protocol has none. */
  done?(report: Report): void;
  /** `report` uses the number after the last event. */
  end(report: Report): void;
}

/** A stream linter that numbers the events for `reader`. Frames without data (comments, pings) are no events. */
export function lintEvents(reader: EventReader): StreamLinter {
  let count = 0;
  return {
    push(frame) {
      if (frame.data === undefined) return [];
      const { list, report } = findings();
      const number = count++;
      const here: Report = (at, ...rest) => report(`/${number}${at}`, ...rest);
      const event = tryParse(frame.data);
      if (frame.data === '[DONE]' && reader.done !== undefined) reader.done(here);
      else if (isObject(event)) reader.read(event, frame.event, here, number);
      else here('', 'not-json', 'the data of the event is not a JSON object');
      return list;
    },
    end() {
      const { list, report } = findings();
      reader.end((at, ...rest) => report(`/${count}${at}`, ...rest));
      return list;
    },
  };
}
