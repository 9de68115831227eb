/** The endpoints beside the model protocols: which paths they have here and at a vendor. */

import type { EndpointName } from '../conversation/models/endpoint-names.ts';

export interface Endpoint {
  readonly name: EndpointName;
  /** Behind `/v1`, and behind the base URL of a provider. */
  readonly path: string;
  /** Its answer is no text and no numbers about texts: without usage, nothing says how much was made. */
  readonly media?: boolean;
}

export const ENDPOINTS: readonly Endpoint[] = [
  { name: 'embeddings', path: '/embeddings' },
  { name: 'completions', path: '/completions' },
  { name: 'rerank', path: '/rerank' },
  { name: 'moderations', path: '/moderations' },
  { name: 'images-generations', path: '/images/generations', media: true },
  { name: 'images-edits', path: '/images/edits', media: true },
  { name: 'images-variations', path: '/images/variations', media: true },
  { name: 'audio-speech', path: '/audio/speech', media: true },
  { name: 'audio-transcriptions', path: '/audio/transcriptions', media: true },
  { name: 'audio-translations', path: '/audio/translations', media: true },
];
