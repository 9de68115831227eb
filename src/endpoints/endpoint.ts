/** The endpoints beside the model protocols: which paths they have here and at a vendor. */

import type { EndpointName } from '../conversation/models/endpoint-names.ts';

export interface Endpoint {
  readonly name: EndpointName;
  /** Behind `/v1`, and behind the base URL of a provider. */
  readonly path: string;
}

export const ENDPOINTS: readonly Endpoint[] = [
  { name: 'embeddings', path: '/embeddings' },
  { name: 'completions', path: '/completions' },
  { name: 'rerank', path: '/rerank' },
  { name: 'moderations', path: '/moderations' },
  { name: 'images-generations', path: '/images/generations' },
  { name: 'images-edits', path: '/images/edits' },
  { name: 'images-variations', path: '/images/variations' },
  { name: 'audio-speech', path: '/audio/speech' },
  { name: 'audio-transcriptions', path: '/audio/transcriptions' },
  { name: 'audio-translations', path: '/audio/translations' },
];
