/** The masked bodies of an exchange in memory, as the files of a sample would hold them. */

import type { Capture } from './capture.ts';
import type { StageBody } from './stage-body.ts';

/** What is masked so far, by stage. */
export type StageTexts = Map<StageBody, Buffer>;

/** Masks the bytes that wait in a capture and appends them to its texts. One call at a time. */
export async function readStages(capture: Capture, texts: StageTexts): Promise<void> {
  capture.prepare();
  for (const stage of [...capture.stages]) {
    if (!stage.dirty) continue;
    const { pieces, patches } = await stage.drain();
    const before = texts.get(stage);
    const whole = Buffer.concat(before === undefined ? pieces : [before, ...pieces]);
    for (const { at, bytes } of patches) whole.set(bytes, at);
    stage.written = whole.length;
    texts.set(stage, whole);
  }
}
