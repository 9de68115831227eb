/** The shape of a rendered answer, shared by all protocols. */

import type { JsonObject } from '../../../src/lib/json/json.ts';
import type { Answer } from './answer.ts';

/** The parts of the request that an answer depends on. */
export interface RenderRequest {
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
  /** The terminal frames of the protocol start here. */
  terminal: number;
  /** The vendor's error frame in mid-stream. */
  errorFrames: Frame[];
  json: JsonObject;
}

export type Render = (answer: Answer, request: RenderRequest) => Rendered;
