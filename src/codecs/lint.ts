/** What a linter of a protocol is: it reads requests and streams strictly and says what a vendor or a client would refuse. */

import type { ProtocolName } from '../conversation/types.ts';
import type { SseFrame } from '../lib/bytes/sse.ts';
import type { Json } from '../lib/json/json.ts';

export interface Finding {
  /**
   * A JSON pointer into the body: `/messages/2/content/0/id`. In a stream its first part is the number
   * of the event, from 0: `/7/choices/0/delta`; the length of the stream stands for its end.
   */
  readonly at: string;
  /** Stable, kebab-case, one a rule. */
  readonly rule: string;
  /** The vendor's own words where it is known to say them. */
  readonly message: string;
}

/** Reads one stream, frame by frame; a state machine without I/O. */
export interface StreamLinter {
  push(frame: SseFrame): readonly Finding[];
  /** The stream is over: what is missing now never came. */
  end(): readonly Finding[];
}

export interface Linter {
  readonly name: ProtocolName;
  /** Everything that the protocol's own vendor is known to refuse; never throws. */
  request(body: Json): readonly Finding[];
  stream(): StreamLinter;
}

/** Says one finding. */
export type Report = (at: string, rule: string, message: string) => void;

/** Collects findings. */
export function findings(): { readonly list: Finding[]; readonly report: Report } {
  const list: Finding[] = [];
  return { list, report: (at, rule, message) => void list.push({ at, rule, message }) };
}

/** A reader of one stream: `number` is that of the event, which the report puts before every place. */
export interface EventReader {
  read(frame: SseFrame, report: Report, number: number): void;
  /** `report` places what it says behind the last event. */
  end(report: Report): void;
}

/** Counts the events for a reader; frames without data (comments, pings of the wire) are none. */
export function lintEvents(reader: EventReader): StreamLinter {
  let count = 0;
  return {
    push(frame) {
      if (frame.data === undefined) return [];
      const { list, report } = findings();
      const number = count++;
      reader.read(frame, (at, ...said) => report(`/${number}${at}`, ...said), number);
      return list;
    },
    end() {
      const { list, report } = findings();
      reader.end((at, ...said) => report(`/${count}${at}`, ...said));
      return list;
    },
  };
}
