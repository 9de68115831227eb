/** The names of the endpoints beside the model protocols, as samples, logs and metrics spell them. */

import { PROTOCOL_NAMES, type ProtocolName } from '../protocol-names.ts';

export const ENDPOINT_NAMES = [
  'embeddings',
  'completions',
  'rerank',
  'moderations',
  'images-generations',
  'images-edits',
  'images-variations',
  'audio-speech',
  'audio-transcriptions',
  'audio-translations',
  'files',
  'batches',
  'messages-batches',
] as const;

export type EndpointName = (typeof ENDPOINT_NAMES)[number];

/** What a client asked for: a model protocol, or another endpoint. */
export type EntryName = ProtocolName | EndpointName;

/** The protocol of this name; undefined for another endpoint, whose bodies no codec reads. */
export const protocolOf = (entry: EntryName): ProtocolName | undefined =>
  PROTOCOL_NAMES.find((name) => name === entry);
