/** Recorded exchanges: written behind the gateway's back, read by commands. */

export { bisect } from '../bisect/bisect.ts';
export { openSampleStore } from '../store/book.ts';
export {
  openRecorder,
  type Recorder,
  type RecorderOptions,
  type RecorderSettings,
} from './recorder.ts';
