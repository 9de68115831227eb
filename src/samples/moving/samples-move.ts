/** Moves recorded exchanges between the folder of a machine and the engines of all replicas. */

import type { Objects, Sql } from '../../state/engines/engine.ts';
import type { MoveDirection, StateMove } from '../../state/state-move.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import { fetchMove } from './fetch-move.ts';
import { uploadMove } from './upload-move.ts';

export interface SamplesMoveOptions {
  readonly database: Sql;
  readonly objects: Objects;
  readonly seal: TextSeal;
  /** The folder of this machine. */
  readonly root: string;
  readonly to: MoveDirection;
}

export const samplesMove = (options: SamplesMoveOptions): StateMove =>
  options.to === 'engines' ? uploadMove(options) : fetchMove(options);
