/** Recorded exchanges: written behind the gateway's back, read by commands. */

export { bisect } from './bisect/bisect.ts';
export { openSampleBook } from './book.ts';
export {
  openRecorder,
  type Recorder,
  type RecorderCounters,
  type RecorderLimits,
  type RecorderOptions,
  type RecorderSettings,
  type SampleMode,
} from './recorder.ts';
export type { Retention } from './retention.ts';
