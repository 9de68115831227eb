/** Chooses how a stream reaches the client: forwarded as bytes, or translated. */

import type { StreamEvent } from '../../conversation/events.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import { editOf } from '../tries/edit-answer.ts';
import type { Reading } from '../types.ts';
import { EditedFrames, EditedInput } from './edited-frames.ts';
import { withFastPath } from './fast/fast-translator.ts';
import { Passthrough } from './passthrough.ts';
import type { ClientSide, StreamPipeline } from './pipeline.ts';
import { BoundedFrame, type Bounds } from './quiet-bytes.ts';
import { Translator, type TranslatorOptions } from './translator.ts';

/** Forwards bytes if the protocol is the client's and no interceptor is armed. */
export function choosePipeline(reading: Reading): StreamPipeline {
  const { previous } = reading.prepared;
  const pipeline = edited(reading, passthroughOrTranslator(reading));
  const named = previous === undefined ? pipeline : withPreviousId(reading, pipeline, previous);
  return keepsBytes(reading) ? withSoundFrames(reading, named) : named;
}

const keepsBytes = ({ attempt, common }: Reading): boolean =>
  common.same && attempt.hop.number === 1;

function withSoundFrames(reading: Reading, pipeline: StreamPipeline): StreamPipeline {
  const { attempt, common } = reading;
  if (common.target.profile.exactStreams === true) return pipeline;
  const json = attempt.protocol.soundFrames?.(common.notes);
  if (json === undefined) return pipeline;
  return new EditedInput(pipeline, { json }, new BoundedFrame(boundsOf(reading)));
}

function withPreviousId(
  reading: Reading,
  pipeline: StreamPipeline,
  previous: string,
): StreamPipeline {
  const edit = reading.attempt.protocol.withPreviousResponseId;
  if (edit === undefined) return pipeline;
  const limit = new BoundedFrame(boundsOf(reading));
  return new EditedInput(pipeline, { json: (json, of) => edit(json, previous, of) }, limit);
}

function edited(reading: Reading, pipeline: StreamPipeline): StreamPipeline {
  const edit = editOf(reading);
  return edit === undefined
    ? pipeline
    : new EditedFrames(pipeline, edit, new BoundedFrame(boundsOf(reading)));
}

function passthroughOrTranslator(reading: Reading): StreamPipeline {
  const { prepared, client } = reading;
  const { protocol } = reading.attempt;
  const preserveBytes = keepsBytes(reading);
  if (preserveBytes && prepared.interceptors.length === 0) {
    return new Passthrough(protocol, prepared.context, client, boundsOf(reading));
  }
  const options = translatorOptions(reading, preserveBytes);
  return withFastPath(new Translator(options), options);
}

/** A whole reply as a stream; `first` is all that the client gets. */
export function translateWhole(reading: Reading, events: readonly StreamEvent[]) {
  const translator = new Translator(translatorOptions(reading, false));
  const pipeline = edited(reading, translator);
  const all = translator.feed(events);
  const shown = pipeline instanceof EditedFrames ? pipeline.shown(all) : all;
  return { pipeline, first: [shown, pipeline.end()] };
}

function translatorOptions(reading: Reading, preserveBytes: boolean): TranslatorOptions {
  const { prepared } = reading;
  const { protocol, hop } = reading.attempt;
  return {
    decoder: protocol.decodeStream(prepared.context),
    interceptors: prepared.interceptors,
    client: hop.client ?? clientSide(reading),
    preserveBytes,
    continues: hop.client !== undefined,
    bounds: boundsOf(reading),
  };
}

function clientSide({ attempt: { request, wantsAnswer }, client }: Reading): ClientSide {
  const encoder = request.protocol.encodeStream(client);
  const fold = wantsAnswer ? new ReplyBuilder() : undefined;
  return { encoder, context: client, fold, storesFrame: request.protocol.carriesItemIds };
}

export const boundsOf = ({ attempt: { upstream, secrets }, common }: Reading): Bounds => ({
  secrets,
  provider: common.target.provider,
  limits: upstream.config.answers,
  contentMs: upstream.config.timeouts.contentMs,
});
