import { join } from 'node:path';
import { isObject } from '../../lib/json/json.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import { blankBodyInSteps } from '../mask/blank-body.ts';
import { maskText } from '../mask/body-mask.ts';
import { countMasked } from '../mask/text-mask.ts';
import type { ExportedSample, SampleMeta, SampleStage } from '../sample.ts';
import { metaText } from './meta.ts';
import {
  ENTRIES,
  entryFolder,
  fileName,
  isId,
  isStage,
  metaPath,
  replaceFile,
} from './sample-files.ts';

/** @param redact also blanks texts and images, keeping structure and lengths */
export function* exportSample(
  meta: SampleMeta,
  read: (stage: string) => Uint8Array | undefined,
  redact: boolean,
): Steps<ExportedSample> {
  const files: ExportedSample['files'][number][] = [];
  for (const { stage, file } of meta.edges) {
    yield;
    const bytes = read(stage);
    if (bytes === undefined) continue;
    const shown = redact
      ? yield* blankBodyInSteps(Buffer.from(bytes), file.endsWith('.sse'), ['texts', 'images'])
      : bytes;
    files.push({ stage, name: file, ...content(shown) });
  }
  const own = withoutObject(meta);
  const exportedMeta = redact ? { ...own, redacted: ['texts', 'images'] } : own;
  return { hopgate_sample: 1, meta: exportedMeta, files };
}

/** Its bodies come with it. */
const withoutObject = ({ object: _, ...own }: SampleMeta): SampleMeta => own;

function content(bytes: Uint8Array): { text: string } | { base64: string } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = buffer.toString('utf8');
  return Buffer.from(text, 'utf8').equals(buffer)
    ? { text }
    : { base64: buffer.toString('base64') };
}

/**
 * Writes the files of an exported sample. Credentials are masked again: the file may come from anywhere.
 * @throws Error for anything but an exported sample
 */
export function importSample(root: string, sample: ExportedSample): SampleMeta {
  const { files } = sample;
  const meta = isObject(sample.meta) ? withoutObject(sample.meta) : sample.meta;
  if (sample.hopgate_sample !== 1 || !isObject(meta) || !Array.isArray(files)) {
    throw new Error('This is not an exported sample.');
  }
  if (!isId(meta.id) || !ENTRIES.includes(meta.entry) || !Array.isArray(meta.edges)) {
    throw new Error('The sample has no usable id, entry or stages.');
  }
  const folder = entryFolder(root, meta.entry);
  let masked = meta.masked;
  const edges: SampleStage[] = [];
  for (const file of files) {
    if (!isStage(file.stage)) throw new Error(`"${file.stage}" is not a stage.`);
    const bytes = Buffer.from(
      file.text ?? file.base64 ?? '',
      file.text === undefined ? 'base64' : 'utf8',
    );
    const raw = bytes.toString('latin1');
    const clean = maskText(raw, []);
    masked += countMasked(raw, clean);
    const name = fileName(meta.id, file.stage, file.name.endsWith('.sse'));
    replaceFile(join(folder, name), Buffer.from(clean, 'latin1'));
    const known = meta.edges.find(({ stage }) => stage === file.stage);
    edges.push({ ...known, stage: file.stage, file: name, bytes: bytes.length });
  }
  const written = metaText({ ...meta, masked, edges }, []);
  replaceFile(metaPath(root, meta.entry, meta.id), written.text);
  return written.meta;
}
