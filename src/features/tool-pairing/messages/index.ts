/** Checks of the Messages API beyond pairing: blocks, thinking, empty turns and cache marks. */

export { cleanSystem, cleanTurn } from './blocks.ts';
export { limitCacheMarks } from './cache-marks.ts';
export { fillEmpty, trimPrefill } from './empty-turns.ts';
export { fitThinking, placeThinking, type SealContext } from './thinking.ts';
