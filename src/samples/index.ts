/** The interface of the room: the recorder, the store of recorded exchanges and the bisection. */

export { bisect } from './bisect/minimize.ts';
export {
  openRecorder,
  type Recorder,
  type RecorderOptions,
  type RecorderSettings,
} from './record/recorder.ts';
export { openSampleStore } from './store/sample-store.ts';
