/** The shape that every protocol's rendering of an answer has. */

import type { JsonObject } from '../../../src/lib/json/json.ts';
import type { Answer } from './answer.ts';

/** The request as far as an answer depends on it. */
export interface Asked {
  model: string;
  body: JsonObject;
  /** A fresh id with this prefix, in the vendor's length and alphabet. */
  id: (prefix: string) => string;
}

export interface Frame {
  /** Empty: no `event:` line. */
  event: string;
  data: JsonObject | string;
}

export interface Rendered {
  frames: Frame[];
  /** Frames from here on are the protocol's own ending. */
  terminal: number;
  /** What the vendor says when it fails in mid-stream. */
  errorFrames: Frame[];
  json: JsonObject;
}

export type Render = (answer: Answer, asked: Asked) => Rendered;
